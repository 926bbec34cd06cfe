# SPDX-License-Identifier: GPL-2.0-only
"""Sections that allocations initialise when their zone runs out of memory.

A tree that cannot leave sections uninitialised does the same work at boot. Its time, with which
both are compared, is that of the workload boot.
"""

from collections.abc import Iterable
from functools import partial

from pagemint.bench.process import Host
from pagemint.bench.workload import (
    FIRST_PFN,
    Settings,
    Task,
    Timed,
    Variant,
    Workload,
    map_window,
)
from pagemint.bench.workloads import vmemmap
from pagemint.results.rows import Case
from pagemint.words import STRUCT_PAGE


def _case(settings: Settings) -> Case:
    return vmemmap.case_of("grow", "section", settings)


def _tasks(settings: Settings) -> Iterable[Task]:
    case = _case(settings)
    for variant in settings.plain:
        yield Task(case, variant, partial(_run, variant, case))


def _run(variant: Variant, case: Case, host: Host) -> Timed:
    memory = {"tree": variant.tree, "start": FIRST_PFN, "pages": case.pages}
    # Boot finds no free memory: it makes the zone, and initialises nothing.
    host.ask("boot", **memory)
    answer = host.ask("grow", tree=variant.tree, start=FIRST_PFN, sections=case.times)
    if answer["grown"] == "0":
        answer = host.ask("boot", **memory, free0=FIRST_PFN, end0=FIRST_PFN + case.pages)
    return Timed(int(answer["ns"]))


WORKLOADS = (
    Workload(
        name="grow",
        memory=lambda settings: _case(settings).pages * STRUCT_PAGE,
        setup=lambda host, settings: map_window(host, _case(settings).pages),
        tasks=_tasks,
        since=(7, 3),
        uses=("ordinary",),
    ),
)
