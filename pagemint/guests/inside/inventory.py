# SPDX-License-Identifier: GPL-2.0-only
"""Lists the devices of a running machine that can be rebound, and finds the users of each."""

import errno
import mmap
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.guests.inside.devices import Device

PATIENCE = 10  # seconds for udev to finish with a device that was just bound
ROOT = Path("/")


@dataclass(frozen=True)
class Bound:
    """A device that is bound to its driver.

    Attributes:
        name: its name on its bus: pfn0.0, dax0.0.
        kind: fsdax or devdax.
        size: bytes.
        in_use: the use that keeps it from being rebound; "" if there is none.
    """

    name: str
    kind: str
    size: int
    in_use: str


def bound() -> list[Bound]:
    """Return the devices."""
    devices = []
    for kind, (driver, pattern, nodes) in _KINDS.items():
        for path in sorted((ROOT / driver).glob(pattern)):
            size = int((path / "size").read_text())
            devices.append(Bound(path.name, kind, size, _in_use(nodes(path))))
    return devices


class Existing(Device):
    """A device of the machine's own, which is unbound only while nobody uses it."""

    def __init__(self, name: str) -> None:
        """Find the device; RuntimeError if there is none."""
        for kind, (driver, pattern, nodes) in _KINDS.items():
            if any(path.name == name for path in (ROOT / driver).glob(pattern)):
                align = ROOT / driver / name / "align"
                compound = int(align.read_text()) // mmap.PAGESIZE if kind == "devdax" else 1
                super().__init__(name, ROOT / driver, compound)
                self.nodes = nodes
                self._check()
                return
        raise RuntimeError(f"there is no device {name}")

    def unbind(self) -> int:
        """Take the device from its driver; return the nanoseconds. RuntimeError if it is in use."""
        self._check()
        with ExitStack() as claims:
            for node in self.nodes(self.driver / self.name):
                if node.disk:
                    # From here on nobody can mount the disk or its partitions.
                    claims.enter_context(_claimed(node))
            return super().unbind()

    def restore(self) -> None:
        """Bind the device if it is not bound."""
        if not (self.driver / self.name).exists():
            self.bind()

    def _check(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            why = _in_use(self.nodes(self.driver / self.name))
            if not why:
                return
            # udev opens a device for a moment after each bind.
            if time.monotonic() > until:
                raise RuntimeError(f"{self.name} is {why}")
            time.sleep(0.1)


@dataclass(frozen=True)
class _Node:
    """A character device, disk or partition in /dev; `path` is its directory in sysfs."""

    name: str
    path: Path
    block: bool
    disk: bool = False


def _disk(device: Path) -> list[_Node]:
    """Return the disk of an fsdax device and its partitions."""
    disks = sorted((device / "block").glob("*"))
    parts = [path.parent for disk in disks for path in sorted(disk.glob("*/partition"))]
    return [_Node(path.name, path, True, path in disks) for path in (*disks, *parts)]


def _character(device: Path) -> list[_Node]:
    return [_Node(device.name, device, False)]


_KINDS: dict[str, tuple[str, str, Callable[[Path], list[_Node]]]] = {
    "fsdax": ("sys/bus/nd/drivers/nd_pmem", "pfn*", _disk),
    # devdax on pmem, CXL or soft-reserved memory. System RAM has the driver kmem instead.
    "devdax": ("sys/bus/dax/drivers/device_dax", "dax*", _character),
}


def _in_use(nodes: list[_Node]) -> str:
    for node in nodes:
        for look in (_held, _mounted, _swap, _loop, _opened, _taken):
            if why := look(node):
                return why
    return ""


def _held(node: _Node) -> str:
    holders = sorted(path.name for path in (node.path / "holders").glob("*"))
    return f"part of {holders[0]}" if holders else ""


def _mounted(node: _Node) -> str:
    number = (node.path / "dev").read_text().strip()
    # Read all processes: each can have a mount namespace of its own.
    for path in (ROOT / "proc").glob("[0-9]*/mountinfo"):
        for line in _lines(path):
            fields = line.split()
            if node.block and fields[2] == number:
                return f"mounted on {fields[4]}"
    return ""


def _swap(node: _Node) -> str:
    names = {Path(line.split()[0]).name for line in _lines(ROOT / "proc/swaps")}
    return "swap" if node.block and node.name in names else ""


def _loop(node: _Node) -> str:
    for path in (ROOT / "sys/block").glob("loop*/loop/backing_file"):
        if _lines(path) == [f"/dev/{node.name}"]:
            return f"behind {path.parents[1].name}"
    return ""


def _opened(node: _Node) -> str:
    """Find a process that has the file open or mapped; only root sees other users' processes."""
    number = (node.path / "dev").read_text().strip()
    wanted = stat.S_IFBLK if node.block else stat.S_IFCHR
    for process in (ROOT / "proc").glob("[0-9]*"):
        for what in ("fd", "map_files"):
            for file in _entries(process / what):
                try:
                    status = file.stat()
                except OSError:
                    continue  # closed meanwhile
                major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
                if stat.S_IFMT(status.st_mode) == wanted and f"{major}:{minor}" == number:
                    name = (_lines(process / "comm") or ["?"])[0]
                    how = "open" if what == "fd" else "mapped"
                    return f"{how} in process {process.name} ({name})"
    return ""


def _taken(node: _Node) -> str:
    """Ask the kernel whether a file system, swap, RAID or the like has claimed a disk."""
    if node.disk:
        try:
            with _claimed(node):
                pass
        except OSError as error:
            if error.errno == errno.EBUSY:
                return "claimed by the kernel"
    return ""


@contextmanager
def _claimed(node: _Node) -> Iterator[None]:
    """Open a disk exclusively."""
    claim = os.open(ROOT / "dev" / node.name, os.O_RDONLY | os.O_EXCL)
    try:
        yield
    finally:
        os.close(claim)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []  # gone meanwhile, or not readable for this user


def _entries(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError:
        return []


def choose(devices: list[Bound], name: str) -> Bound:
    """Return the device of that name.

    Raises:
        Failure: there is none, or it is in use.
    """
    free = [device.name for device in devices if not device.in_use]
    other = f"choose from {', '.join(free)}" if free else "leave --device out for private memory"
    for device in devices:
        if device.name == name:
            if device.in_use:
                raise Failure(f"{name} is {device.in_use}", f"end that, or {other}")
            return device
    raise Failure(f"{name} is not an fsdax or devdax device that is bound to its driver", other)
