# SPDX-License-Identifier: GPL-2.0-only
"""Timed copies of folios: both trees' code for each class of CPU, beside plain loops."""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from rich import box
from rich.table import Table

from pagemint.base.memmap import PAGE
from pagemint.base.sizes import format_power
from pagemint.native.device import FIRST_PFN, SEED, NativeRow, paired
from pagemint.native.process import THIS_CPU, Host, Program

ORDERS = (4, 6, 9, 18)
"""Of the folios: 64 KiB, 256 KiB, 2 MiB and 1 GiB."""

CLASSES = ("fsrm+erms", "erms", "rep_good", "none")
"""What the kernel chooses its copies by, best first: each has what the later ones have."""

FUNCTIONS = {
    "folio_copy": ("folio_copy", False),
    "folio_mc_copy": ("folio_mc_copy", False),
    "folio_mc_copy, fragile": ("folio_mc_copy", True),
    "copy_user_large_folio": ("copy_user_large_folio", False),
}
"""What is timed: a function, and whether it is to use copy_mc_fragile()."""

LOOPS = {"plain loop": False, "plain loop and read": True}
"""The plain loops, and whether each folio is read at once when it has been copied."""

MEMORY = 2 << 30
"""Bytes that the largest copy is made from and to."""

_SAMPLE = 32 << 20  # bytes that a run copies, of folios that are smaller
# The same loop, as copy_mc_fragile() has it, is in some processes half as slow again as in others,
# whichever tree's it is, mostly as long as they live. So no process decides.
_PROCESSES = 5


@dataclass(frozen=True)
class FolioRow(NativeRow):
    """A row of copies; its limit_ratio is against the best plain loop through the cache.

    The code is that of a class of CPU, run on this machine's core: no claim about another core.

    Attributes:
        function: a key of FUNCTIONS, or a key of LOOPS. The variants of these are cached and
            streamed, for the best of the loops that store through the cache and past it.
        cpu_class: one of CLASSES, or this.
        folio_bytes: the size of each folio.
    """

    function: str
    cpu_class: str
    folio_bytes: int


@dataclass(frozen=True)
class Loop:
    """Which plain loop was the best of its kind.

    Attributes:
        function: a key of LOOPS.
        variant: cached or streamed.
        folio_bytes: the size of each folio.
        loop: its name.
    """

    function: str
    variant: str
    folio_bytes: int
    loop: str


@dataclass(frozen=True)
class _Task:
    function: str
    cpu_class: str
    variant: str  # base, patched, or the name of a loop


def measure(
    program: Program, returns: str, runs: int, done: Callable[[float], None]
) -> tuple[list[FolioRow], list[Loop], float]:
    """Time the copies of folios of each of ORDERS, in shuffled rounds of several processes.

    Source and destination are out of the cache when a copy begins.

    Args:
        program: the host.
        returns: what returns are patched to.
        runs: how many rounds count. In each process one more comes first and does not, unless the
            folios are the largest.
        done: is told of each round.

    Returns:
        the rows, the loops of those that are loops, and the bytes a second of the best one that
        copies 2 MiB folios through the cache.
    """
    rows: list[FolioRow] = []
    loops: list[Loop] = []
    limit = 0.0
    shuffled = random.Random(SEED)
    for order in ORDERS:
        takes: dict[_Task, list[float]] = {}
        for share in _shares(runs):
            with Host(program) as host:
                kinds = dict(loop.split(":") for loop in host.ask("loops").split())
                _take(host, order, returns, share, list(kinds), shuffled, takes, done)
        best = _best(takes, kinds)
        rows += _rows(order, returns, takes, best)
        loops += [
            Loop(function, kind, PAGE << order, task.variant)
            for (function, kind), task in best.items()
        ]
        if order == 9:
            limit = _SAMPLE / statistics.median(takes[best["plain loop", "cached"]]) * 1e3
    return rows, loops, limit


def rounds(runs: int) -> int:
    """Return how many rounds `measure` makes in all."""
    return sum(share + _unused(order) for order in ORDERS for share in _shares(runs))


