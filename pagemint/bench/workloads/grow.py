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
from pagemint.results.rows import Case
from pagemint.words import PAGE, SECTION, STRUCT_PAGE


def _sections(settings: Settings) -> int:
    return settings.device_bytes // PAGE // SECTION


def _tasks(settings: Settings) -> Iterable[Task]:
    sections = _sections(settings)
    case = Case(
        "grow",
        settings.device_bytes,
        sections * SECTION,
        returns=settings.returns,
        operation="section",
        times=sections,
    )
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
        memory=lambda settings: _sections(settings) * SECTION * STRUCT_PAGE,
        setup=lambda host, settings: map_window(host, _sections(settings) * SECTION),
        tasks=_tasks,
        since=(7, 3),
        uses=("ordinary",),
    ),
)
