# SPDX-License-Identifier: GPL-2.0-only
"""Adds memory to the running guest as a hypervisor does, and takes it away."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pagemint.guests.inside.checks import PAGE, Record, check, expect
from pagemint.guests.inside.devices import ALIGN, MEMORY, SECTION, meminfo, put, scan, wait_until

PORT = "pagemint.monitor"  # its name in outside/x86.py
NODE = 2  # behind the device; the first CPU takes its memory from node 0
PLUGGED = SECTION * 2 + SECTION // 2  # bytes, so that half of a memory block is kept
LEFT = SECTION + SECTION // 4  # bytes
_DIRTY = "10"  # PG_dirty: virtio-mem sets it on kept pages that have never been online


class Monitor:
    """QEMU's monitor, which a guest with spare memory reaches by a serial port."""

    def __init__(self) -> None:
        names = Path("/sys/class/virtio-ports").glob("*/name")
        port = next(name.parent.name for name in names if name.read_text().strip() == PORT)
        self._file = os.open(Path("/dev", port), os.O_RDWR)
        self._lines = os.fdopen(self._file, "rb")
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: object) -> list[Any]:
        """Run a command and return its answer, if that is a list; RuntimeError if it fails.

        Args:
            command: its name in QMP.
            arguments: its arguments, with underscores in place of hyphens.
        """
        words = {name.replace("_", "-"): value for name, value in arguments.items()}
        os.write(self._file, json.dumps({"execute": command, "arguments": words}).encode())
        # Events and the greeting come in between.
        for line in self._lines:
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"] if isinstance(answer["return"], list) else []
        raise RuntimeError(f"{command}: the monitor has gone")


class Dimm:
    """A DIMM, which ACPI announces."""

    def __init__(self, monitor: Monitor, size: int) -> None:
        """Describe a DIMM of this many bytes, without adding it."""
        self._monitor = monitor
        self._size = size
        _make_backend(monitor, "dimm", size)

    def add(self) -> None:
        """Add the DIMM, and wait until its memory is online."""
        total = meminfo()["MemTotal"]
        self._monitor.ask("device_add", driver="pc-dimm", id="dimm", memdev="dimm-ram", node=NODE)
        _wait_for(total + self._size)

    def remove(self) -> None:
        """Take the DIMM away, and wait until the guest has released it."""
        self._monitor.ask("device_del", id="dimm")
        wait_until(lambda: not self._monitor.ask("query-memory-devices"), "the DIMM stays")


class VirtioMem:
    """A virtio-mem device."""

    def __init__(self, monitor: Monitor, name: str, size: int, block: int) -> None:
        """Describe a device, without adding it.

        Args:
            monitor: the monitor.
            name: the name of the device, and of the port to which it goes.
            size: bytes that it can have.
            block: bytes that it plugs at a time. With less than a memory block of the guest, the
                driver works in sub-blocks, else in big blocks.
        """
        self._monitor = monitor
        self._name = name
        self._block = block
        self._without = meminfo()["MemTotal"]
        _make_backend(monitor, name, size)

    def add(self) -> None:
        """Add the device, without memory, and wait for its driver."""
        driver = Path("/sys/bus/virtio/drivers/virtio_mem")
        bound = len(list(driver.glob("virtio*")))
        self._monitor.ask(
            "device_add",
            driver="virtio-mem-pci",
            id=self._name,
            bus=f"{self._name}-port",
            memdev=f"{self._name}-ram",
            node=NODE,
            block_size=self._block,
            requested_size=0,
        )
        wait_until(lambda: len(list(driver.glob("virtio*"))) > bound, "virtio-mem is not bound")

    def resize(self, size: int) -> None:
        """Request a size in bytes, and wait until the guest has as much."""
        self.request(size)
        _wait_for(self._without + size)

    def request(self, size: int) -> None:
        """Request a size in bytes."""
        where = f"/machine/peripheral/{self._name}"
        self._monitor.ask("qom-set", path=where, property="requested-size", value=size)

    def lost(self) -> int:
        """Return by how many pages the guest has less memory than before."""
        return (self._without - meminfo()["MemTotal"]) // PAGE

    def range(self) -> tuple[int, int]:
        """Return the first PFN of the device, and its number of pages."""
        for device in self._monitor.ask("query-memory-devices"):
            data = device["data"]
            if data.get("id") == self._name:
                return data["memaddr"] // PAGE, data["max-size"] // PAGE
        raise RuntimeError(f"there is no device {self._name}")


