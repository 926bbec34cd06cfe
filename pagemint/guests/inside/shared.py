# SPDX-License-Identifier: GPL-2.0-only
"""Checks fsdax whose sections share a memmap until a page fault uses their pages."""

import errno
import mmap
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pagemint.guests.inside.checks import (
    PAGE,
    SYNC,
    Record,
    address_of,
    check,
    child,
    expect,
    files,
    frames_of,
    pattern,
    status_of,
)
from pagemint.guests.inside.devices import (
    ALIGN,
    SECTION,
    Namespace,
    last_range,
    memmap_bytes,
    memmap_growth,
    put,
    run,
    the_one,
)
from pagemint.guests.inside.filesystems import SMALL, make, mounted
from pagemint.guests.inside.modes import SHARED, Modes
from pagemint.guests.inside.tracing import calls, symbols

BLOCK = ALIGN  # bytes of the memmap of a section
FILE = 8 << 20  # bytes
LARGE = 160 << 20  # bytes of a file that is larger than a section
ORIGIN = 2 << 20  # bytes of the device behind dm-writecache
TASKS = 4  # processes that use the same section first
OFFLINE = Path("/sys/devices/system/memory/hard_offline_page")
FAIL = Path("/sys/kernel/debug/fail_page_alloc")
ORDER = 9  # the block of a section; without one it gets single pages
TRIES = "dax_direct_access"  # it allocates only to populate sections, and may fail
POPULATES = "pfn_populate_memmap"  # without it, a page fault has nothing to wait for
FLUSH = "do_kernel_range_flush"  # each CPU calls it
SECTIONS = Path("/sys/kernel/debug/memmap_shared")


class _Fsdax(Namespace):
    """A bound fsdax device, with its memmap in ordinary memory or on the device (`reserved`)."""

    def __init__(self, where: str, *, shares: bool) -> None:
        super().__init__("pfn", where)
        self.reserved = where == "map=dev"
        self._shares = shares
        self.bind()

    def bind(self) -> int:
        """Bind the device, and count the sections that then have a memmap of their own."""
        self._before = memmap_bytes()
        nanoseconds = super().bind()
        self.unused = self.own()
        self._shown = shown() if self._shares else []
        return nanoseconds

    def unbind(self) -> int:
        """Unbind the device, and check that its memmap was freed."""
        nanoseconds = super().unbind()
        expect(not memmap_growth(self._before), "some of the memmap was not freed")
        return nanoseconds

    def own(self) -> int:
        """Count the sections with a memmap of their own."""
        return (memmap_growth(self._before) or 0) // BLOCK - self._shares

    def expect_populated(self, low: int, high: int) -> str:
        """Check how many sections were populated since the bind, if sections share."""
        now = self.own() - self.unused
        if self._shares:
            expect(low <= now <= high, f"{now} sections were populated, not {low} to {high}")
            changes = [after - before for before, after in zip(self._shown, shown(), strict=True)]
            expect(changes == [-now, now], f"{SECTIONS} changed by {changes}, not {now}")
        return f"{low} to {high} sections populated"


def shown() -> list[int]:
    """Return how many sections the kernel says share a memmap, and how many have their own."""
    line = SECTIONS.read_text()
    match = re.fullmatch(r"\[range 0x\w+-0x\w+\] shared (\d+) own (\d+)\n", line)
    expect(match is not None, f"{SECTIONS} has: {line}")
    return [int(number) for number in match.groups()] if match else []


def populated(path: Path, where: str) -> str:
    """Touch the first page of a devdax device; only that populates its section.

    With map=dev the first section holds the memmap, so it was written at the bind.
    """
    before = shown() if SHARED.exists() else []
    with path.open("rb+", buffering=0) as file, mmap.mmap(file.fileno(), ALIGN) as memory:
        expect(not before or shown() == before, "a mapping populates sections")
        memory[0] = 1
    wanted = 0 if where == "map=dev" else 1
    changes = [old - new for old, new in zip(before, shown() if before else [], strict=True)]
    expect(changes in ([], [wanted, -wanted]), f"the sections changed by {changes}")
    return f"{wanted} by a page fault"


def fsdax(modes: Modes, where: str) -> Iterator[Record]:
    """Use files on a device; only page faults give its sections a memmap of their own."""
    works: dict[str, Callable[[_Fsdax, Path], str]] = {
        "read and write": _read_and_write,
        "mapping": _map,
        "first use by several processes": _use_together,
        "memory failure": _memory_failure,
    }
    with _bound(modes, where, shares=SHARED.exists()) as device:
        for kind in SMALL:
            for name, work in works.items():
                yield from check(f"{name}, {kind}", _on, kind, device, work)
        yield from files(device)