def _shares(runs: int) -> list[int]:
    """Return how many rounds count in each process."""
    processes = min(runs, _PROCESSES)
    return [runs * (one + 1) // processes - runs * one // processes for one in range(processes)]


def _unused(order: int) -> int:
    """Return how many rounds of each process do not count."""
    return 0 if PAGE << order > _SAMPLE else 1


def _take(
    host: Host,
    order: int,
    returns: str,
    runs: int,
    loops: list[str],
    shuffled: random.Random,
    takes: dict[_Task, list[float]],
    done: Callable[[float], None],
) -> None:
    """Add the milliseconds of `runs` rounds of one process to `takes`."""
    pages = max(_SAMPLE // PAGE, 1 << order)
    host.patch(returns)
    host.ask("map", FIRST_PFN, 2 * pages, -1)
    host.ask("memory", FIRST_PFN, 2 * pages, -1, 0)
    # Compounds of the size that is wanted, made by the base tree's own code.
    host.ask("init", "base", FIRST_PFN, 2 * pages, 3, order, 1, 0, 0, 0, 0)
    tasks = [
        _Task(function, cpu_class, variant)
        for function, (_, fragile) in FUNCTIONS.items()
        for cpu_class in (CLASSES if not fragile else CLASSES[1:2])
        for variant in ("base", "patched")
    ]
    tasks += [_Task(what, THIS_CPU, loop) for loop in loops for what in LOOPS]
    for number in range(-_unused(order), runs):
        shuffled.shuffle(tasks)
        for task in tasks:
            where = (order, pages >> order, FIRST_PFN, FIRST_PFN + pages)
            # A copy that is far larger than the cache evicts by itself.
            if PAGE << order <= _SAMPLE:
                host.ask("evict", FIRST_PFN, 2 * pages)
            if task.function in LOOPS:
                read = int(LOOPS[task.function])
                taken = int(host.ask("loop", read, task.variant, *where))
            else:
                name, fragile = FUNCTIONS[task.function]
                host.patch(returns, task.cpu_class, fragile=fragile)
                taken = int(host.ask("copy", task.variant, 0, name, *where).split()[0])
            if number >= 0:
                takes.setdefault(task, []).append(taken / 1e6)
        done(1)


def _best(takes: dict[_Task, list[float]], kinds: dict[str, str]) -> dict[tuple[str, str], _Task]:
    """Return the best of the loops by what they do and their kind."""
    return {
        (what, kind): min(
            (_Task(what, THIS_CPU, loop) for loop in kinds if kinds[loop] == kind),
            key=lambda task: statistics.median(takes[task]),
        )
        for what in LOOPS
        for kind in ("cached", "streamed")
    }


def _rows(
    order: int,
    returns: str,
    takes: dict[_Task, list[float]],
    best: dict[tuple[str, str], _Task],
) -> list[FolioRow]:
    pages = max(_SAMPLE // PAGE, 1 << order)
    functions = list(FUNCTIONS)
    shown = [(task, task.variant) for task in takes if task.function in FUNCTIONS]
    shown.sort(key=lambda one: (functions.index(one[0].function), one[0].cpu_class, one[1]))
    shown += [(task, kind) for (_, kind), task in best.items()]
    rows = []
    for task, variant in shown:
        mine = takes[task]
        median = statistics.median(mine)
        if task.function in LOOPS:
            base = best[task.function, "cached"]
        else:
            base = _Task(task.function, task.cpu_class, "base")
        rows.append(
            FolioRow(
                workload="folio",
                variant=variant,
                returns=returns,
                threads=1,
                device_bytes=pages * PAGE,
                pages=pages,
                runs_ms=mine,
                median_ms=median,
                ns_per_page=median * 1e6 / pages,
                speedup=paired(takes[base], mine),
                limit_ratio=paired(takes[best["plain loop", "cached"]], mine),
                function=task.function,
                cpu_class=task.cpu_class,
                folio_bytes=PAGE << order,
            )
        )
    return rows


def table(rows: list[FolioRow], loops: list[Loop]) -> Table:
    """Return a table of rows for a terminal: base beside patched, or cached beside streamed."""
    names = {(loop.function, loop.variant, loop.folio_bytes): loop.loop for loop in loops}
    shown = Table(
        title="Copies of folios, out of the cache",
        caption="the code of each class of CPU on this machine's core, no claim about another;\n"
        "of plain loops: the best that stores through the cache, and the best that streams",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("folio", "function", "CPU class"):
        shown.add_column(name, no_wrap=True)
    for name in ("GB/s", "patched", "speed-up", "of limit"):
        shown.add_column(name, justify="right", no_wrap=True)
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        pair = (before, after)
        which = [names.get((row.function, row.variant, row.folio_bytes)) for row in pair]
        speeds = [f"{row.device_bytes / row.median_ms / 1e6:.1f}" for row in pair]
        shown.add_row(
            format_power(after.folio_bytes),
            after.function,
            after.cpu_class if after.function in FUNCTIONS else f"{which[0]}/{which[1]}",
            *speeds,
            f"{after.speedup:.2f}x",
            f"{after.limit_ratio:.2f}",
        )
    return shown
