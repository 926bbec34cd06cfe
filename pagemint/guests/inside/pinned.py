# SPDX-License-Identifier: GPL-2.0-only
"""Maps and pins pages of a devdax device, and checks that they are free afterwards."""

import ctypes
import fcntl
import mmap
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread

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
from pagemint.guests.inside.devices import (
    ALIGN,
    DAX,
    LARGE_ALIGN,
    PROBE,
    Device,
    run,
    the_one,
    wait_until,
)

GUP_TEST = PROBE.with_name("gup_test")
# The numbers of mm/gup_test.h.
START, STOP, READ = 0x40186707, 0x6708, 0x40086709
WRITE, FAST = 1, 2
# The numbers of linux/vfio.h.
SET_IOMMU, SET_CONTAINER, MAP_DMA, UNMAP_DMA = 0x3B66, 0x3B68, 0x3B71, 0x3B72
TYPE1, READABLE, WRITABLE = 3, 1, 2
PCI = Path("/sys/bus/pci/devices")
EDU = "0x11e8\n"  # a device for teaching, which nothing drives
SIZE = 16 * PAGE  # bytes that are pinned
TASKS, ROUNDS = 4, 500  # processes that map the same pages, and how often
PAUSE = 3  # seconds in which an unbind would be done if it did not wait
DISK = Path("/dev/ram0")
SYS_MREMAP, MREMAP_FIXED = 25, 1 | 2  # it needs MREMAP_MAYMOVE as well
MADV_GUARD_INSTALL = 102


def devdax() -> Iterator[Record]:
    """Use pages in ways that take references, with the same outcome on all kernels."""
    yield from check("pins outlive the mapping", _freed, partial(_pin, WRITE))
    yield from check("fast pins outlive the mapping", _freed, partial(_pin, WRITE | FAST))
    yield from check("fork, mremap and MADV_DONTNEED", _freed, _move)
    yield from check("direct I/O", _freed, _direct)
    yield from check("page faults of several processes", _freed, _together)


def unbinds(device: Device) -> Iterator[Record]:
    """Count the references to pages, and unbind the device while some of these are pinned.

    The kernel of base would crash, and is not booted. Each record has a text that stands for it.
    """
    for record in check("free pages have no references", _unused):
        yield {**record, "base": "each has one"}
    for record in check("an unbind waits for pins", _wait, device):
        yield {**record, "base": "an oops when the pages are unpinned"}


def forks() -> Iterator[Record]:
    """Fork a process that maps compounds of 1 GiB, so that its page tables are copied."""
    for record in check("a fork takes no reference away", _freed, _fork):
        yield {**record, "base": "Bad rss-counter state"}


def dynamic() -> Iterator[Record]:
    """Touch a mapping of a device that is unbound. A dynamic device has no pgmap then."""
    yield from check("a mapping outlives its driver", _outlive)


def vfio() -> Iterator[Record]:
    """Let a device of QEMU's access pages through VFIO, and take them from it again."""
    yield from check("VFIO", _freed, _vfio)


def references() -> int:
    """Return the number of references to all pages of the device."""
    return int((PROBE / "refs").read_text())


def _unused() -> str:
    expect(references() == 0, f"{references()} references right after a bind")
    with _mapped() as memory:
        memory[0] = 1
        expect(references() == 1, f"{references()} references to a folio that is mapped once")
    expect(references() == 0, f"{references()} references after it was unmapped")
    return "0, 1 while a folio is mapped"


def _freed(work: Callable[[], str]) -> str:
    before = references()
    finding = work()
    expect(references() == before, f"{references() - before} references are left")
    return finding


@contextmanager
def _mapped(size: int = ALIGN) -> Iterator[mmap.mmap]:
    path = the_one("dax*.*")
    with path.open("rb+", buffering=0) as file, mmap.mmap(file.fileno(), size) as memory:
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


def _vfio() -> str:
    """Map pages for the device, as for the memory of a virtual machine."""
    pci = next(path for path in PCI.iterdir() if (path / "device").read_text() == EDU)
    (pci / "driver_override").write_text("vfio-pci")
    (PCI.with_name("drivers_probe")).write_text(pci.name)
    group = os.open(f"/dev/vfio/{(pci / 'iommu_group').readlink().name}", os.O_RDWR)
    container = os.open("/dev/vfio/vfio", os.O_RDWR)
    fcntl.ioctl(group, SET_CONTAINER, struct.pack("i", container))
    fcntl.ioctl(container, SET_IOMMU, TYPE1)
    before = references()
    with _mapped() as memory:
        words = (32, READABLE | WRITABLE, address_of(memory), 0, ALIGN)
        fcntl.ioctl(container, MAP_DMA, struct.pack("IIQQQ", *words))
    taken = references() - before
    expect(taken >= ALIGN // PAGE, f"VFIO has {taken} references to {ALIGN // PAGE} pages")
    fcntl.ioctl(container, UNMAP_DMA, struct.pack("IIQQ", 24, 0, 0, ALIGN))
    os.close(container)
    os.close(group)
    return f"{ALIGN // PAGE} pages"


def _together() -> str:
    """Let processes map the same folio and drop it, so that it is often used first and last."""

    def touch(task: int) -> None:
        for _ in range(ROUNDS):
            with _mapped() as memory:
                memory[task] = task

    ended = [status_of(pid) for pid in [child(partial(touch, task)) for task in range(TASKS)]]
    expect(not any(ended), f"the processes ended with {ended}")
    return f"{TASKS} processes, {ROUNDS} times"


def _wait(device: Device) -> str:
    with _mapped() as memory:
        memory[0] = 1
        pins = _Pins(memory, WRITE)
    unbind = Thread(target=device.unbind, daemon=True)
    unbind.start()
    time.sleep(PAUSE)
    expect(unbind.is_alive(), "the unbind did not wait")
    pins.drop()
    wait_until(lambda: not unbind.is_alive(), "the unbind waits for pages that are not pinned")
    device.bind()
    return "it was done after they were unpinned"


def _outlive() -> str:
    dax = the_one("dax*.*").name
    # The kernel makes the memory of such a device System RAM.
    run("daxctl", "reconfigure-device", "--mode=devdax", "--force", dax)
    with _mapped() as memory:
        memory[0] = 1
        (DAX / "drivers/device_dax/unbind").write_text(dax)
        status = status_of(child(lambda: memory[0]))
    expect(status == -signal.SIGBUS, f"the process ended with {status}")
    return "a page fault gets SIGBUS"


def _fork() -> str:
    with _mapped(2 * LARGE_ALIGN) as memory:
        memory[LARGE_ALIGN] = 1
        # fork() copies the page tables of a mapping that has a guard page.
        memory.madvise(MADV_GUARD_INSTALL, 0, PAGE)
        before = references()
        status = status_of(child(lambda: None))
        expect(status == 0, f"a process that was forked ended with {status}")
        expect(references() == before, f"{references()} references, not {before}")
    return f"{before} before and after"
