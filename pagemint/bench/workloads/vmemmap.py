# SPDX-License-Identifier: GPL-2.0-only
"""The memmap of a device from the page allocator: its blocks of 2 MiB, and then the fill.

Only whole sections of 128 MiB take part: each has one block.
"""

from collections.abc import Iterable
from functools import partial

from pagemint.bench.process import Host
from pagemint.bench.workload import (
    FIRST_PFN,
    NEXT,
    Settings,
    Task,
    Timed,
    Variant,
    Workload,
    choose,
    map_window,
)
from pagemint.results.rows import Case
from pagemint.words import BASE, PAGE, SECTION, STRUCT_PAGE

BLOCK = SECTION * STRUCT_PAGE // PAGE
"""Pages of the memmap of a section."""


def _sections(settings: Settings) -> int:
    """Return the number of whole sections, and of the blocks for their memmap."""
    return settings.device_bytes // PAGE // SECTION


def pages(settings: Settings) -> int:
    """Return the pages whose memmap is mapped: those of the device, and those of its memmap."""
    return _sections(settings) * (SECTION + BLOCK)


def case_of(workload: str, operation: str, settings: Settings) -> Case:
    """Return the condition of an operation on each section of the device."""
    sections = _sections(settings)
    return Case(
        workload,
        settings.device_bytes,
        sections * SECTION,
        returns=settings.returns,
        operation=operation,
        times=sections,
    )


def _tasks(settings: Settings) -> Iterable[Task]:
    case = case_of("vmemmap", "blocks and fill", settings)
    for variant in settings.modal:
        yield Task(case, variant, partial(run, variant, case))


def run(variant: Variant, case: Case, host: Host) -> Timed:
    """Write the memmap of a device from blocks that were just allocated."""
    choose(host, variant)
    # The struct pages of the blocks are behind those of the device.
    memory = FIRST_PFN + case.pages
    # Linux 7.4 lets the page allocator zero the blocks, as base does.
    blocks = BASE if variant == NEXT else variant.tree
    made = host.ask("vmemmap", tree=blocks, first=FIRST_PFN, blocks=case.times, page=memory)
    fill = host.ask(
        "init", tree=variant.tree, start=FIRST_PFN, pages=case.pages, type="private", order=0
    )
    return Timed(int(made["ns"]) + int(fill["ns"]))


WORKLOADS = (
    Workload(
        name="vmemmap",
        memory=lambda settings: pages(settings) * STRUCT_PAGE,
        setup=lambda host, settings: map_window(host, pages(settings)),
        tasks=_tasks,
        since=(7, 3),
        uses=("device",),
    ),
)
