# SPDX-License-Identifier: GPL-2.0-only
"""Ordinary memory: hot-added blocks brought online, and deferred struct page init at boot."""

from collections.abc import Iterable
from functools import partial

from pagemint.bench.process import Host
from pagemint.bench.workload import (
    FIRST_PFN,
    Settings,
    Task,
    Workload,
    command_tasks,
    fill_loops,
    map_memmap,
    map_window,
    memmap_bytes,
)
from pagemint.results.rows import Case
from pagemint.words import PAGE, SECTION, STRUCT_PAGE

_BLOCKS = (128 << 20, 2 << 30)
"""Bytes of a memory block: the smallest on x86-64, and the one of machines with much memory."""

_CHUNK = 4 << 20
"""Bytes that boot frees at a time."""

_NUMBERS = (1, 64, 1024, 8192)
"""The blocks of 128 MiB that are brought online, by their number in the zone."""

_DRIVERS = {"none kept": 1, "half kept": 3, "all kept": 2, "Hyper-V": 4}
"""The values of enum native_driver that are timed, by the pages that the driver keeps offline.

hv_balloon keeps none, but mainline brings them online one by one.
"""

_DRIVER_BLOCKS = 64
"""The blocks of 128 MiB that a driver adds."""

_DRIVER_PAGES = _DRIVER_BLOCKS * SECTION

_TIMED_PFN = FIRST_PFN + (_NUMBERS[-1] - 1) * SECTION
"""The first page of the block that is timed: all blocks that are online before it are below."""


def _pages(settings: Settings, block: int) -> int:
    """Return how many pages are initialised: whole blocks only."""
    return settings.device_bytes // block * block // PAGE


def _case(name: str, settings: Settings, block: int, shown: int) -> Case:
    return Case(
        name,
        settings.device_bytes,
        _pages(settings, block),
        returns=settings.returns,
        block_bytes=shown,
    )


def _hotplug_memory(settings: Settings) -> int:
    """Return the bytes of the memmap, or 0 if the memory is smaller than a block."""
    return memmap_bytes(settings) if settings.device_bytes >= _BLOCKS[0] else 0


def _hotplug_tasks(settings: Settings) -> Iterable[Task]:
    # No block is larger than the memory.
    largest = 1 << settings.device_bytes.bit_length() - 1
    for block in dict.fromkeys(min(block, largest) for block in _BLOCKS):
        case = _case("hotplug", settings, block, block)
        where = {"start": FIRST_PFN, "pages": case.pages, "block": block // PAGE}
        yield from command_tasks(
            case, settings.modal, "hotplug", where, answers=("init", "walk"), walk="walk"
        )


def _driver_tasks(settings: Settings) -> Iterable[Task]:
    pages = _DRIVER_PAGES
    for kept, number in _DRIVERS.items():
        case = Case(
            "driver",
            pages * PAGE,
            pages,
            returns=settings.returns,
            operation=kept,
            times=_DRIVER_BLOCKS,
        )
        where = {"start": FIRST_PFN, "pages": pages, "block": SECTION, "driver": number}
        yield from command_tasks(case, settings.plain, "hotplug", where, answers=("init", "walk"))


def _online_setup(host: Host, settings: Settings) -> int:
    answer = host.ask("map", first=_TIMED_PFN, pages=SECTION)
    host.ask("repeat", pages=SECTION, times=_NUMBERS[-1] - 1)
    return int(answer["huge"])


def _online_tasks(settings: Settings) -> Iterable[Task]:
    for number in _NUMBERS:
        case = Case(
            "online",
            SECTION * PAGE,
            SECTION,
            returns=settings.returns,
            operation=f"block {number:,}",
        )
        where = {"start": _TIMED_PFN, "before": number - 1}
        yield from command_tasks(case, settings.plain, "online", where)


def _boot_memory(settings: Settings) -> int:
    """Return the bytes of the memmap, or 0 if the memory is smaller than a chunk."""
    return memmap_bytes(settings) if _pages(settings, _CHUNK) else 0


def _boot_tasks(settings: Settings) -> Iterable[Task]:
    case = _case("boot", settings, _CHUNK, 0)
    where = {"start": FIRST_PFN, "pages": case.pages}
    free = {"free0": FIRST_PFN, "end0": FIRST_PFN + case.pages}
    return command_tasks(case, settings.modal, "boot", where | free)


_LOOPS = partial(fill_loops, threads=(1,))

WORKLOADS = (
    Workload("hotplug", _hotplug_memory, map_memmap, _hotplug_tasks, _LOOPS),
    Workload(
        "driver",
        lambda settings: _DRIVER_PAGES * STRUCT_PAGE,
        lambda host, settings: map_window(host, _DRIVER_PAGES),
        _driver_tasks,
        sized=False,
    ),
    Workload("boot", _boot_memory, map_memmap, _boot_tasks, _LOOPS),
    Workload(
        "online",
        lambda settings: SECTION * STRUCT_PAGE,
        _online_setup,
        _online_tasks,
        sized=False,
    ),
)
"""Each uses one thread. The kernel's hot-add has one, and its boot one for each piece of memory."""
