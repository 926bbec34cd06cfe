# SPDX-License-Identifier: GPL-2.0-only
"""Performs each operation on device memory between two marks, so that QEMU can count it.

A kernel of the series runs its operations in its default mode, a stock kernel without the module
and with it.
"""

import ctypes
import fcntl
import mmap
import os
import resource
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from pagemint.guests.inside import ordinary, tracing
from pagemint.guests.inside.checks import LIBC, PAGE, SLACK, Record, address_of, expect
from pagemint.guests.inside.devices import (
    ALIGN,
    DAX,
    MAPPED,
    MAPS,
    MEMORY,
    NAMESPACE,
    PROBE,
    SECTION,
    Device,
    Namespace,
    PrivateMemory,
    put,
    run,
    the_one,
    unbound_dax,
)
from pagemint.guests.inside.filesystems import ALIGNED, make, mounted
from pagemint.guests.inside.hotadd import Dimm, Monitor, VirtioMem
from pagemint.guests.inside.modes import Modes, counted, counts, permit_sharing

HMM = Path("/dev/hmm_dmirror0")
NAMESPACE_SIZE = Path("/sys/bus/nd/devices", NAMESPACE, "size")
PRIVATE = 4 << 30  # bytes of device-private memory
PRIVATE_FOLIOS = 1024
MOVED = 32  # folios that migrate
BLOCKS = (16, 64)  # memory blocks that go online
ADDED = 8 << 30  # bytes of memory that is hot-added
POPULATED = 256 << 20  # bytes that a program faults in
ALLOCATED = 5 << 28  # bytes of pages of each order
MADV_POPULATE_WRITE = 23
SETTLE = 0.3  # seconds
TO_DEVICE, TO_SYSTEM = 2, 3  # commands of test_hmm


class Operations:
    """Marks the beginning and the end of operations; each mark begins a window of the plugin."""

    def __init__(self) -> None:
        self._window = 0

    def around(self, name: str, size: int, work: Callable[[], object]) -> Record:
        """Return the record of an operation on `size` bytes, with the number of its window."""
        # Later work of the kernel, such as freeing memory after a grace period, must not count.
        time.sleep(SETTLE)
        self._mark()
        work()
        record = {"operation": name, "window": self._window, "bytes": size}
        self._mark()
        return record

    def _mark(self) -> None:
        """End a window."""
        # This only reads the personality. Nothing else in a guest calls personality(2).
        LIBC.personality(0xFFFFFFFF)
        self._window += 1


def everything(hmm_module: str) -> Iterator[Record]:
    """Perform all operations that the kernel has."""
    marks = _quiet()
    yield marks.around("nothing", 0, lambda: None)
    yield from _private(marks)
    yield from _binds(marks, "fsdax map=dev", Namespace("pfn", "map=dev"), _files)
    yield from _binds(marks, "fsdax map=mem", Namespace("pfn", "map=mem"))
    yield from _binds(marks, "fsdax map=dev", Namespace("pfn", "map=dev"), shared=True)
    yield from _binds(marks, "fsdax map=mem", Namespace("pfn", "map=mem"), shared=True)
    for shared in (False, True):
        for where in MAPS:
            device = Namespace("dax", where)
            yield from _binds(marks, f"devdax {where}", device, _mappings, shared=shared)
    yield from _fsdev(marks)
    yield from _kmem(marks)
    yield from _migration(marks, hmm_module)


def on_device() -> Iterator[Record]:
    """Bind devices with the memmap on them, written and shared."""
    marks = _quiet()
    for name, driver in (("fsdax map=dev", "pfn"), ("devdax map=dev", "dax")):
        for shared in (False, True):
            yield from _binds(marks, name, Namespace(driver, "map=dev"), shared=shared)


