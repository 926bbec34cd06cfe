# SPDX-License-Identifier: GPL-2.0-only
"""Folios of 2 MiB on a device: made and split on fsdax, taken and freed as device-private memory.

Each step is timed twice: with its struct pages out of the cache, and with them in it.
"""

from collections.abc import Callable, Iterable
from functools import partial

from pagemint.bench.process import Host
from pagemint.bench.workload import FIRST_PFN, Settings, Task, Timed, Variant, Workload, map_window
from pagemint.results.rows import Case
from pagemint.words import PAGE, STRUCT_PAGE

FOLIO = 512
"""Pages of a folio."""

_TIMES = 128  # how often a run does each step
_FOLIOS = {"cold": _TIMES, "warm": 8}
"""Number of folios that each step goes over; the struct pages of eight fit into the L2 cache."""

_STEPS = {"dax-folio": ("init", "put"), "device-folio": ("init", "free")}
"""The names of the two steps of a workload."""

_TYPES = {"dax-folio": "fsdax", "device-folio": "private"}


def _memory(settings: Settings) -> int:
    return _TIMES * FOLIO * STRUCT_PAGE


def _setup(host: Host, settings: Settings) -> int:
    return map_window(host, _TIMES * FOLIO)


def _tasks(workload: str) -> Callable[[Settings], Iterable[Task]]:
    def tasks(settings: Settings) -> Iterable[Task]:
        for state in _FOLIOS:
            for step, part in zip(_STEPS[workload], ("make", "undo"), strict=True):
                case = Case(
                    workload,
                    _TIMES * FOLIO * PAGE,
                    _TIMES * FOLIO,
                    returns=settings.returns,
                    operation=f"{step}, {state}",
                    times=_TIMES,
                )
                for variant in settings.plain:
                    yield Task(case, variant, partial(_run, workload, variant, state, part))

    return tasks


def _run(workload: str, variant: Variant, state: str, part: str, host: Host) -> Timed:
    # The base tree's own code initialises the pages that the folios are made of.
    host.ask(
        "init",
        tree="base",
        start=FIRST_PFN,
        pages=_TIMES * FOLIO,
        type=_TYPES[workload],
        order=0,
    )
    answer = host.ask(
        workload.replace("-", "_"),
        tree=variant.tree,
        first=FIRST_PFN,
        folios=_FOLIOS[state],
        times=_TIMES // _FOLIOS[state],
        cold=int(state == "cold"),
    )
    return Timed(int(answer[part]))


WORKLOADS = tuple(
    Workload(
        name=name,
        memory=_memory,
        setup=_setup,
        tasks=_tasks(name),
        sized=False,
        since=(7, 3),
    )
    for name in _STEPS
)