@contextmanager
def _bound(modes: Modes, where: str, *, shares: bool = True) -> Iterator[_Fsdax]:
    """Bind a device, whose sections share a memmap if the kernel can; unbind it at the end."""
    modes.choose("shared")
    device = _Fsdax(where, shares=shares)
    yield device
    device.unbind()


def _on(kind: str, device: _Fsdax, work: Callable[[_Fsdax, Path], str]) -> str:
    """Work with a new file system on a device that was just bound."""
    device.unbind()
    device.bind()
    make(SMALL[kind])
    with mounted(kind) as directory:
        return work(device, directory / "data")


def _read_and_write(device: _Fsdax, path: Path) -> str:
    data = pattern(1, FILE)
    path.write_bytes(data)
    expect(path.read_bytes() == data, "the data changed")
    return device.expect_populated(0, 0)


@contextmanager
def _mapped(path: Path, size: int) -> Iterator[mmap.mmap]:
    """Map a file of this size whose blocks are allocated."""
    with path.open("wb+") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        with mmap.mmap(file.fileno(), size) as memory:
            yield memory


def _map(device: _Fsdax, path: Path) -> str:
    """Fault on a hole, on pages of 4 KiB, and on whole blocks of 2 MiB; then truncate the file."""
    data = pattern(2, FILE)
    with path.open("wb+") as file:
        file.truncate(FILE)
        with mmap.mmap(file.fileno(), FILE) as memory:
            expect(memory[:] == bytes(FILE), "a hole has data")
            device.expect_populated(0, 0)
            memory[:] = data
        with mmap.mmap(file.fileno(), FILE, flags=SYNC) as memory:
            expect(memory[:] == data, "the data changed")
            memory[:PAGE] = bytes(PAGE)
        file.truncate(PAGE)
    expect(path.read_bytes() == bytes(PAGE), "the truncated file has other data")
    # The first section on the device holds the memmap, so was written at the bind.
    return device.expect_populated(0 if device.reserved else 1, 3)


