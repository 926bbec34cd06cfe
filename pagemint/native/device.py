# SPDX-License-Identifier: GPL-2.0-only
"""Timed runs: base, every mode and the fill limit in turn, over the same memory."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pagemint.base.memmap import MODES, PAGE, STRUCT_PAGE
from pagemint.native.link import AGAIN
from pagemint.native.process import Host
from pagemint.results.rows import Row

SEED = 73
"""Of the order of the runs, which is the same in each bench."""

FIRST_PFN = 1 << 20
"""Where the device begins: at 4 GiB, aligned for every compound."""

VARIANTS = ("base", AGAIN, *MODES)
"""The unpatched tree, twice, and the modes of the patched one."""

THREADED = MODES[1:]
"""The modes in which threads share the work."""


@dataclass(frozen=True)
class Workload:
    """What memmap_init_zone_device() is called with.

    Attributes:
        name: what results call it.
        type: its enum memory_type.
        order: of its compounds.
        altmap: whether the memory map lies on the device, and so is not deduplicated.
    """

    name: str
    type: int
    order: int
    altmap: bool

    def pages(self, device: int) -> int:
        """Return how many struct pages a device of `device` bytes has: whole compounds only."""
        return device // PAGE >> self.order << self.order


WORKLOADS = {
    one.name: one
    for one in (
        Workload("fsdax", 3, 0, False),
        Workload("devdax", 4, 9, True),
        Workload("devdax-1g", 4, 18, True),
        Workload("private", 1, 0, False),
    )
}
"""The workloads by name; devdax has compounds of 2 MiB, devdax-1g of 1 GiB."""


@dataclass(frozen=True)
class NativeRow(Row):
    """A row of the native host; its ratios are medians over pairs of the same round.

    Attributes:
        returns: how the kernel code returned from functions, a key of returns.NAMES.
    """

    returns: str


@dataclass(frozen=True)
class Limit:
    """The best of the plain streaming-fill loops.

    Attributes:
        loop: its name.
        returns: that of the rows beside which it was timed.
        threads: how many of them shared the work.
        device_bytes: the size of the device whose memory map it filled.
        runs_ms: each run.
        bytes_per_s: its median.
    """

    loop: str
    returns: str
    threads: int
    device_bytes: int
    runs_ms: list[float]
    bytes_per_s: float


def measure(
    host: Host,
    returns: str,
    device: int,
    workloads: Sequence[Workload],
    threads: Sequence[int],
    runs: int,
    done: Callable[[float], None],
) -> tuple[list[NativeRow], list[Limit]]:
    """Time all VARIANTS on the workloads, and the fill limits, in rounds.

    Args:
        host: its map is at least that of the device.
        returns: what its returns are patched to.
        device: size in bytes.
        workloads: which ones.
        threads: the numbers of threads to share the work among, in turn.
        runs: how many rounds count; one more comes first and does not.
        done: is told of each round.

    Returns:
        the rows, and the limit for each number of threads.
    """
    loops = host.ask("limits").split()
    whole = device // PAGE
    takes: dict[tuple[str, str, int], list[float]] = {}
    tasks = [
        (one.name, variant, 1)
        for one in workloads
        for variant in VARIANTS
        if variant not in THREADED
    ]
    for count in threads:
        tasks += [(one.name, variant, count) for one in workloads for variant in THREADED]
        tasks += [("limit", loop, count) for loop in loops]
    order = random.Random(SEED)
    for number in range(runs + 1):
        # No variant always follows the same other one, for whose dirty lines it pays.
        order.shuffle(tasks)
        for name, variant, count in tasks:
            if name == "limit":
                taken = int(host.ask("limit", variant, whole, count))
            else:
                taken = run_once(host, WORKLOADS[name], variant, device, count)
            if number:
                takes.setdefault((name, variant, count), []).append(taken / 1e6)
        done(1)

    size = whole * STRUCT_PAGE
    rows: list[NativeRow] = []
    limits: list[Limit] = []
    for count in threads:
        best = min(loops, key=lambda loop: statistics.median(takes["limit", loop, count]))
        at_limit = takes["limit", best, count]
        speed = size / statistics.median(at_limit) * 1e3
        limits.append(Limit(best, returns, count, device, at_limit, speed))
        for one in workloads:
            pages = one.pages(device)
            base = takes[one.name, "base", 1]
            for variant in VARIANTS:
                mine = takes[one.name, variant, count if variant in THREADED else 1]
                median = statistics.median(mine)
                rows.append(
                    NativeRow(
                        workload=one.name,
                        variant=variant,
                        returns=returns,
                        threads=count,
                        device_bytes=device,
                        pages=pages,
                        runs_ms=mine,
                        median_ms=median,
                        ns_per_page=median * 1e6 / pages,
                        speedup=paired(base, mine),
                        limit_ratio=paired(at_limit, mine) * pages / whole,
                    )
                )
    return rows, limits


def run_once(host: Host, workload: Workload, variant: str, device: int, threads: int) -> int:
    """Initialise the whole memory map of a device once and return the nanoseconds it took."""
    if variant in MODES:
        host.ask("mode", variant)
        host.ask("threads", threads)
    pages = workload.pages(device)
    altmap = (int(workload.altmap), 0, 0)
    case = (FIRST_PFN, pages, workload.type, workload.order, *altmap, 0, 0)
    return int(host.ask("init", tree_of(variant), *case).split()[0])


def tree_of(variant: str) -> str:
    """Return the tree in the host whose code a variant runs."""
    return "patched" if variant in MODES else variant


def paired(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median of the ratios of two series whose members were timed side by side."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))
