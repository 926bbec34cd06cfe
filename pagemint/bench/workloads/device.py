# SPDX-License-Identifier: GPL-2.0-only
"""The memmap of a device: memmap_init_zone_device() on single pages and on compounds."""

from collections.abc import Iterable
from dataclasses import dataclass

from pagemint.bench.workload import (
    FIRST_PFN,
    Settings,
    Task,
    Workload,
    command_tasks,
    fill_loops,
    map_memmap,
    memmap_bytes,
    shares_work,
)
from pagemint.results.rows import Case
from pagemint.words import PAGE


@dataclass(frozen=True)
class _Device:
    """Arguments of the command init.

    Attributes:
        name: the name of the workload.
        type: the type of the memory.
        order: the order of its compounds.
        altmap: whether the memmap lies on the device, and so is not deduplicated.
    """

    name: str
    type: str
    order: int = 0
    altmap: bool = False

    def pages(self, settings: Settings) -> int:
        """Return how many pages are initialised: whole compounds only."""
        return settings.device_bytes // PAGE >> self.order << self.order

    def memory(self, settings: Settings) -> int:
        """Return the bytes of the memmap, or 0 if no compound fits the device."""
        return memmap_bytes(settings) if self.pages(settings) else 0

    def tasks(self, settings: Settings) -> Iterable[Task]:
        """Return every variant with one thread, and those that share work with more threads."""
        for variant in settings.modal:
            for threads in settings.threads if shares_work(variant) else (1,):
                case = Case(
                    self.name,
                    settings.device_bytes,
                    self.pages(settings),
                    threads=threads,
                    returns=settings.returns,
                )
                where = {"start": FIRST_PFN, "pages": case.pages}
                yield from command_tasks(
                    case,
                    [variant],
                    "init",
                    {**where, "type": self.type, "order": self.order, "altmap": int(self.altmap)},
                )

    def workload(self) -> Workload:
        """Return the workload."""
        return Workload(
            name=self.name,
            memory=self.memory,
            setup=map_memmap,
            tasks=self.tasks,
            loops=lambda host, settings: fill_loops(host, settings, settings.threads),
        )


WORKLOADS = tuple(
    device.workload()
    for device in (
        _Device("fsdax", "fsdax"),
        _Device("devdax", "generic", 9, altmap=True),
        _Device("devdax-1g", "generic", 18, altmap=True),
        _Device("private", "private"),
    )
)
"""devdax has compounds of 2 MiB, devdax-1g of 1 GiB."""
