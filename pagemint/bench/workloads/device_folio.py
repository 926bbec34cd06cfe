# SPDX-License-Identifier: GPL-2.0-only
"""Folios of 2 MiB on a device: made and split on fsdax, taken and freed as device-private memory.

Each step is timed twice: with its struct pages out of the cache, and with them in it.
"""

from collections.abc import Callable, Iterable

from pagemint.bench.process import Host
from pagemint.bench.workload import FIRST_PFN, Settings, Task, Workload, command_tasks, map_window
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
    def prepare(host: Host) -> None:
        # The base tree's own code initialises the pages that the folios are made of.
        where = {"start": FIRST_PFN, "pages": _TIMES * FOLIO}
        host.ask("init", tree="base", **where, type=_TYPES[workload], order=0)

    def tasks(settings: Settings) -> Iterable[Task]:
        for state, folios in _FOLIOS.items():
            arguments = {"folios": folios, "times": _TIMES // folios, "cold": int(state == "cold")}
            for step, part in zip(_STEPS[workload], ("make", "undo"), strict=True):
                case = Case(
                    workload,
                    _TIMES * FOLIO * PAGE,
                    _TIMES * FOLIO,
                    returns=settings.returns,
                    operation=f"{step}, {state}",
                    times=_TIMES,
                )
                yield from command_tasks(
                    case,
                    settings.plain,
                    workload.replace("-", "_"),
                    {"first": FIRST_PFN, **arguments},
                    answers=(part,),
                    prepare=prepare,
                )

    return tasks


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
