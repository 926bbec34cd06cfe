# SPDX-License-Identifier: GPL-2.0-only
"""Hot-adds and removes memory again and again, and records the memory that boot left."""

import mmap
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint.guests.inside.checks import (
    ANONYMOUS,
    Record,
    address_of,
    bind_memory,
    check,
    expect,
    pattern,
)
from pagemint.guests.inside.devices import PROBE, meminfo, put, run, the_one, wait_until
from pagemint.guests.inside.modes import Modes

PAGEBLOCK = 512  # pages
_FILL = 256 << 20  # bytes that are used beyond the memory with struct pages
TRIES = 10  # changes of a memory block's state
# Takes memory, writes to all of it and gives it back, until it is ended.
LOAD = "while True: bytearray(b'x') * (96 << 20)"


def hotplug(count: int, modes: Modes) -> Iterator[Record]:
    """Make a bound devdax device ordinary memory and back, in all modes in turn, under a load."""
    yield from check("hot-add and hot-remove", _cycles, count, modes)


def _cycles(count: int, modes: Modes) -> str:
    dax = the_one("dax*.*").name
    node = int(Path("/sys/bus/dax/devices", dax, "target_node").read_text())
    first: list[str] = []
    holes = 0
    with _load():
        for number in range(count):
            mode = modes.names[number % len(modes.names)]
            modes.choose(mode)
            run("daxctl", "reconfigure-device", "--mode=system-ram", dax)
            lines = sizes(node)
            expect(bool(lines), f"node {node} has no memory in round {number} ({mode})")
            check_zones(modes)
            holes += _leave_a_hole(node, modes)
            first = first or lines
            expect(lines == first, f"round {number} ({mode}): {lines}, not {first}")
            _use(node, number)
            run("daxctl", "reconfigure-device", "--mode=devdax", "--force", dax)
            check_zones(modes)
    return f"{count} times under a load, {holes} holes, node {node}: {'; '.join(first)}"


