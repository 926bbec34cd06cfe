# SPDX-License-Identifier: GPL-2.0-only
"""This machine: its memory, its compiler, and what a result says of it."""

import datetime
import os
import platform
from functools import cache as once
from pathlib import Path
from typing import Any

from pagemint import __version__
from pagemint.base.run import run


def memory() -> dict[str, int]:
    """Return /proc/meminfo in bytes."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {name.rstrip(":"): int(value) * 1024 for name, value, *_ in fields}


def about() -> dict[str, Any]:
    """Return what a result says of the machine it was made on."""
    cpu = {
        key.strip(): value.strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        for key, _, value in [line.partition(":")]
    }
    return {
        "cpu": cpu.get("model name", "unknown"),
        "family_model_stepping": [
            int(cpu.get(key, 0)) for key in ("cpu family", "model", "stepping")
        ],
        "virtual": "hypervisor" in cpu.get("flags", "").split(),
        "cpus": os.cpu_count(),
        "memory_bytes": memory()["MemTotal"],
        "load_average": os.getloadavg()[0],
        # Without the local part, which can name whose kernel it is.
        "kernel": platform.release().partition("-")[0],
        "compiler": compiler(),
        "pagemint": __version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


@once
def compiler(prefix: str = "") -> str:
    """Return the version line of the compiler that builds everything for an architecture.

    Args:
        prefix: of its name, such as "aarch64-linux-gnu-".
    """
    program = f"{prefix}gcc"
    return run([program, "--version"], what=f"asking {program} for its version").splitlines()[0]
