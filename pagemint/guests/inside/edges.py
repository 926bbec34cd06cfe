# SPDX-License-Identifier: GPL-2.0-only
"""Binds devices while memory is short, while CPUs go and come back, and after a kexec."""

import errno
import mmap
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint.guests.inside.checks import PAGE, Record, check, child, expect, status_of, system_call
from pagemint.guests.inside.devices import (
    ALIGN,
    PROBE,
    Device,
    Namespace,
    PrivateMemory,
    meminfo,
    memmap_bytes,
    memmap_growth,
    put,
    run,
)
from pagemint.guests.inside.modes import Modes

CPUS = Path("/sys/devices/system/cpu")
OOM_SCORE = Path("/proc/self/oom_score_adj")
STRUCT_PAGE = 64  # bytes
LARGEST = 128 << 20  # bytes that the hog takes at a time
SETTLE = 120  # seconds until memory is short
SYS_REBOOT, SYS_KEXEC_FILE_LOAD = 169, 320
KEXEC_FILE_NO_INITRAMFS = 4
REBOOT_MAGIC1, REBOOT_MAGIC2, REBOOT_KEXEC = 0xFEE1DEAD, 672274793, 0x45584543


def pressure(modes: Modes, count: int, size: int) -> Iterator[Record]:
    """Bind devices `count` times in each mode while little memory is free.

    Args:
        modes: the modes of the kernel.
        count: number of binds.
        size: bytes of device-private memory. Only half of what its memmap takes is free, so these
            binds can fail. They must then leave nothing behind. The memmaps of the other devices
            must take less than a quarter, which is free for them.
    """
    memmap = size // PAGE * STRUCT_PAGE
    kinds: dict[str, tuple[Callable[[], Device], int]] = {
        "fsdax": (lambda: Namespace("pfn", "map=mem"), memmap // 4),
        "devdax": (lambda: Namespace("dax", "map=mem"), memmap // 4),
        "private": (lambda: PrivateMemory(size), memmap // 2),
    }
    cpus = os.sched_getaffinity(0)
    # The kernel must not kill this process for want of memory.
    OOM_SCORE.write_text("-1000")
    try:
        # Device-private pages belong to the node of the CPU that initialises them.
        os.sched_setaffinity(0, {min(cpus)})
        for name, (make, free) in kinds.items():
            yield from check(f"{name}, memory is short", _pressed, modes, count, make, free)
    finally:
        os.sched_setaffinity(0, cpus)
        OOM_SCORE.write_text("0")


def cpus(modes: Modes, count: int) -> Iterator[Record]:
    """Bind devices `count` times in each mode while all CPUs but the first go and come back."""
    for name, driver in (("fsdax", "pfn"), ("devdax", "dax")):
        yield from check(f"{name}, CPUs go and come back", _unplugged, modes, count, driver)


def kexec(modes: Modes, image: Path, kept: Path) -> Iterator[Record]:
    """Bind devices, boot a kernel with kexec, and bind them again.

    Args:
        modes: the modes of the kernel.
        image: the image of this kernel, which is booted again.
        kept: a file for the hashes of the first boot. If it is there, this is the second one.
    """
    hashes = ""
    for driver, where in (("pfn", "map=mem"), ("dax", "map=dev")):
        device = Namespace(driver, where)
        for mode in modes.names:
            modes.choose(mode)
            hashes += f"{driver} {mode} {_hash(device)}\n"
    if kept.exists():
        yield from check("binds after kexec", _compared, hashes, kept.read_text())
        return
    kept.write_text(hashes)
    _boot(image)


def _hash(device: Device) -> str:
    """Bind a device, hash its memmap, and unbind it."""
    device.bind()
    digest = (PROBE / "hash").read_text().strip()
    device.unbind()
    return digest


def _reference(modes: Modes, device: Device) -> str:
    modes.choose(modes.names[0])
    return _hash(device)


def _pressed(modes: Modes, count: int, make: Callable[[], Device], free: int) -> str:
    device = make()
    wanted = _reference(modes, device)
    before = memmap_bytes()
    bound = refused = 0
    with _short_of_memory(free) as wait:
        for mode in modes.names * count:
            modes.choose(mode)
            wait()
            try:
                device.bind()
            except OSError as error:
                expect(error.errno == errno.ENOMEM, f"{mode}: {error}")
                refused += 1
            else:
                digest = (PROBE / "hash").read_text().strip()
                device.unbind()
                expect(digest == wanted, f"{mode}: the memmap differs")
                bound += 1
            grown = memmap_growth(before) or 0
            expect(not grown, f"{mode}: {grown:+} bytes of memmaps stay")
    expect(_reference(modes, device) == wanted, "afterwards the memmap differs")
    return f"{bound} binds, {refused} found no memory"


@contextmanager
def _short_of_memory(free: int) -> Iterator[Callable[[], None]]:
    """Take memory until `free` bytes are available; yield a function that waits for that."""
    hog = 0

    def wait() -> None:
        nonlocal hog
        until = time.monotonic() + SETTLE
        while meminfo()["MemAvailable"] > free + ALIGN:
            # The kernel may have killed it.
            if hog and os.waitpid(hog, os.WNOHANG)[0]:
                hog = 0
            hog = hog or child(lambda: _take(free))
            expect(time.monotonic() < until, "memory does not become short")
            time.sleep(0.01)

    try:
        yield wait
    finally:
        if hog:
            os.kill(hog, signal.SIGKILL)
            status_of(hog)


def _take(free: int) -> None:
    """Take all memory but `free` bytes, until this process is killed."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    OOM_SCORE.write_text("1000")
    held: list[mmap.mmap] = []
    while True:
        excess = meminfo()["MemAvailable"] - free
        if excess < ALIGN:
            time.sleep(0.01)
            continue
        # Smaller steps towards the end: the count lags behind.
        size = max(ALIGN, min(excess // 2, LARGEST) // ALIGN * ALIGN)
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory.write(bytes(size))
        held.append(memory)


def _unplugged(modes: Modes, count: int, driver: str) -> str:
    device = Namespace(driver, "map=dev")
    wanted = _reference(modes, device)
    files = sorted(CPUS.glob("cpu[1-9]*/online"))
    expect(bool(files), "there is one CPU only")
    over = threading.Event()
    binds = cycles = 0
    failed: list[OSError] = []

    def cycle() -> None:
        nonlocal cycles
        try:
            while not over.is_set():
                for state in ("0", "1"):
                    for file in files:
                        put(file, state)
                cycles += 1
        except OSError as error:
            failed.append(error)

    cycling = threading.Thread(target=cycle)
    cycling.start()
    try:
        while not failed and (binds < count * len(modes.names) or cycles < count):
            for mode in modes.names:
                modes.choose(mode)
                expect(_hash(device) == wanted, f"{mode}: the memmap differs")
                binds += 1
    finally:
        over.set()
        cycling.join()
        for file in files:
            put(file, "1")
    expect(not failed, f"a CPU did not go or come back: {failed}")
    return f"{binds} binds, {len(files)} CPUs were away {cycles} times"


def _boot(image: Path) -> None:
    """Boot a kernel with the command line of this one."""
    words = Path("/proc/cmdline").read_bytes().strip() + b"\0"
    with image.open("rb") as file:
        flags = KEXEC_FILE_NO_INITRAMFS
        system_call(SYS_KEXEC_FILE_LOAD, file.fileno(), -1, len(words), words, flags)
    os.sync()
    system_call(SYS_REBOOT, REBOOT_MAGIC1, REBOOT_MAGIC2, REBOOT_KEXEC, None)
    raise RuntimeError("kexec did not boot the kernel")


def _compared(hashes: str, before: str) -> str:
    expect(hashes == before, f"the hashes differ: {hashes!r}, not {before!r}")
    handover = re.findall(r"KHO: .*", run("dmesg"))
    return f"{len(hashes.splitlines())} hashes; {'; '.join(handover) or 'no handover'}"
