# SPDX-License-Identifier: GPL-2.0-only
"""This machine: its memory, CPUs and compiler, and its description in a result.

A cgroup can allow less memory and fewer CPUs than the machine has, and each cgroup above it, too.
Limits of cgroup version 1 are ignored. A process can be bound to some CPUs. Functions that take
`root` read /proc and the cgroups below it.
"""

import datetime
import os
import platform
import sys
from collections.abc import Collection
from functools import cache as once
from pathlib import Path
from typing import Any

from pagemint import __version__
from pagemint.base.run import run

_ROOT = Path("/")


def memory(root: Path = _ROOT) -> dict[str, int]:
    """Return /proc/meminfo in bytes."""
    fields = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
    return {name.rstrip(":"): int(value) * 1024 for name, value, *_ in fields}


def free(root: Path = _ROOT) -> int:
    """Return the bytes of memory that this process can take: the least that a limit leaves."""
    return min(memory(root)["MemAvailable"], _left(root)[0])


def confines(root: Path = _ROOT) -> str:
    """Return the cgroup whose limit is less than the available memory, or ""."""
    left, name = _left(root)
    return name if left < memory(root)["MemAvailable"] else ""


def unused() -> str:
    """Return how messages call the memory of free(): "free", in a cgroup if one confines it."""
    name = confines()
    return f"free in the cgroup {name}" if name else "free"


def cpus(root: Path = _ROOT) -> int:
    """Return the number of CPUs that this process can keep busy."""
    status = _fields(root / "proc/self/status")
    allowed = status.get("Cpus_allowed_list:", "")
    spans = [span.split("-") for span in allowed.split(",") if span]
    counts = [sum(int(ends[-1]) - int(ends[0]) + 1 for ends in spans) or os.cpu_count() or 1]
    for group in _cgroups(root).values():
        quota, _, period = read(group / "cpu.max").partition(" ")
        if quota.isdecimal():
            counts.append(int(quota) // int(period))
    return max(min(counts), 1)


def oom_kills(root: Path = _ROOT) -> int:
    """Return how many processes the kernel has killed so far, for want of memory."""
    return int(_fields(root / "proc/vmstat").get("oom_kill", 0))


def _left(root: Path) -> tuple[int, str]:
    """Return the least bytes that a cgroup leaves, and its name."""
    least = (sys.maxsize, "")
    for name, group in _cgroups(root).items():
        limits = [_number(group / "memory.max"), _number(group / "memory.high")]
        limit = min((bound for bound in limits if bound is not None), default=None)
        used = _number(group / "memory.current")
        if limit is None or used is None:
            continue
        stat = _fields(group / "memory.stat")
        # The kernel frees pages of files before it kills.
        cached = sum(int(stat.get(f"{state}_file", 0)) for state in ("active", "inactive"))
        least = min(least, (max(limit - used + cached, 0), name))
    return least


def _cgroups(root: Path) -> dict[str, Path]:
    """Return the directories of this process's cgroup and of those above it, by name."""
    lines = read(root / "proc/self/cgroup").splitlines()
    mine = next((line[3:] for line in lines if line.startswith("0::")), "")
    groups = {}
    for line in read(root / "proc/self/mountinfo").splitlines():
        first, _, last = line.partition(" - ")
        if last.startswith("cgroup2 "):
            # Spaces in these paths are octal.
            top, mount = (field.replace("\\040", " ") for field in first.split()[3:5])
            # In a container, the mount can begin at its cgroup, or the path be of another one.
            here = Path(mine.removeprefix(top).strip("/") if mine.startswith(top) else "")
            for folder in (here, *here.parents):
                groups[f"/{folder}" if folder.name else "/"] = root / mount.lstrip("/") / folder
    return groups


def _number(file: Path) -> int | None:
    """Return the number in a file; None if it has none, as that of a limit without one."""
    text = read(file).strip()
    return int(text) if text.isdecimal() else None


def _fields(file: Path) -> dict[str, str]:
    """Return the second word of each line by its first."""
    lines = (line.split() for line in read(file).splitlines())
    return {words[0]: words[1] for words in lines if len(words) > 1}


def read(file: Path) -> str:
    """Return the text of a file, or "" if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""


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
        # Those of the machine, whatever a limit allows.
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
