# SPDX-License-Identifier: GPL-2.0-only
"""Makes namespaces on a guest's persistent memory, and binds and unbinds devices."""

import mmap
import os
import re
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pagemint.base import machine

NAMESPACE = "namespace0.0"
PROBE = Path("/sys/kernel/debug/pagemint")
VMSTAT = Path("/proc/vmstat")
REGION = Path("/sys/bus/nd/devices/region0")
DAX = Path("/sys/bus/dax")
MEMORY = Path("/sys/devices/system/memory")
MAPS = {"map=dev": "pmem", "map=mem": "ram"}  # places of a memmap: their names in sysfs
DRIVERS = {"pfn": "nd_pmem", "dax": "dax_pmem"}
ALIGN = 2 << 20  # bytes: the alignment of most devdax namespaces, and the size of a fault in them
LARGE_ALIGN = 1 << 30  # bytes: that of others
SECTION = 128 << 20  # bytes that one section of the memmap describes
MAPPED = 64 * ALIGN  # bytes of a short mapping
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_STEADY = 1 << 18  # bytes by which free memory may change in a pause when it is settled
_PAUSE = 6.0  # seconds: kfree_rcu() may gather objects for 5 before a grace period begins
_TRIES = 10
_PATIENCE = 120  # seconds
_POLL = 0.1  # seconds
_SETTLE = 0.3  # seconds in which the kernel ends its work once the sizes are right

meminfo = machine.memory
"""Returns the sizes in /proc/meminfo, in bytes."""


def run(*argv: str | Path) -> str:
    """Run a program and return its output; RuntimeError with its last line if it fails."""
    # Not every PATH has the directories of administrators' programs.
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [str(done.returncode)]
        raise RuntimeError(f"{' '.join(map(str, argv))}: {lines[-1]}")
    return done.stdout


def memmap_bytes() -> int | None:
    """Return the bytes of memmaps in ordinary memory since boot.

    None before Linux 6.11, which does not count them.
    """
    match = re.search(r"^nr_memmap(?:_pages)? (\d+)$", VMSTAT.read_text(), re.MULTILINE)
    return int(match[1]) * mmap.PAGESIZE if match else None


def memmap_growth(before: int | None) -> int | None:
    """Return how many bytes memmap_bytes() has grown since it was `before`, if they are counted."""
    now = memmap_bytes()
    return None if before is None or now is None else now - before


def last_range() -> tuple[int, int, int]:
    """Return nanoseconds, first PFN and pages of the last memmap that was initialised."""
    nanoseconds, start, pages = (int(word) for word in (PROBE / "last").read_text().split())
    return nanoseconds, start, pages


def scan(file: str, first: int, pages: int) -> str:
    """Return `file` of the probe, scan or states, about some pages; see pagemint_guest.c."""
    (PROBE / "scan_pfn").write_text(str(first))
    (PROBE / "scan_pages").write_text(str(pages))
    return (PROBE / file).read_text()


def wait_until(done: Callable[[], bool], problem: str | Callable[[], str]) -> None:
    """Wait until the kernel has done its work, or fail with `problem` after two minutes."""
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError(problem if isinstance(problem, str) else problem())
        time.sleep(_POLL)
    time.sleep(_SETTLE)


def settled() -> dict[str, int]:
    """Return meminfo() without caches, once it hardly changes.

    An unbind frees what it knew of each section after an RCU grace period: 10 MiB for 16 TiB.
    Free pages on the lists of the CPUs count as available here, which the kernel leaves out.
    """
    sizes = _with_lists()
    for _ in range(_TRIES):
        before = sizes
        put(_DROP_CACHES, "3")
        time.sleep(_PAUSE)
        sizes = _with_lists()
        if abs(sizes["MemAvailable"] - before["MemAvailable"]) < _STEADY:
            break
    return sizes


def _with_lists() -> dict[str, int]:
    """Return meminfo() with the pages on the lists of the CPUs in MemAvailable."""
    zones = Path("/proc/zoneinfo").read_text()
    pages = sum(map(int, re.findall(r"^ +count: +(\d+)$", zones, re.MULTILINE)))
    sizes = meminfo()
    return {**sizes, "MemAvailable": sizes["MemAvailable"] + pages * mmap.PAGESIZE}


def put(path: Path, text: str) -> None:
    """Write to a file of the kernel, once.

    If the write fails, Path.write_text() would write again when it closes the file.
    """
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def written(path: Path, text: str) -> int:
    """Write to a file of the kernel; return the nanoseconds that this takes."""
    start = time.monotonic_ns()
    put(path, text)
    return time.monotonic_ns() - start


def soil(size: int) -> None:
    """Fill this much free memory with a pattern, as far as it is free in blocks of 2 MiB.

    The kernel then takes it for a memmap. Without init_on_alloc it keeps the pattern, so a byte
    that nobody writes still has it.
    """
    put(PROBE / "soil", str(size))


class Device:
    """A device on a bus, to be bound and unbound.

    Attributes:
        compound: pages of each compound of its memmap; 1 if there are none.
    """

    def __init__(self, name: str, driver: Path, compound: int = 1) -> None:
        """Take the device's name on its bus, and the directory of its driver."""
        self.name = name
        self.driver = driver
        self.compound = compound

    def unbind(self) -> int:
        """Take the device from its driver, which removes its memmap; return the nanoseconds."""
        return written(self.driver / "unbind", self.name)

    def bind(self) -> int:
        """Give the device to its driver; return the nanoseconds of the bind."""
        return written(self.driver / "bind", self.name)


class Namespace(Device):
    """A device on the emulated memory of a guest."""

    def __init__(self, kind: str, where: str, align: int = ALIGN) -> None:
        """Make the namespace, without binding it.

        Args:
            kind: pfn for fsdax, dax for devdax.
            where: the place of the memmap: map=dev on the device, map=mem in ordinary memory.
            align: bytes of its alignment; of a compound, if it is devdax.
        """
        run("ndctl", "destroy-namespace", "-f", NAMESPACE)
        # ndctl would bind the namespace at once, and the first bind would not be timed.
        name = (REGION / f"{kind}_seed").read_text().strip()
        compound = align // mmap.PAGESIZE if kind == "dax" else 1
        super().__init__(name, Path("/sys/bus/nd/drivers") / DRIVERS[kind], compound)
        path = REGION / name
        (path / "uuid").write_text(str(uuid.uuid4()))
        (path / "mode").write_text(MAPS[where])
        (path / "align").write_text(str(align))
        (path / "namespace").write_text(NAMESPACE)


class PrivateMemory(Device):
    """Device-private memory of a device that exists only in pagemint's module for guests."""

    def __init__(self, size: int) -> None:
        """Describe a device of this many bytes, without binding it."""
        super().__init__("private", PROBE)
        self._size = size

    def unbind(self) -> int:
        """Unmap the memory, and return the nanoseconds."""
        return written(PROBE / "private", "0")

    def bind(self) -> int:
        """Map the memory, and return the nanoseconds."""
        return written(PROBE / "private", str(self._size))


def the_one(pattern: str) -> Path:
    """Return the one file in /dev that matches `pattern`."""
    paths = sorted(Path("/dev").glob(pattern))
    if len(paths) != 1:
        raise RuntimeError(f"there are {len(paths)} of /dev/{pattern}, not one")
    return paths[0]


def unbound_dax() -> tuple[str, int]:
    """Make a devdax device and unbind it from its driver; return its name and size."""
    Namespace("dax", "map=mem").bind()
    name = the_one("dax*.*").name
    (DAX / "drivers/device_dax/unbind").write_text(name)
    return name, int((DAX / "devices" / name / "size").read_text())
