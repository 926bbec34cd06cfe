# SPDX-License-Identifier: GPL-2.0-only
"""What this machine can do for pagemint, and what to do about what it lacks."""

import argparse
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagemint import cache
from pagemint.run import PACKAGES
from pagemint.sizes import format_size

_FEATURES = ("sse2", "erms", "fsrm", "movdir64b", "avx2", "avx512f")
_OPTIONAL_TOOLS = ("sparse",)
# The memmap of the default device: 100 GB in 4 KiB pages of 64 bytes each.
_MEMORY = 100 * 10**9 // 4096 * 64
_DISK = 5 * 10**9  # bytes: the source, two build directories, room to unpack


@dataclass(frozen=True)
class Check:
    """One line of the report; bench can run if every check that it needs is ok.

    Attributes:
        what: the thing looked at.
        ok: whether it is there.
        found: what was found.
        remedy: what to do if it is not ok.
        needed: whether bench depends on it.
    """

    what: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = True


def checks() -> list[Check]:
    """Look at the machine; takes milliseconds and changes nothing."""
    cpuinfo = _read("/proc/cpuinfo")
    meminfo = _read("/proc/meminfo")
    return [
        *(check_tool(tool) for tool in sorted(PACKAGES)),
        *check_processor(platform.machine(), cpuinfo),
        check_huge_pages(_read("/sys/kernel/mm/transparent_hugepage/enabled")),
        check_memory(meminfo),
        _check_disk(),
        _check_load(),
    ]


def check_tool(tool: str) -> Check:
    """Look for a program in PATH."""
    path = shutil.which(tool)
    remedy = f"apt-get install {PACKAGES[tool]}"
    return Check(tool, path is not None, path or "not found", remedy, tool not in _OPTIONAL_TOOLS)


def check_processor(machine: str, cpuinfo: str) -> list[Check]:
    """Judge the CPU from its name as uname gives it and the text of /proc/cpuinfo."""
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    present = flags[1].split() if flags else []
    found = [Check("x86-64", machine == "x86_64", machine, "use an x86-64 machine")]
    found.append(Check("CPU", True, model[1] if model else "unknown model"))
    for feature in _FEATURES:
        has = feature in present
        needed = feature == "sse2"
        remedy = "use another CPU" if needed else "nothing to do: not needed"
        found.append(Check(feature, has, "yes" if has else "no", remedy, needed))
    return found


def check_huge_pages(enabled: str) -> Check:
    """Judge the text of /sys/kernel/mm/transparent_hugepage/enabled, "" if there is none."""
    mode = re.search(r"\[(\w+)\]", enabled)
    return Check(
        "transparent huge pages",
        mode is not None and mode[1] in ("madvise", "always"),
        mode[1] if mode else "not in this kernel",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
    )


def check_memory(meminfo: str) -> Check:
    """Judge the text of /proc/meminfo against the default device of 100 GB."""
    match = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo, re.MULTILINE)
    free = int(match[1]) * 1024 if match else 0
    fits = int(100 * free / _MEMORY)
    remedy = f"free some, or run bench with --size {max(fits, 1)}GB"
    found = f"{format_size(free)} available, {format_size(_MEMORY)} needed for a 100 GB device"
    return Check("memory", free >= _MEMORY, found, remedy)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint doctor`: none."""


def main(args: argparse.Namespace) -> int:
    """Print the report; exit status 0 if bench can run here, else 1."""
    found = checks()
    table = Table("what", "state", "found", "what to do")
    for check in found:
        if check.ok:
            state = Text("OK", style="green")
        elif check.needed:
            state = Text("missing", style="red")
        else:
            state = Text("absent", style="dim")
        remedy = "" if check.ok else check.remedy
        table.add_row(Text(check.what), state, Text(check.found), Text(remedy))
    Console().print(table)
    return 0 if all(check.ok for check in found if check.needed) else 1


def _check_disk() -> Check:
    path = cache.root()
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    found = f"{format_size(free)} free, {format_size(_DISK)} needed for {cache.root()}"
    remedy = "free some, or set XDG_CACHE_HOME to another disk"
    return Check("disk", free >= _DISK or (cache.root() / "sources").is_dir(), found, remedy)


def _check_load() -> Check:
    count, load = os.cpu_count() or 1, os.getloadavg()[0]
    return Check(
        "idle CPUs",
        load < count / 2,
        f"{count} CPUs, load average {load:.2f}",
        "wait for other work to end: times will vary",
        needed=False,
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
