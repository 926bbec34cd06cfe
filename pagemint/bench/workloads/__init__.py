# SPDX-License-Identifier: GPL-2.0-only
"""The workloads: each module here lists its own in WORKLOADS."""

import importlib
import pkgutil
from dataclasses import replace

from pagemint.base.errors import Failure
from pagemint.bench.workload import Workload


def known() -> dict[str, Workload]:
    """Return all workloads by name, in the order of the names of their modules.

    Raises:
        Failure: two workloads have the same name.
    """
    workloads: dict[str, Workload] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        for workload in importlib.import_module(f"{__name__}.{module}").WORKLOADS:
            if other := workloads.get(workload.name):
                raise Failure(
                    f"{other.file}.py and {module}.py in pagemint/bench/workloads/ "
                    f"both have a workload {workload.name!r}",
                    "rename one",
                )
            workloads[workload.name] = replace(workload, file=module)
    return workloads
