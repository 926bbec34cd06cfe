# SPDX-License-Identifier: GPL-2.0-only
"""Poisons pages of a device through hwpoison-inject, and records what their users see of it."""

import errno
import mmap
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from pagemint.guests.inside.checks import (
    LIBC,
    Record,
    address_of,
    check,
    child,
    expect,
    frames_of,
    status_of,
)
from pagemint.guests.inside.devices import ALIGN, PROBE, Device, last_range, meminfo, put, the_one
from pagemint.guests.inside.filesystems import SMALL, make, mounted

INJECT = Path("/sys/kernel/debug/hwpoison/corrupt-pfn")
NODES = Path("/sys/devices/system/node")
PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY = 33, 1, 1
BUS_CODES = ("4", "5")  # BUS_MCEERR_AR, BUS_MCEERR_AO
PATIENCE = 20  # seconds for a signal


def fsdax(device: Device) -> Iterator[Record]:
    """Poison a page of a mapped file and one that no file has, on each file system."""
    for kind in SMALL:
        yield from check(f"poison, {kind}", _in_a_file, device, kind)


def devdax(device: Device) -> Iterator[Record]:
    """Poison a page that is mapped, and one that is not."""
    yield from check("poison, devdax", _clean, device, lambda: _in(the_one("dax*.*")))


def _in_a_file(device: Device, kind: str) -> str:
    def work() -> str:
        make(SMALL[kind])
        with mounted(kind) as directory:
            path = directory / "data"
            path.write_bytes(bytes(ALIGN))
            finding = _in(path)
            try:
                path.read_bytes()
            except OSError as error:
                return f"{finding}; a read: {_name(error)}"
            return f"{finding}; a read succeeds"

    return _clean(device, work)


def _clean(device: Device, work: Callable[[], str]) -> str:
    """Work on a device, and check that a rebind leaves nothing of it in the memmap."""
    wanted = (PROBE / "hash").read_text()
    finding = work()
    device.unbind()
    device.bind()
    expect((PROBE / "hash").read_text() == wanted, "a rebind leaves another memmap")
    return finding


def _in(path: Path) -> str:
    """Poison the last page of the device, and one of a file that a process has mapped."""
    before = _counters()
    _, start, pages = last_range()
    findings = [f"an unused page: {_inject(start + pages - 1)}"]
    parent, other = socket.socketpair()
    with parent:
        with other:
            user = child(lambda: _use(path, other))
        try:
            frame = parent.recv(32)
            expect(bool(frame), "the process could not map the page")
            findings.append(f"a mapped one: {_inject(int(frame))}")
            code = parent.recv(32).decode()
        finally:
            status = status_of(user)
    expect(code in BUS_CODES, f"the user of the page saw no SIGBUS, but {code!r}")
    expect(status in (0, -signal.SIGBUS), f"the user of the page ended with {status}")
    findings.append(f"SIGBUS with code {code}; another touch: {'SIGBUS' if status else 'done'}")
    after = _counters()
    changed = [f"{name} +{after[name] - old}" for name, old in before.items() if after[name] - old]
    expect(bool(changed), "no counter changed")
    return "; ".join([*findings, *changed])


def _use(path: Path, other: socket.socket) -> None:
    """Map a page, wait for the signal of its failure, and touch it again."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGBUS})
    LIBC.prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0)
    with path.open("rb+", buffering=0) as file, mmap.mmap(file.fileno(), ALIGN) as memory:
        memory[0] = 1
        other.send(str(frames_of(address_of(memory), mmap.PAGESIZE)[0]).encode())
        info = signal.sigtimedwait({signal.SIGBUS}, PATIENCE)
        other.send((str(info.si_code) if info else "none").encode())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGBUS})
        memory[0] = 2


def _inject(frame: int) -> str:
    try:
        put(INJECT, f"{frame:#x}")
    except OSError as error:
        return _name(error)
    return "done"


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))


def _counters() -> dict[str, int]:
    """Return the kernel's counts of memory failures and the kB that they took, by name."""
    counts = {"HardwareCorrupted": meminfo()["HardwareCorrupted"] >> 10}
    for file in sorted(NODES.glob("node*/memory_failure/*")):
        counts[f"{file.parts[-3]} {file.name}"] = int(file.read_text())
    return counts