def _use_together(device: _Fsdax, path: Path) -> str:
    """Let processes touch the pages of a file: each its own ones, some forwards, some backwards."""
    with _mapped(path, LARGE) as memory:
        children = [child(partial(_touch_every, memory, task)) for task in range(TASKS)]
        ended = [status_of(pid) for pid in children]
        expect(not any(ended), f"the processes ended with {ended}")
        firsts = memory[::PAGE]
    expect(firsts == bytes(range(1, TASKS + 1)) * (len(firsts) // TASKS), "the data changed")
    return device.expect_populated(1, 4)


def _touch_every(memory: mmap.mmap, task: int) -> None:
    """Touch the pages of one of the tasks."""
    pages = range(task * PAGE, LARGE, TASKS * PAGE)
    for offset in pages if task % 2 else reversed(pages):
        memory[offset] = task + 1


def _memory_failure(device: _Fsdax, path: Path) -> str:
    """Report a memory error for an unused page, which has no user, and for one that is mapped."""
    _, start, pages = last_range()
    # Some file systems know that no file has it, others leave it to the kernel, which refuses it.
    unused = _offline(start + pages - 1)
    device.expect_populated(0, 0)
    with _mapped(path, FILE) as memory:
        status = status_of(child(lambda: _use_and_offline(memory)))
    expect(status == -signal.SIGBUS, f"the user of a page ended with {status}")
    error = errno.errorcode.get(unused, "nothing")
    return f"{error} for an unused page, SIGBUS for the user of another"


def _use_and_offline(memory: mmap.mmap) -> None:
    memory[0] = 1
    _offline(*frames_of(address_of(memory), PAGE))


def _offline(frame: int) -> int:
    """Report a memory error; return the kernel's error number."""
    try:
        put(OFFLINE, f"{frame * PAGE:#x}")
    except OSError as error:
        return error.errno or 0
    return 0


def writecache(modes: Modes) -> Iterator[Record]:
    """Use a device as the cache of dm-writecache, which puts its pages into bios."""
    with _bound(modes, "map=mem") as device:
        yield from check("dm-writecache", _cached, device)


def _cached(device: _Fsdax) -> str:
    cache, data = the_one("pmem*"), pattern(4, ORIGIN)
    table = f"0 {ORIGIN // 512} writecache p /dev/ram0 {cache} {PAGE} 0"
    run("dmsetup", "create", "--noudevsync", "cached", "--table", table)
    try:
        path = the_one("dm-*")
        with path.open("rb+") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        run("dmsetup", "message", "cached", "0", "flush")
        expect(Path("/dev/ram0").read_bytes()[:ORIGIN] == data, "the data changed")
    finally:
        run("dmsetup", "remove", "--noudevsync", "cached")
    _, _, pages = last_range()
    sections = pages * PAGE // SECTION
    return device.expect_populated(sections - 1, sections)


def flushes(modes: Modes) -> Iterator[Record]:
    """Count the CPUs that flush their TLBs as page faults populate sections."""
    with _bound(modes, "map=mem") as device:
        yield from check("flushes", _on, "ext4", device, _flushes)


def _flushes(device: _Fsdax, path: Path) -> str:
    with _mapped(path, LARGE) as memory:
        before = device.own()
        first = calls(FLUSH, lambda: _touch(memory))
        populated = device.own() - before
        again = calls(FLUSH, lambda: _touch(memory))
    wanted = populated * (os.cpu_count() or 1)
    expect(populated > 1, f"{populated} sections were populated")
    expect((first, again) == (wanted, 0), f"{first} flushes, not {wanted}, and {again} afterwards")
    return f"{populated} sections, {first} flushes"


def _touch(memory: mmap.mmap) -> None:
    for offset in range(0, len(memory), PAGE):
        memory[offset] = 1


def failing(modes: Modes, where: str) -> Iterator[Record]:
    """Let the allocations for a section fail, in a page fault that waits for memory, or at all.

    If blocks are reserved, nothing is allocated, so nothing fails.
    """
    works = {"no memory": _no_memory, "short of memory": _short_of_memory}
    if where == "map=dev":
        works = {"no memory": _reserved}
    with _bound(modes, where) as device:
        for kind in SMALL:
            for name, work in works.items():
                yield from check(f"{name}, {kind}", _on, kind, device, work)


def _short_of_memory(device: _Fsdax, path: Path) -> str:
    data = pattern(3, FILE)
    with _mapped(path, FILE) as memory:
        status = _touch_failing(memory, 0, TRIES)
        expect(status == 0, f"a page fault that can wait for memory: status {status}")
        memory[:] = data
        expect(memory[:] == data, "the data changed")
    return device.expect_populated(1, 2)


def _no_memory(device: _Fsdax, path: Path) -> str:
    data = pattern(3, FILE)
    with _mapped(path, FILE) as memory:
        status = _touch_failing(memory, 0)
        expect(status == -signal.SIGBUS, f"without memory: status {status}")
        device.expect_populated(0, 0)
        status = _touch_failing(memory, ORDER)
        expect(status == 0, f"without blocks: status {status}")
        memory[:] = data
        expect(memory[:] == data, "the data changed")
    return device.expect_populated(1, 2)


def _reserved(device: _Fsdax, path: Path) -> str:
    with _mapped(path, LARGE) as memory:
        status = _touch_failing(memory, 0)
        expect(status == 0, f"with reserved blocks: status {status}")
    return device.expect_populated(1, 3)


def _touch_failing(memory: mmap.mmap, order: int, where: str = POPULATES) -> int:
    """Touch mapped memory in a process that gets no pages of this order or a higher one.

    Only allocations fail that the function `where` of the kernel makes. Return its status.
    """
    start, end = _extent(where)
    settings = {"task-filter": "Y", "ignore-gfp-wait": "N", "min-order": str(order)}
    settings |= {"probability": "100", "interval": "1", "times": "-1", "verbose": "0"}
    settings |= {"require-start": f"{start:#x}", "require-end": f"{end:#x}"}
    for name, value in settings.items():
        (FAIL / name).write_text(value)

    def touch() -> None:
        Path("/proc/self/make-it-fail").write_text("1")
        signal.alarm(60)  # a fault that is repeated for ever
        _touch(memory)

    status = status_of(child(touch))
    (FAIL / "probability").write_text("0")
    return status


def _extent(function: str) -> tuple[int, int]:
    """Return where a function of the kernel begins, and where the next one does."""
    known = [line.split() for line in symbols()]
    start = next(int(address, 16) for address, _, name in known if name == function)
    return start, min(int(address, 16) for address, *_ in known if int(address, 16) > start)