def _leave_a_hole(node: int, modes: Modes) -> bool:
    """Take a block between two movable ones offline and back; return whether there is one."""
    every = Path(f"/sys/devices/system/node/node{node}").glob("memory[0-9]*")
    movable = [path for path in every if (path / "valid_zones").read_text() == "Movable\n"]
    movable.sort(key=lambda path: int(path.name.removeprefix("memory")))
    if len(movable) < 3:
        return False
    block = movable[len(movable) // 2] / "state"
    for state in ("offline", "online_movable"):
        _change(block, state)
        check_zones(modes)
    return True


def _change(block: Path, state: str) -> None:
    """Change the state of a memory block; pages that are in use for a moment can refuse it."""
    for tries_left in reversed(range(TRIES)):
        try:
            put(block, state)
            return
        except OSError:
            if not tries_left:
                raise
            time.sleep(1)


@contextmanager
def _load() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", LOAD]) as load:
        try:
            yield
            expect(load.poll() is None, f"the load ended with status {load.poll()}")
        finally:
            load.kill()


def _use(node: int, seed: int) -> None:
    """Hold data in memory of a node."""
    data = pattern(seed, ANONYMOUS)
    with mmap.mmap(-1, ANONYMOUS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        bind_memory(address_of(memory), ANONYMOUS, node)
        memory[:] = data
        expect(memory[:] == data, f"the data on node {node} changed")


def boot() -> Iterator[Record]:
    """Return the time until the kernel started init, and the sizes of the memory after boot.

    If boot went on before all struct pages were written, memory is used until they are needed.
    """
    mode, nodes = deferred_init(), deferred_nodes()
    started = re.search(r"^\[ *(\d+\.\d+)\] Run \S+ as init process", run("dmesg"), re.MULTILINE)
    if not started:
        raise RuntimeError("the log does not say when the kernel started init")
    wait_for_background(mode)
    if mode == "lazy":
        _use_deferred_memory()
    yield {**memory(nodes), "init_ms": float(started[1]) * 1e3}


def deferred_init() -> str:
    """Return the value of deferred_init= with which the kernel was booted."""
    match = re.search(r"\bdeferred_init=(\S+)", Path("/proc/cmdline").read_text())
    return match[1] if match else "eager"


def wait_for_background(mode: str) -> None:
    """Wait until all struct pages are written, if threads write them in the background."""
    if mode == "background":
        wait_until(lambda: not meminfo()["Deferred"], "some memory stays deferred")


def deferred_nodes() -> int:
    """Return on how many nodes deferred struct pages were initialised, as far as the log says."""
    return len(re.findall(r"node \d+ deferred pages initialised", run("dmesg")))


def memory(nodes: int) -> Record:
    """Return a record of the sizes of all memory, as far as no allocation changes them.

    Args:
        nodes: the number of nodes with deferred struct pages.
    """
    if not meminfo().get("Deferred"):
        expect_contiguous_flags()
    return {
        "mem_total_kib": meminfo()["MemTotal"] >> 10,
        "zones": sizes(),
        "deferred_nodes": nodes,
    }


def _use_deferred_memory() -> None:
    """Hold data in more memory than has struct pages, and give it back."""
    before = meminfo()
    expect(before["Deferred"] > _FILL, f"only {before['Deferred']} bytes are deferred")
    ready = before["MemFree"] - before["Deferred"]
    with mmap.mmap(-1, ready + _FILL, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        data = pattern(1, len(memory) // mmap.PAGESIZE)
        memory[:: mmap.PAGESIZE] = data
        expect(memory[:: mmap.PAGESIZE] == data, "the data changed")
        left = meminfo()["Deferred"]
    expect(left <= before["Deferred"] - _FILL // 2, f"{left} bytes are deferred, which were needed")


def sizes(node: int | None = None) -> list[str]:
    """Return a line for each zone with memory: its pages, and its pageblocks of all types.

    Args:
        node: the node; all nodes by default.
    """
    lines = []
    blocks = _blocks()
    for where, zone, words in zones():
        # Blocks without struct pages are in no list of pageblocks yet.
        deferred = words.pop("nr_deferred", 0) // PAGEBLOCK
        if node in (None, where) and words.get("present"):
            pages = ", ".join(f"{name} {number}" for name, number in words.items())
            there = blocks.get((str(where), zone), 0) + deferred
            lines.append(f"node {where} {zone}: {pages}, blocks {there}")
    return lines


def zones() -> Iterator[tuple[int, str, dict[str, int]]]:
    """Yield the node and the name of each zone, and its numbers of pages in /proc/zoneinfo."""
    text = Path("/proc/zoneinfo").read_text()
    for node, zone, about in re.findall(r"^Node (\d+), zone +(\S+)\n((?: .*\n)*)", text, re.M):
        words = re.findall(r"^ +(spanned|present|managed|nr_deferred) +(\d+)$", about, re.M)
        yield int(node), zone, {name: int(pages) for name, pages in words}


def check_zones(modes: Modes) -> None:
    """Check the flags of zones on a patched kernel.

    Mainline clears the flag of a zone that gets memory, for good.
    """
    if "slow" in modes.names:
        expect_contiguous_flags()


def expect_contiguous_flags() -> None:
    """Expect that the flag of each zone is what a walk over its pageblocks says."""
    for line in (PROBE / "zones").read_text().splitlines():
        node, zone, flag, whole = line.split()
        expect(flag == whole, f"node {node} {zone}: contiguous is {flag}, not {whole}")


def _blocks() -> dict[tuple[str, str], int]:
    """Return the number of pageblocks in each node and zone, of all types together."""
    text = Path("/proc/pagetypeinfo").read_text()
    _, _, table = text.partition("Number of blocks type")
    rows = re.findall(r"^Node (\d+), zone +(\S+) +([\d ]+)$", table, re.MULTILINE)
    return {(node, zone): sum(map(int, counts.split())) for node, zone, counts in rows}
