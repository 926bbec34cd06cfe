# SPDX-License-Identifier: GPL-2.0-only
"""This machine: its memory, its compiler, and its description in a result."""

import datetime
import os
import platform
from collections.abc import Collection
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
    """Return this machine and the date, as keyword arguments of results.rows.Machine."""
    cpu = {
        key.strip(): value.strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        for key, _, value in [line.partition(":")]
    }
    flags = cpu.get("flags", "").split()
    return {
        "cpu": cpu.get("model name", "unknown"),
        "family_model_stepping": [
            int(cpu.get(key, 0)) for key in ("cpu family", "model", "stepping")
        ],
        "cpu_class": cpu_class(flags),
        "virtual": "hypervisor" in flags,
        "cpus": os.cpu_count() or 1,
        "memory_bytes": memory()["MemTotal"],
        "load_average": os.getloadavg()[0],
        # Without the local part of the version, which can name the owner of the kernel.
        "kernel": platform.release().partition("-")[0],
        "compiler": compiler(),
        "pagemint": __version__,
        "date": datetime.datetime.now(datetime.UTC).replace(microsecond=0),
    }


def cpu_class(flags: Collection[str]) -> str:
    """Return the string instructions that a kernel uses on a CPU with these cpuinfo flags."""
    if "erms" in flags:
        return "erms"
    return "rep_good" if "rep_good" in flags else "none"


@once
def compiler(prefix: str = "") -> str:
    """Return the version line of the compiler that builds everything for an architecture.

    Args:
        prefix: the start of its name, such as "aarch64-linux-gnu-"; "" for this machine's own.
    """
    program = f"{prefix}gcc"
    return run([program, "--version"], what=f"asking {program} for its version").splitlines()[0]
