# SPDX-License-Identifier: GPL-2.0-only
"""Looks through memmaps for what their memory held before."""

import mmap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from checks import check, expect
from devices import ALIGN, PROBE, Device, Namespace, PrivateMemory, last_range, run, the_one
from record import Record

SOILED = 32 * ALIGN  # bytes
BYTE = 0xA5
SECTION = 128 << 20  # bytes
DAX = Path("/sys/bus/dax/devices")


def soil() -> None:
    """Fill huge pages with a pattern and free them.

    The kernel then takes them for a memmap. Without init_on_alloc they keep the pattern, so a byte
    that nobody writes changes the hash.
    """
    with mmap.mmap(-1, SOILED + ALIGN, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with suppress(OSError):  # the kernel has no huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        for offset in range(0, len(memory), ALIGN):
            memory[offset : offset + ALIGN] = bytes([BYTE]) * ALIGN


def memmaps(size: int) -> Iterator[Record]:
    """Look through the memmap of each kind of device, and of memory that is not online yet.

    Args:
        size: bytes of device-private memory.
    """
    kinds: dict[str, Callable[[], Device]] = {
        "private": lambda: PrivateMemory(size),
        "fsdax": lambda: Namespace("pfn", "ram"),
        "devdax": lambda: Namespace("dax", "ram"),
    }
    for name, make in kinds.items():
        yield {"running": f"memmap of {name}"}
        yield check(f"memmap of {name}", lambda make=make: _bound(make()))
    yield {"running": "memmap of offline memory"}
    yield check("memmap of offline memory", _offline)


def _bound(device: Device) -> str:
    soil()
    device.bind()
    _, start, pages = last_range()
    try:
        return _looked_through(start, start + pages)
    finally:
        device.unbind()


def _offline() -> str:
    Namespace("dax", "ram").bind()
    name = the_one("dax*.*", "/dev").name
    start, size = int((DAX / name / "resource").read_text(), 16), (DAX / name / "size").read_text()
    soil()
    run("daxctl", "reconfigure-device", "--mode=system-ram", "--no-online", name)
    try:
        return _looked_through(start // mmap.PAGESIZE, (start + int(size)) // mmap.PAGESIZE)
    finally:
        run("daxctl", "reconfigure-device", "--mode=devdax", "--force", name)


def _looked_through(start: int, end: int) -> str:
    """Look for the pattern in all struct pages of the sections of some PFNs.

    A part of a section can have a memmap for more pages than the device has.
    """
    section = SECTION // mmap.PAGESIZE
    first, last = start // section * section, -(-end // section) * section
    for name, value in (
        ("pfn", first),
        ("pages", last - first),
        ("word", BYTE * 0x0101010101010101),
    ):
        (PROBE / f"scan_{name}").write_text(str(value))
    mapped, found = map(int, (PROBE / "scan").read_text().split())
    expect(mapped > 0, "nothing is mapped")
    expect(found == 0, f"{found} of {mapped} words are what the memory held before")
    return f"{mapped} words"