def _make_backend(monitor: Monitor, name: str, size: int) -> None:
    monitor.ask(
        "object-add", qom_type="memory-backend-ram", id=f"{name}-ram", size=size, reserve=False
    )


def _wait_for(total: int) -> None:
    """Wait until the guest has so many bytes of memory, and the kernel has ended its work."""
    wait_until(
        lambda: meminfo()["MemTotal"] == total,
        lambda: f"{meminfo()['MemTotal']} bytes of memory, not {total}",
    )


def virtio_mem() -> Iterator[Record]:
    """Change the size of a virtio-mem device, and look at each of its pages after each step."""
    (MEMORY / "auto_online_blocks").write_text("online_movable")
    device = VirtioMem(Monitor(), "sub", 4 * SECTION, ALIGN)
    device.add()
    first, pages = device.range()
    half = MEMORY / f"memory{(first * PAGE + 2 * SECTION) // SECTION}"
    steps: dict[str, tuple[Callable[[], object], int]] = {
        "plug": (partial(device.resize, PLUGGED), PLUGGED),
        "drop caches": (partial(put, Path("/proc/sys/vm/drop_caches"), "3"), PLUGGED),
        "compaction": (partial(put, Path("/proc/sys/vm/compact_memory"), "1"), PLUGGED),
        "offline and online": (partial(_offline_and_online, half), PLUGGED),
        "plug kept pages": (partial(device.resize, 3 * SECTION), 3 * SECTION),
        "unplug": (partial(device.resize, LEFT), LEFT),
        "plug what was unplugged": (partial(device.resize, PLUGGED), PLUGGED),
    }
    for name, (step, plugged) in steps.items():
        yield from check(name, _step, step, first, pages, plugged)
    yield from check("memory failure", _fail_kept, first, pages)
    yield from check("unplug all", _unplug_all, device, first, pages)


def _offline_and_online(block: Path) -> None:
    for state in ("offline", "online_movable"):
        put(block / "state", state)


def _step(step: Callable[[], object], first: int, pages: int, plugged: int) -> str:
    step()
    return _looked_at(first, pages, plugged // PAGE)


def _looked_at(first: int, pages: int, plugged: int) -> str:
    """Check the pages of a device of which `plugged` are free; return their state in words."""
    text, totals = scan("states", first, pages), Counter[str]()
    for line in text.splitlines():
        count, references, kind, flags = line.split()
        if kind == "absent":
            continue
        kept = kind == "offline" and references == "1" and flags in ("0", _DIRTY)
        free = kind in ("none", "buddy") and references == "0" and flags == "0"
        expect(kept or free, f"{count} pages: {references} references, {kind}, flags {flags}")
        totals["kept" if kept else "free"] += int(count)
    expect(totals["free"] == plugged, f"{totals['free']} pages are free, not {plugged}")
    # The driver has kept the others of its memory blocks.
    others = -plugged % (SECTION // PAGE)
    expect(totals["kept"] == others, f"{totals['kept']} pages are kept, not {others}")
    return f"{totals['free']} pages free, {totals['kept']} kept, states {_digest(text)}"


def _fail_kept(first: int, pages: int) -> str:
    """Report a memory failure in the last page that is kept."""
    at, kept = first, -1
    for line in scan("states", first, pages).splitlines():
        count, _, kind, _ = line.split()
        at += int(count)
        kept = at - 1 if kind == "offline" else kept
    expect(kept > 0, "no page is kept")
    try:
        put(MEMORY / "hard_offline_page", str(kept * PAGE))
        answer = "accepted"
    except OSError as error:
        answer = f"refused: {error.strerror}"
    corrupted = meminfo()["HardwareCorrupted"] // PAGE
    text = scan("states", first, pages)
    return f"{answer}, {corrupted} corrupted, states {_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _unplug_all(device: VirtioMem, first: int, pages: int) -> str:
    """Unplug all memory, with a page that has failed among it.

    Mainline then subtracts one page too many: __offline_isolated_pages() does not count such a
    page as one that the driver has kept.
    """
    device.request(0)
    blocks = range(first * PAGE // SECTION, (first + pages) * PAGE // SECTION)
    wait_until(
        lambda: not any((MEMORY / f"memory{block}").exists() for block in blocks),
        "some memory blocks stay",
    )
    return f"no memory left, {device.lost()} pages lost"
