# SPDX-License-Identifier: GPL-2.0-only
"""Checks that no memmap shows the old contents of its memory."""

import mmap
from collections.abc import Callable, Iterator

from pagemint.guests.inside.checks import Record, check, expect
from pagemint.guests.inside.devices import (
    DAX,
    MEMORY,
    SECTION,
    Device,
    Namespace,
    PrivateMemory,
    last_range,
    meminfo,
    scan,
    soil,
    unbound_dax,
)


def devices(size: int) -> Iterator[Record]:
    """Look through the memmap of each kind of device.

    Args:
        size: bytes of device-private memory.
    """
    yield from check("memmap of private", _bound, lambda: PrivateMemory(size))
    yield from check("memmap of fsdax", _bound, lambda: Namespace("pfn", "map=mem"))
    yield from check("memmap of devdax", _bound, lambda: Namespace("dax", "map=mem"))


def offline() -> Iterator[Record]:
    """Look through the memmap of hot-added memory that is not online yet."""
    yield from check("memmap of offline memory", _offline)


def _bound(make: Callable[[], Device]) -> str:
    device = make()
    soil(meminfo()["MemTotal"])  # all blocks that a memmap can get
    device.bind()
    _, start, pages = last_range()
    try:
        return _looked_through(start, start + pages)
    finally:
        device.unbind()


def _offline() -> str:
    name, size = unbound_dax()
    start = int((DAX / "devices" / name / "resource").read_text(), 0)
    (MEMORY / "auto_online_blocks").write_text("offline")
    soil(meminfo()["MemTotal"])  # all blocks that a memmap can get
    (DAX / "drivers/kmem/new_id").write_text(name)
    return _looked_through(start // mmap.PAGESIZE, (start + size) // mmap.PAGESIZE)


def _looked_through(start: int, end: int) -> str:
    """Look for the pattern in all struct pages of the sections of some PFNs.

    A part of a section can have a memmap for more pages than the device has.
    """
    section = SECTION // mmap.PAGESIZE
    first, last = start // section * section, -(-end // section) * section
    mapped, stale = map(int, scan("scan", first, last - first).split())
    expect(mapped > 0, "nothing is mapped")
    expect(stale == 0, f"{stale} of {mapped} words are what the memory held before")
    return f"{mapped} words"
