# SPDX-License-Identifier: GPL-2.0-only
"""Counts the calls of a function of the kernel, and lists its functions."""

from collections.abc import Callable
from pathlib import Path

TRACE = Path("/sys/kernel/tracing")


def calls(function: str, work: Callable[[], object]) -> int:
    """Do `work`; return how often all CPUs together called `function` meanwhile."""
    (TRACE / "set_ftrace_filter").write_text(function)
    (TRACE / "trace").write_text("")
    (TRACE / "current_tracer").write_text("function")
    try:
        work()
        lines = (TRACE / "trace").read_text().splitlines()
    finally:
        (TRACE / "current_tracer").write_text("nop")
    return sum(function in line for line in lines if not line.startswith("#"))


def symbols() -> list[str]:
    """Return the lines of /proc/kallsyms about the kernel itself, as a System.map has them."""
    # The symbols of modules have the module's name in brackets.
    return [line for line in Path("/proc/kallsyms").read_text().splitlines() if "[" not in line]
