# SPDX-License-Identifier: GPL-2.0-only
"""Timed bring-up of ordinary memory: initialised and walked, hot-added or at boot."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from pagemint.base import returns
from pagemint.base.memmap import MODES, PAGE, STRUCT_PAGE
from pagemint.base.sizes import format_power, format_size
from pagemint.native.device import FIRST_PFN, SEED, VARIANTS, NativeRow, paired, tree_of
from pagemint.native.process import Host

WORKLOADS = ("hotplug", "boot")
"""What is timed: blocks of memory added and brought online, and what a thread of boot does."""

BLOCKS = (128 << 20, 2 << 30)
"""Bytes of a memory block: the smallest on x86-64, and what machines with much memory have."""

CHUNK = 4 << 20
"""Bytes that boot initialises before it frees them."""


@dataclass(frozen=True)
class MemoryRow(NativeRow):
    """A row of ordinary memory; its runs_ms is initialisation plus walk.

    Attributes:
        block: what is initialised before it is walked, as in "128 MiB".
        walk_ms: the walk alone, in each run; none at boot, where the two are not told apart.
    """

    block: str
    walk_ms: list[float]


@dataclass(frozen=True)
class _Task:
    workload: str  # one of WORKLOADS, or limit
    variant: str  # one of VARIANTS, or the name of a loop
    block: int = CHUNK

    def pages(self, device: int) -> int:
        """Return how many pages are brought up: whole blocks only."""
        return device // self.block * self.block // PAGE


def measure(
    host: Host,
    how: str,
    device: int,
    workloads: Sequence[str],
    runs: int,
    done: Callable[[float], None],
) -> list[MemoryRow]:
    """Time every variant of the workloads, and the fill limit, in shuffled rounds.

    Args:
        host: its map is at least that of the memory.
        how: what its returns are patched to.
        device: bytes of memory to bring up, 2 MiB or more; no block is larger.
        workloads: of WORKLOADS.
        runs: how many rounds count; one more comes first and does not.
        done: is told of each round.
    """
    most = 1 << device.bit_length() - 1
    cases = {
        (name, min(block, most)): None
        for name in workloads
        for block in (BLOCKS if name == "hotplug" else (CHUNK,))
    }
    tasks = [_Task(name, variant, block) for name, block in cases for variant in VARIANTS]
    limits = [_Task("limit", loop) for loop in host.ask("limits").split()]
    takes: dict[_Task, list[float]] = {}
    walks: dict[_Task, list[float]] = {}
    order = random.Random(SEED)
    rounds = [*tasks, *limits]
    for number in range(runs + 1):
        order.shuffle(rounds)
        for task in rounds:
            taken, walk = _run(host, task, device)
            if number:
                takes.setdefault(task, []).append(taken / 1e6)
                walks.setdefault(task, []).extend([walk / 1e6] if walk else [])
        done(1)
    at_limit = takes[min(limits, key=lambda task: statistics.median(takes[task]))]
    rows = []
    for task in tasks:
        pages = task.pages(device)
        median = statistics.median(takes[task])
        rows.append(
            MemoryRow(
                workload=task.workload,
                variant=task.variant,
                returns=how,
                threads=1,
                device_bytes=device,
                pages=pages,
                runs_ms=takes[task],
                median_ms=median,
                ns_per_page=median * 1e6 / pages,
                speedup=paired(takes[_Task(task.workload, "base", task.block)], takes[task]),
                limit_ratio=paired(at_limit, takes[task]) * pages / (device // PAGE),
                block=format_power(task.block),
                walk_ms=walks[task],
            )
        )
    return rows


def _run(host: Host, task: _Task, device: int) -> tuple[int, int]:
    """Return the nanoseconds of a run, and of the walk in it where that is known."""
    pages = task.pages(device)
    if task.workload == "limit":
        return int(host.ask("limit", task.variant, device // PAGE, 1)), 0
    if task.variant in MODES:
        host.ask("mode", task.variant)
    where = (tree_of(task.variant), FIRST_PFN, pages, 0, 0)
    if task.workload == "hotplug":
        init, walk, _ = map(int, host.ask("hotplug", *where, task.block // PAGE, 0).split())
        return init + walk, walk
    return int(host.ask("boot", *where, FIRST_PFN, FIRST_PFN + pages).split()[0]), 0


def table(rows: Sequence[MemoryRow]) -> Table:
    """Return a table of the rows of one size and one kind of returns for a terminal."""
    first = rows[0]
    shown = Table(
        title=f"Ordinary memory, {format_size(first.device_bytes)} "
        f"({format_size(first.device_bytes // PAGE * STRUCT_PAGE)} of memory map), "
        f"{returns.NAMES[first.returns]}",
        caption=f"initialised and walked; medians of {len(first.runs_ms)} runs, ratios in pairs",
    )
    for name in ("workload", "block", "variant"):
        shown.add_column(name, no_wrap=True)
    for name in ("ms", "of it walk", "ns/page", "speed-up", "of limit"):
        shown.add_column(name, justify="right")
    for number, row in enumerate(rows):
        shown.add_row(
            row.workload,
            row.block,
            row.variant,
            f"{row.median_ms:.2f}",
            f"{statistics.median(row.walk_ms):.2f}" if row.walk_ms else "",
            f"{row.ns_per_page:.2f}",
            f"{row.speedup:.2f}x",
            f"{row.limit_ratio:.2f}",
            end_section=number + 1 == len(rows) or rows[number + 1].variant == "base",
        )
    return shown
