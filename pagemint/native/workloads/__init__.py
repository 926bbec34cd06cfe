# SPDX-License-Identifier: GPL-2.0-only
"""The workloads: each module here lists its own in WORKLOADS."""

import importlib
import pkgutil

from pagemint.native.workload import Workload


def known() -> dict[str, Workload]:
    """Return all workloads by name, in the order of the names of their modules."""
    modules = sorted(found.name for found in pkgutil.iter_modules(__path__))
    return {
        workload.name: workload
        for name in modules
        for workload in importlib.import_module(f"{__name__}.{name}").WORKLOADS
    }
