# SPDX-License-Identifier: GPL-2.0-only
"""Binds devices again and again, and looks for memory that an unbind does not give back."""

from collections.abc import Iterator
from pathlib import Path

from pagemint.guests.inside.checks import PAGE, Record, check, expect
from pagemint.guests.inside.devices import (
    SECTION,
    Device,
    Namespace,
    PrivateMemory,
    last_range,
    meminfo,
    memmap_bytes,
    memmap_growth,
    settled,
)
from pagemint.guests.inside.modes import SHARED, Modes
from pagemint.guests.inside.shared import BLOCK, shown

KMEMLEAK = Path("/sys/kernel/debug/kmemleak")
WARM_UP = 20  # binds, at most, that fill the kernel's caches
LEAK = 4 << 20  # bytes by which the page cache and lists of free objects may change
TIB = 1 << 40  # bytes


def leaks(modes: Modes, count: int) -> Iterator[Record]:
    """Bind a device `count` times; on a kernel with kmemleak, ask that as well."""
    modes.choose(modes.names[-1])
    device = Namespace("pfn", "map=mem")
    device.bind()
    yield from check("memory", _rebind, device, count)
    if KMEMLEAK.exists():
        yield from check("kmemleak", _kmemleak)
    device.unbind()


def limits(modes: Modes) -> Iterator[Record]:
    """Bind devices whose sections share a memmap that would hardly fit into the guest otherwise.

    The kernel of base is not booted for that. Each record has a text that stands for it.
    """
    expect(SHARED.exists(), "sections cannot share a memmap on this kernel")
    modes.with_shared().choose("shared")
    # Base deduplicates the memmap of devdax: two pages of eight are left, 16 bytes a page.
    for name, device, size, count, struct_page in (
        ("1 TiB", PrivateMemory(TIB), TIB, 100, 64),
        ("16 TiB", PrivateMemory(16 * TIB), 16 * TIB, 5, 64),
        ("1 TiB of devdax", Namespace("dax", "map=mem"), TIB, 5, 16),
    ):
        memmap = f"{size // PAGE * struct_page >> 30} GiB by calculation"
        for record in check(f"memmap of {name}", _share, device, size):
            yield {**record, "base": f"{memmap}, {struct_page} bytes a page"}
        for record in check(f"{count} binds of {name}", _rebind, device, count):
            yield {**record, "base": memmap}
        device.unbind()


def _share(device: Device, size: int) -> str:
    """Bind a device all of whose sections share one block of memmap."""
    total, before = meminfo()["MemTotal"], memmap_bytes()
    device.bind()
    _, _, pages = last_range()
    expect(pages == size // PAGE, f"{pages} pages were bound, not {size // PAGE}")
    taken = memmap_growth(before)
    expect(taken == BLOCK, f"the memmap takes {taken} bytes, not {BLOCK}")
    expect(shown() == [size // SECTION, 0], f"{shown()} sections share, and do not")
    return f"{BLOCK >> 20} MiB, in a guest with {total / (1 << 30):.1f} GiB"


def _rebind(device: Device, count: int) -> str:
    """Unbind and bind a device, with a look at the memory before and after that."""
    memory, around = memmap_bytes(), []
    for binds in (min(count, WARM_UP), count):
        for _ in range(binds):
            device.unbind()
            device.bind()
        around.append(settled())
    before, after = around
    expect(not memmap_growth(memory), "the memmap takes more than before")
    for name, sign in (("MemAvailable", -1), ("Slab", 1), ("PageTables", 1)):
        lost = sign * (after[name] - before[name])
        expect(lost < LEAK, f"{name} was {before[name]} bytes, and is {after[name]}")
    left = [f"{sizes['MemAvailable'] / (1 << 20):,.1f} MiB" for sizes in around]
    return f"{left[0]} available before, {left[1]} after"


def _kmemleak() -> str:
    # It reports a new object only after the second scan.
    for _ in range(2):
        KMEMLEAK.write_text("scan")
    report = KMEMLEAK.read_text()
    expect(not report, report)
    return "nothing"