def boot_memory() -> Iterator[Record]:
    """Use memory whose struct pages boot may have left unwritten."""
    marks, mode = _quiet(), ordinary.deferred_init()
    ordinary.wait_for_background(mode)
    yield {"running": "populate"}
    with mmap.mmap(-1, POPULATED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        populate = partial(memory.madvise, MADV_POPULATE_WRITE)
        yield marks.around(f"populate, {mode}", POPULATED, populate)
    for order, size in ((9, ALIGN), (0, PAGE)):
        yield {"running": f"allocations of order {order}"}
        (PROBE / "allocate_order").write_text(str(order))
        allocate = partial((PROBE / "allocate").write_text, str(ALLOCATED // size))
        record = marks.around(f"allocate order {order}, {mode}", ALLOCATED, allocate)
        yield {**record, "latency": [*map(int, (PROBE / "latency").read_text().split())]}
    put(PROBE / "allocate", "0")


def hot_added() -> Iterator[Record]:
    """Hot-add memory of each kind that goes online at once, and remove it."""
    marks, monitor = _quiet(), Monitor()
    (MEMORY / "auto_online_blocks").write_text("online_movable")
    yield {"running": "kmem"}
    name, size = unbound_dax()
    add = partial((DAX / "drivers/kmem/new_id").write_text, name)
    yield marks.around("add kmem, auto-online", size, add)
    yield {"running": "DIMM"}
    dimm = Dimm(monitor, ADDED)
    yield marks.around("add DIMM, auto-online", ADDED, dimm.add)
    yield marks.around("remove DIMM", ADDED, dimm.remove)
    for kind, block in (("sub", ALIGN), ("big", SECTION)):
        yield {"running": f"virtio-mem, {kind}-blocks"}
        device = VirtioMem(monitor, kind, ADDED, block)
        yield marks.around(f"device_add virtio-mem, {kind}-blocks", 0, device.add)
        for what, new in (("plug", ADDED), ("unplug", 0)):
            resize = partial(device.resize, new)
            yield marks.around(f"{what} virtio-mem, {kind}-blocks", ADDED, resize)


def stock(modes: Modes) -> Iterator[Record]:
    """Bind a device of each kind, on a stock kernel without its module and with it."""
    marks = _quiet()
    kinds: dict[str, Callable[[], tuple[Device, int]]] = {
        "coherent or private": lambda: (PrivateMemory(PRIVATE), PRIVATE),
        **{
            f"{kind} {where}": partial(_namespace, driver, where)
            for kind, driver in (("fsdax", "pfn"), ("devdax", "dax"))
            for where in MAPS
        },
    }
    for name, prepare in kinds.items():
        yield {"running": name}
        device, size = prepare()
        for tree in ("base", "module"):
            modes.choose(tree)
            # Warm up: later binds reuse memory that the first one allocates.
            device.bind()
            device.unbind()
            before = counts()
            yield {**marks.around(f"bind {name}", size, device.bind), "tree": tree}
            filled = counted(before).get("pages_filled", 0)
            expect((tree == "module") == (filled > 0), f"{name}, {tree}: {filled} pages filled")
            device.unbind()


def symbols() -> Iterator[Record]:
    """Return the addresses of the kernel's functions."""
    yield {"symbols": "\n".join(tracing.symbols())}


def _namespace(driver: str, where: str) -> tuple[Device, int]:
    return Namespace(driver, where), int(NAMESPACE_SIZE.read_text())


def _quiet() -> Operations:
    """Turn off work that the kernel does in the background, and return the marks."""
    # The console prints at any time, and slowly; errors and warnings are enough.
    Path("/proc/sys/kernel/printk").write_text("5")
    # khugepaged copies memory at any time; only memory that asks for it needs huge pages here.
    Path("/sys/kernel/mm/transparent_hugepage/enabled").write_text("madvise")
    # vmstat_update() frees pages that a CPU keeps for itself; an operation would allocate others.
    Path("/proc/sys/vm/stat_interval").write_text("3600")
    return Operations()


def _binds(
    marks: Operations,
    name: str,
    device: Device,
    use: Callable[[Operations, str], Iterator[Record]] | None = None,
    *,
    shared: bool = False,
) -> Iterator[Record]:
    """Bind a device, use it, unbind it, and bind it again; its sections may share a memmap."""
    permit_sharing(shared)
    if shared:
        name += ", shared memmap"
    yield {"running": name}
    size = int(NAMESPACE_SIZE.read_text())
    yield marks.around(f"bind {name}", size, device.bind)
    if use:
        yield from use(marks, name)
    yield marks.around(f"unbind {name}", size, device.unbind)
    yield marks.around(f"rebind {name}", size, device.bind)
    permit_sharing(False)


def _private(marks: Operations) -> Iterator[Record]:
    folios, size = PROBE / "folios", PRIVATE_FOLIOS * ALIGN
    for name, shared in (("device-private", False), ("device-private, shared memmap", True)):
        permit_sharing(shared)
        yield {"running": name}
        memory = PrivateMemory(PRIVATE)
        yield marks.around(f"bind {name}", PRIVATE, memory.bind)
        if folios.exists():  # not before Linux 7.2
            take, drop = (partial(folios.write_text, str(number)) for number in (PRIVATE_FOLIOS, 0))
            yield marks.around(f"allocate {name}", size, take)
            yield marks.around(f"free {name}", size, drop)
        yield marks.around(f"unbind {name}", PRIVATE, memory.unbind)
        yield marks.around(f"rebind {name}", PRIVATE, memory.bind)
        memory.unbind()
    permit_sharing(False)


def _files(marks: Operations, name: str) -> Iterator[Record]:
    for kind, command in ALIGNED.items():
        yield {"running": f"files on {kind}, {name}"}
        make(command)
        yield from _faults(marks, kind)


def _faults(marks: Operations, kind: str) -> Iterator[Record]:
    with mounted(kind) as directory, (directory / "data").open("wb+") as file:
        os.posix_fallocate(file.fileno(), 0, MAPPED)
        with mmap.mmap(file.fileno(), MAPPED) as memory:
            yield _touch(marks, f"first fault, new {kind} file", memory)
            yield marks.around(f"unmap {kind} file", MAPPED, memory.close)
        with mmap.mmap(file.fileno(), MAPPED) as memory:
            yield _touch(marks, f"second fault, new {kind} file", memory)
    # Unmounting made the kernel forget the file's folios.
    with mounted(kind) as directory, (directory / "data").open("rb+") as file:
        for which in ("first", "second"):
            with mmap.mmap(file.fileno(), MAPPED) as memory:
                yield _touch(marks, f"{which} fault, existing {kind} file", memory)
        cut = partial(os.truncate, file.fileno(), 0)
        yield marks.around(f"truncate {kind} file", MAPPED, cut)


def _mappings(marks: Operations, name: str) -> Iterator[Record]:
    with the_one("dax*.*").open("rb+", buffering=0) as file:
        for which in ("first", "second"):
            with mmap.mmap(file.fileno(), MAPPED) as memory:
                yield _touch(marks, f"{which} fault, {name}", memory)
                if which == "first":
                    yield marks.around(f"unmap {name}", MAPPED, memory.close)


def _touch(marks: Operations, name: str, memory: mmap.mmap) -> Record:
    """Write to each 2 MiB of mapped memory, which faults once for each."""

    def touch() -> None:
        for offset in range(0, MAPPED, ALIGN):
            memory[offset] = 1

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    record = marks.around(name, MAPPED, touch)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    most = MAPPED // ALIGN + SLACK
    expect(faults <= most, f"{name}: {faults} faults, not at most {most}")
    return record


def _fsdev(marks: Operations) -> Iterator[Record]:
    yield {"running": "fsdev"}
    driver = DAX / "drivers/fsdev_dax"
    if not driver.exists():
        return  # Linux 6.12
    name, size = unbound_dax()
    for what, file in (("bind", "new_id"), ("unbind", "unbind"), ("rebind", "bind")):
        work = partial((driver / file).write_text, name)
        yield marks.around(f"{what} fsdev", size, work)
    (driver / "unbind").write_text(name)


def _kmem(marks: Operations) -> Iterator[Record]:
    yield {"running": "kmem"}
    driver = DAX / "drivers/kmem"
    name, size = unbound_dax()
    (MEMORY / "auto_online_blocks").write_text("offline")
    old = set(MEMORY.glob("memory*"))
    block = int((MEMORY / "block_size_bytes").read_text(), 16)
    for count, bind in zip(BLOCKS, ("new_id", "bind"), strict=True):
        added = marks.around("add kmem", size, partial((driver / bind).write_text, name))
        new = sorted(set(MEMORY.glob("memory*")) - old, key=lambda path: int(path.name[6:]))[:count]
        expect(len(new) == count, f"{len(new)} memory blocks were added, not {count}")
        online = marks.around(
            f"online {count} blocks", count * block, partial(_change, new, "online_movable")
        )
        # The last block goes first, so that the zone shrinks each time.
        offline = marks.around(
            f"offline {count} blocks", count * block, partial(_change, new[::-1], "offline")
        )
        removed = marks.around("remove kmem", size, partial((driver / "unbind").write_text, name))
        yield from (online,) if count < BLOCKS[-1] else (added, online, offline, removed)


def _change(blocks: list[Path], state: str) -> None:
    for block in blocks:
        (block / "state").write_text(state)


def _migration(marks: Operations, hmm_module: str) -> Iterator[Record]:
    """Move folios to the device-private memory of test_hmm, and back."""
    yield {"running": "migration"}
    run("insmod", hmm_module)
    size = MOVED * ALIGN
    # One folio more to warm up: the first migration allocates memory for the device.
    with mmap.mmap(-1, size + 2 * ALIGN, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        start = -(-address_of(memory) // ALIGN) * ALIGN
        skipped = start - address_of(memory)
        memory.madvise(mmap.MADV_HUGEPAGE)
        for offset in range(skipped, skipped + size + ALIGN, ALIGN):
            memory[offset] = 1
        with HMM.open("rb+", buffering=0) as device:
            _migrate(device.fileno(), TO_DEVICE, [start])
            folios = range(start + ALIGN, start + ALIGN + size, ALIGN)
            for what, command in (("device", TO_DEVICE), ("system", TO_SYSTEM)):
                work = partial(_migrate, device.fileno(), command, folios)
                yield marks.around(f"migrate to {what}", size, work)
    run("rmmod", "test_hmm")


def _migrate(device: int, command: int, folios: Iterable[int]) -> None:
    mirror = ctypes.create_string_buffer(ALIGN)
    for start in folios:
        words = bytearray(struct.pack("5Q", start, ctypes.addressof(mirror), ALIGN // PAGE, 0, 0))
        # _IOWR('H', command, struct hmm_dmirror_cmd)
        fcntl.ioctl(device, 3 << 30 | len(words) << 16 | ord("H") << 8 | command, words)
        # A folio that comes back counts as one page.
        moved = struct.unpack("5Q", words)[3]
        expect(moved in (1, ALIGN // PAGE), f"{moved} pages of a folio migrated")
