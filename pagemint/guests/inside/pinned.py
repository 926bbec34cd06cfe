# SPDX-License-Identifier: GPL-2.0-only
"""Maps and pins pages of a devdax device, and checks that they are free afterwards."""

import ctypes
import fcntl
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pagemint.guests.inside.checks import (
    LIBC,
    PAGE,
    Record,
    address_of,
    check,
    child,
    expect,
    pattern,
    status_of,
)
from pagemint.guests.inside.devices import ALIGN, PROBE, the_one

GUP_TEST = PROBE.with_name("gup_test")
# The numbers of mm/gup_test.h.
START, STOP, READ = 0x40186707, 0x6708, 0x40086709
WRITE, FAST = 1, 2
SIZE = 16 * PAGE  # bytes that are pinned
TASKS, ROUNDS = 4, 500  # processes that map the same pages, and how often
DISK = Path("/dev/ram0")
SYS_MREMAP, MREMAP_FIXED = 25, 1 | 2  # it needs MREMAP_MAYMOVE as well


def devdax() -> Iterator[Record]:
    """Use pages in ways that take references, with the same outcome on all kernels."""
    works: dict[str, Callable[[], str]] = {
        "pins outlive the mapping": partial(_pin, WRITE),
        "fast pins outlive the mapping": partial(_pin, WRITE | FAST),
        "fork, mremap and MADV_DONTNEED": _move,
        "direct I/O": _direct,
        "page faults of several processes": _together,
    }
    for name, work in works.items():
        yield from check(name, _freed, work)


def references() -> int:
    """Return the number of references to all pages of the device."""
    return int((PROBE / "refs").read_text())


def _freed(work: Callable[[], str]) -> str:
    before = references()
    said = work()
    expect(references() == before, f"{references() - before} references are left")
    return said


@contextmanager
def _mapped() -> Iterator[mmap.mmap]:
    path = the_one("dax*.*", "/dev")
    with path.open("rb+", buffering=0) as file, mmap.mmap(file.fileno(), ALIGN) as memory:
        yield memory


class _Pins:
    """Pins of the first pages of a mapping, which end with drop()."""

    def __init__(self, memory: mmap.mmap, flags: int) -> None:
        self._file = GUP_TEST.open("rb+", buffering=0)
        fcntl.ioctl(self._file, START, struct.pack("QQI4x", address_of(memory), SIZE, flags))

    def read(self) -> bytes:
        """Return the data of the pages."""
        data = ctypes.create_string_buffer(SIZE)
        fcntl.ioctl(self._file, READ, struct.pack("Q", ctypes.addressof(data)))
        return data.raw

    def drop(self) -> None:
        fcntl.ioctl(self._file, STOP)
        self._file.close()


def _pin(flags: int) -> str:
    data = pattern(5, SIZE)
    with _mapped() as memory:
        memory[:SIZE] = data
        pins = _Pins(memory, flags)
    expect(pins.read() == data, "the pinned pages have other data")
    pins.drop()
    with _mapped() as memory:
        expect(memory[:SIZE] == data, "the data changed")
    return f"{SIZE // PAGE} pages"


def _move() -> str:
    data = pattern(6, ALIGN)
    with _mapped() as memory, _mapped() as other:
        memory[:] = data
        memory.madvise(mmap.MADV_DONTNEED)
        status = status_of(child(lambda: expect(memory[:] == data, "the data changed")))
        expect(status == 0, f"a process that was forked ended with {status}")
        expect(memory[:] == data, "the data changed")
        words = (address_of(memory), ALIGN, ALIGN, MREMAP_FIXED, address_of(other))
        moved = LIBC.syscall(SYS_MREMAP, *map(ctypes.c_long, words))
        expect(moved != -1, f"mremap(2) failed with {ctypes.get_errno()}")
        expect(other[:] == data, "the data changed")
    return f"{ALIGN >> 20} MiB stayed"


def _direct() -> str:
    """Write from mapped pages to a disk, and read into them."""
    data = pattern(7, ALIGN)
    disk = os.open(DISK, os.O_RDWR | os.O_DIRECT)
    try:
        with _mapped() as memory:
            memory[:] = data
            os.pwrite(disk, memory, 0)
            memory[:] = bytes(ALIGN)
            os.preadv(disk, [memory], 0)
            expect(memory[:] == data, "the data changed")
    finally:
        os.close(disk)
    return f"{ALIGN >> 20} MiB written and read"


def _together() -> str:
    """Let processes map the same folio and drop it, so that it is often used first and last."""

    def touch(task: int) -> None:
        for _ in range(ROUNDS):
            with _mapped() as memory:
                memory[task] = task

    ended = [status_of(one) for one in [child(partial(touch, task)) for task in range(TASKS)]]
    expect(not any(ended), f"the processes ended with {ended}")
    return f"{TASKS} processes, {ROUNDS} times"
