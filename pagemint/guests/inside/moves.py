# SPDX-License-Identifier: GPL-2.0-only
"""Moves 2 MiB folios between nodes with move_pages(2), and copies them with kernel functions."""

import ctypes
import mmap
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint.guests.inside.checks import (
    LIBC,
    PAGE,
    Record,
    address_of,
    bind_memory,
    check,
    expect,
    pattern,
)
from pagemint.guests.inside.devices import run, the_one

FOLIO = 2 << 20
MOST = 1_000_000_000  # bytes to move at a time, and no more than a quarter of the device
SAMPLE = 16  # folios that the module copies at a time
STEP = 4104  # bytes between the data of two folios in the source, so that all folios differ
SYS_MOVE_PAGES = 279
MPOL_MF_MOVE = 2
NODES = Path("/sys/devices/system/node")
PROBE = Path("/sys/kernel/debug/pagemint_folio")
FUNCTIONS = ("folio_copy", "folio_mc_copy")
WAIT = 300  # seconds for a machine check to come
QUEUED = 10  # seconds for the kernel to handle the page


LIBC.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Folios:
    """Anonymous memory of whole 2 MiB folios."""

    def __init__(self, address: int, count: int, node: int) -> None:
        """Take `count` folios from `node`, at `address`, which is aligned."""
        self.addresses = [address + number * FOLIO for number in range(count)]
        self.node = node
        self._data = pattern(4, 2 * FOLIO)
        self._source = ctypes.create_string_buffer(self._data, len(self._data))
        self._written = 0
        bind_memory(address, count * FOLIO, node)
        self.write()
        self._check_place("were allocated")

    def write(self) -> None:
        """Write new data, so that data left behind by an earlier move does not pass the check."""
        self._written += len(self.addresses)
        for address, source in self._sources():
            ctypes.memmove(address, source, FOLIO)

    def move(self, node: int) -> int:
        """Write the folios, move them to `node`, check them; return the nanoseconds of the move."""
        self.write()
        count = len(self.addresses)
        before = set(self._frames())
        nodes = (ctypes.c_int * count)(*[node] * count)
        start = time.monotonic_ns()
        left, status = self._move_pages(nodes)
        taken = time.monotonic_ns() - start
        expect(not left, f"{left} of {count} folios were not moved to node {node}")
        expect(set(status) == {node}, f"move_pages() to node {node} says {sorted(set(status))}")
        self.node = node
        self._check_place("were moved")
        again = before & set(self._frames())
        expect(not again, f"{len(again)} of {count} folios are where they were")
        for number, (address, source) in enumerate(self._sources()):
            same = not LIBC.memcmp(address, source, FOLIO)
            expect(same, f"folio {number} of {count} changed as it moved to node {node}")
        return taken

    def _sources(self) -> Iterator[tuple[int, int]]:
        start = ctypes.addressof(self._source)
        for number, address in enumerate(self.addresses, self._written):
            yield address, start + number * STEP % FOLIO

    def _move_pages(self, nodes: "ctypes.Array[ctypes.c_int] | None") -> tuple[int, list[int]]:
        """Call move_pages(2); without `nodes` it returns the nodes of the folios."""
        count = len(self.addresses)
        pages = (ctypes.c_void_p * count)(*self.addresses)
        status = (ctypes.c_int * count)(*[-1] * count)
        number, pid, many = (ctypes.c_long(word) for word in (SYS_MOVE_PAGES, 0, count))
        left = LIBC.syscall(number, pid, many, pages, nodes, status, ctypes.c_long(MPOL_MF_MOVE))
        if left < 0:
            raise OSError(ctypes.get_errno(), f"move_pages: {os.strerror(ctypes.get_errno())}")
        return left, list(status)

    def _check_place(self, done: str) -> None:
        """Check that all folios are on their node, and whole: mapped by one entry of 2 MiB."""
        _, status = self._move_pages(None)
        elsewhere = sum(node != self.node for node in status)
        total = len(status)
        expect(not elsewhere, f"{elsewhere} of {total} folios {done} and are not on {self.node}")
        whole = _huge_bytes(self.addresses[0], self.addresses[-1] + FOLIO) // FOLIO
        expect(whole == total, f"{total} folios {done}, and {whole} of them are whole")

    def _frames(self) -> list[int]:
        """Return the page frame number that each folio begins with."""
        with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
            words = [os.pread(file.fileno(), 8, address // PAGE * 8) for address in self.addresses]
        return [int.from_bytes(word, "little") & (1 << 55) - 1 for word in words]


def _huge_bytes(start: int, end: int) -> int:
    """Return the bytes from `start` to `end` that are mapped by entries of 2 MiB."""
    inside, total = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if match := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(match[1], 16) < end and int(match[2], 16) > start
        elif inside and line.startswith("AnonHugePages:"):
            total += int(line.split()[1]) << 10
    return total


@contextmanager
def _folios(size: int, node: int) -> Iterator[Folios]:
    """Map `size` bytes of folios on `node`."""
    with mmap.mmap(-1, size + FOLIO, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        yield Folios(-(-address_of(memory) // FOLIO) * FOLIO, size // FOLIO, node)


def _nodes(which: str) -> list[int]:
    """Return the nodes in the list `which` of sysfs."""
    nodes: list[int] = []
    for part in (NODES / which).read_text().strip().split(","):
        first, _, last = part.partition("-")
        nodes += range(int(first), int(last or first) + 1)
    return nodes


def migrate(count: int) -> Iterator[Record]:
    """Move folios `count` times in each direction, between nodes and to a node without CPUs.

    A bound devdax device becomes the memory of the node without CPUs, as CXL memory does.
    """
    dax = the_one("dax*.*").name
    run("daxctl", "reconfigure-device", "--mode=system-ram", dax)
    sysfs = Path("/sys/bus/dax/devices", dax)
    far = int((sysfs / "target_node").read_text())
    size = min(MOST, int((sysfs / "size").read_text()) // 4) // FOLIO * FOLIO
    near = _nodes("has_cpu")
    if len(near) < 2 or far in near or far not in _nodes("has_memory"):
        raise RuntimeError(f"the nodes with CPUs are {near}, and the device is node {far}")
    cpus = os.sched_getaffinity(0)
    # Stay on the first node, so that all moves are made by its CPU.
    os.sched_setaffinity(0, {min(cpus)})
    for name, to, ways in (
        ("moves between nodes", near[1], ("migrate", "migrate")),
        ("moves to a node without CPUs and back", far, ("migrate-demote", "migrate-promote")),
    ):
        taken: list[int] = []
        yield from check(name, _move, (near[0], to), size, count, taken)
        for number, ns in enumerate(taken):
            yield {"workload": ways[number % 2], "function": "", "ns": ns, "bytes": size}
    os.sched_setaffinity(0, cpus)


def _move(where: tuple[int, int], size: int, count: int, taken: list[int]) -> str:
    """Move folios there and back `count` times; add the nanoseconds of each move to `taken`."""
    home, away = where
    with _folios(size, home) as folios:
        # The first moves write untouched memory, and do not count.
        for number in range(count + 1):
            for node in (away, home):
                ns = folios.move(node)
                if number:
                    taken.append(ns)
    return f"{size // FOLIO} folios whole and unchanged in {2 * count + 2} moves"


def copies(count: int, module: str) -> Iterator[Record]:
    """Make the module copy folios `count` times with each of FUNCTIONS."""
    _insert(module)
    for _ in range(count):
        for function in FUNCTIONS:
            (PROBE / "copy").write_text(f"{function} {SAMPLE}")
            ns, size = (int(word) for word in (PROBE / "copy").read_text().split())
            yield {"workload": "folio", "function": function, "ns": ns, "bytes": size}


def machine_check(module: str) -> Iterator[Record]:
    """Make the module copy a folio until a machine check is injected from outside."""
    _insert(module)
    file = PROBE / "machine_check"
    copying = threading.Thread(target=file.write_text, args=(str(WAIT),))
    copying.start()
    while copying.is_alive() and file.read_text().startswith("0 "):
        time.sleep(0.1)
    yield {"running": "copying", "pfn": int(file.read_text().split()[0])}
    copying.join()
    _, result, queued, first, exact = map(int, file.read_text().split())
    # A worker handles the page later.
    handled, end = False, time.monotonic() + QUEUED
    while not handled and time.monotonic() < end:
        handled = f"Memory failure: {first:#x}: " in run("dmesg")
    yield {
        "result": result,
        "queued": queued,
        "pfn": first,
        "exact": bool(exact),
        "handled": handled,
    }


def _insert(module: str) -> None:
    if not PROBE.exists():
        run("insmod", module)
