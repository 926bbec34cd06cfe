# SPDX-License-Identifier: GPL-2.0-only
"""Uses the memory of a guest that booted before all struct pages were written.

The same checks run after a boot with deferred_init=eager, whose memory has to be the same at the
end.
"""

import mmap
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pagemint.guests.inside import ordinary
from pagemint.guests.inside.checks import (
    PAGE,
    Record,
    address_of,
    bind_memory,
    check,
    child,
    expect,
    pattern,
    status_of,
)
from pagemint.guests.inside.devices import ALIGN, MEMORY, PROBE, SECTION, meminfo, put, run, scan
from pagemint.guests.inside.edges import OOM_SCORE

NODES = Path("/sys/devices/system/node")
HUGE = Path("/sys/kernel/mm/hugepages")
CMA = PROBE.parent / "cma"
GIGANTIC = 1 << 30  # bytes
MAP_HUGETLB, MAP_HUGE_1GB = 0x40000, 30 << 26
SPARE = 192 << 20  # bytes that hogs leave to others
STEP = 64 << 20  # bytes that a hog without an end takes at a time
CHANGED = 3  # memory blocks that go offline, or are removed, and come back
FOREIGN = 0.02  # the share of pages for a node that may come from another one
HOGS = 8
BEYOND = 8  # huge pages beyond what a zone has
LIMIT = 64 << 20  # bytes of a memory cgroup
PIECE = 1024  # pages of a contiguous allocation
_BASE = "it has no deferred_init="


def everything() -> Iterator[Record]:
    """Check each way to use memory, then return the sizes of all memory."""
    mode, nodes = ordinary.deferred_init(), ordinary.deferred_nodes()
    steps = {
        "walks over all memory": _walk,
        "memory failures": _fail,
        "huge pages": _take_huge_pages,
        "gigantic pages": _take_gigantic_pages,
        # Dissolves the huge pages of these blocks.
        "blocks offline or removed, and back": _change,
        "contiguous memory": _take_contiguous,
        "a full memory cgroup": _fill_cgroup,
        "the local node first": _fill_local_node,
        "transparent huge pages": _take_transparent,
        "eight programs at once": _take_together,
        "out of memory": _take_all,
    }
    for name, work in steps.items():
        before = deferred()
        for record in check(f"{mode}, {name}", work):
            if "check" in record and before:
                record["said"] += f"; {before >> 20} MiB were deferred, {deferred() >> 20} are"
            yield {**record, "base": _BASE}
    yield {**ordinary.memory(nodes), "base": _BASE}


def stray() -> Iterator[Record]:
    """Read the struct page of a page that is online, then of one that is deferred."""
    blocks = deferred_blocks()
    expect(bool(blocks), "no memory is deferred")
    # A page at 1 MiB is online in every guest.
    for name, pfn in (("online", (1 << 20) // PAGE), ("deferred", _first(blocks[-1]))):
        yield {"running": name}
        put(PROBE / "stray", str(pfn))
        yield {"read": name}


def reserve() -> Iterator[Record]:
    """Take huge pages of a zone, and more, while lowmem_reserve protects deferred memory."""
    yield from check("protected memory stays deferred", _overfill)


def deferred(node: int | None = None) -> int:
    """Return the bytes of memory without struct pages, on one node or on all."""
    pages = (
        words.get("nr_deferred", 0) for where, _, words in ordinary.zones() if node in (None, where)
    )
    return sum(pages) * PAGE


def deferred_blocks() -> list[Path]:
    """Return the memory blocks that are online, but without struct pages."""
    return [block for block in _blocks() if _states(block, 1) == ["absent"]]


def _blocks() -> list[Path]:
    blocks = sorted(MEMORY.glob("memory[0-9]*"), key=lambda block: int(block.name[6:]))
    return [block for block in blocks if (block / "state").read_text() == "online\n"]


def _first(block: Path) -> int:
    """Return the first PFN of a memory block."""
    return int(block.name.removeprefix("memory")) * SECTION // PAGE


def _states(block: Path, pages: int) -> list[str]:
    """Return the state of the first pages of a block: absent, free (first of a chunk) or other."""
    states: list[str] = []
    for line in scan("states", _first(block), pages).splitlines():
        count, references, kind, flags = line.split()
        # A tail page of a free chunk looks like one of a large folio that is in use.
        free = kind == "buddy" and (references, flags) == ("0", "0")
        states += [kind if kind == "absent" else "free" if free else "other"] * int(count)
    return states


def _anonymous(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _hold(size: int, *, huge: bool = False) -> str:
    """Write a byte into each page of that many bytes, or each huge one, and read it again."""
    step = ALIGN if huge else PAGE
    with _anonymous(size) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
        data = pattern(size, size // step)
        memory[::step] = data
        inside = meminfo()
        expect(memory[::step] == data, "the data changed")
        if huge:
            share = inside["AnonHugePages"] / size
            expect(share > 0.95, f"{share:.0%} of the memory is in huge pages")
    return f"{size >> 20} MiB held"


def _room(share: float = 1.0) -> int:
    """Return a share of the free memory, without what is left to others."""
    return int((meminfo()["MemAvailable"] - SPARE) * share) // ALIGN * ALIGN


def _walk() -> str:
    """Walk over all pages, and compact memory: that initialises one section at most."""
    before = deferred()
    with Path("/proc/kpageflags").open("rb", buffering=0) as file:
        entries = sum(map(len, iter(lambda: file.read(1 << 20), b""))) // 8
    expect(entries > 0, "/proc/kpageflags is empty")
    text = Path("/proc/pagetypeinfo").read_text()
    expect("Movable" in text, "/proc/pagetypeinfo has no movable block")
    put(Path("/proc/sys/vm/drop_caches"), "3")
    put(Path("/proc/sys/vm/compact_memory"), "1")
    grown = before - deferred()
    expect(grown <= SECTION, f"{grown} bytes got struct pages")
    return f"{entries} pages"


def _fail() -> str:
    """Let free pages fail: two of a memory block without struct pages, and two of the next."""
    pages = SECTION // PAGE
    roomy = (path for path in reversed(_blocks()) if "free" in _states(path, pages)[pages // 2 :])
    block = next(reversed(deferred_blocks()), None) or next(roomy, None)
    if not block:
        raise RuntimeError("no block has free pages in its second half")
    before = meminfo()["HardwareCorrupted"]
    for file in ("hard_offline_page", "soft_offline_page"):
        # One in each half: the rest of a free chunk that was split is allocated first.
        for start in (0, pages // 2):
            states = _states(block, pages)
            free = (i for i in range(start, len(states)) if states[i] in ("absent", "free"))
            page = next(free, -1)
            expect(page >= 0, f"{block.name} has no free page")
            put(MEMORY / file, str((_first(block) + page) * PAGE))
        expect("absent" not in _states(block, 1), f"{block.name} has no struct pages")
        # The next file gets a block that is deferred again, if there is one.
        block = (deferred_blocks() or [block])[-1]
    failed = (meminfo()["HardwareCorrupted"] - before) // PAGE
    expect(failed == 4, f"{failed} pages are corrupted, not 4")
    return "2 pages failed, 2 went offline"


def _change() -> str:
    """Take free blocks offline, or remove them, and take them back."""
    changed = 0
    # All on the last node: once a block is removed, its memmap of boot counts as managed there.
    for block in reversed(deferred_blocks()[-CHANGED:] or _blocks()):
        try:
            if changed % 2:
                put(block / "state", "offline")
            else:
                put(PROBE / "replug", str(_first(block)))
        except OSError:
            continue  # it has pages that cannot move
        put(block / "state", "online")
        changed += 1
        if changed == CHANGED:
            break
    expect(changed == CHANGED, f"only {changed} blocks could go")
    return f"{changed} blocks"


def _take_huge_pages() -> str:
    """Take a quarter of the memory as huge pages at run time."""
    file = HUGE / "hugepages-2048kB/nr_hugepages"
    before = int(file.read_text())
    expect(before > 0, "there are no huge pages from boot")
    wanted = before + _room(0.25) // ALIGN
    put(file, str(wanted))
    got = int(file.read_text())
    put(file, "0")
    expect(got == wanted, f"{got} pages, not {wanted}")
    return f"{before} pages from boot, {got - before} more"


def _take_gigantic_pages() -> str:
    """Use a gigantic page from boot and one of run time."""
    file = HUGE / "hugepages-1048576kB/nr_hugepages"
    expect(file.read_text() == "1\n", "there is no gigantic page from boot")
    put(file, "2")
    got = int(file.read_text())
    expect(got == 2, f"{got} pages, not 2")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_1GB
    with mmap.mmap(-1, 2 * GIGANTIC, flags=flags) as memory:
        data = pattern(1, len(memory) // ALIGN)
        memory[::ALIGN] = data
        expect(memory[::ALIGN] == data, "the data changed")
    put(file, "0")
    return "1 page from boot, 1 more"


def _take_contiguous() -> str:
    """Allocate from the contiguous memory that boot reserved, and free it."""
    (area,) = (path for path in CMA.iterdir() if (path / "alloc").exists())
    put(area / "alloc", str(PIECE))
    taken = int((area / "used").read_text())
    put(area / "free", str(PIECE))
    expect(taken >= PIECE, f"{taken} pages were taken")
    return f"{PIECE} pages of {meminfo()['CmaTotal'] // PAGE}"


def _fill_cgroup() -> str:
    """Run out of memory in a memory cgroup, which is to kill, though much memory is deferred."""
    root = Path(tempfile.mkdtemp())
    run("mount", "-t", "cgroup2", "none", root)
    (root / "cgroup.subtree_control").write_text("+memory")
    group = root / "pagemint"
    group.mkdir()
    (group / "memory.max").write_text(str(LIMIT))
    before = deferred()

    def hog() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        _hold(4 * LIMIT)

    _expect_killed(child(hog))
    grown = before - deferred()
    expect(grown <= LIMIT + SECTION, f"{grown} bytes got struct pages")
    (kills,) = re.findall(r"^oom_kill (\d+)$", (group / "memory.events").read_text(), re.M)
    expect(int(kills) > 0, "the kill was not in the cgroup")
    group.rmdir()
    return f"killed at {LIMIT >> 20} MiB"


def _expect_killed(pid: int) -> None:
    status = status_of(pid)
    expect(status == -signal.SIGKILL, f"the program ended with {status}")


def _fill_local_node() -> str:
    """Take most of the memory of this CPU's node, which is to grow before others are used."""
    (free,) = re.findall(r"MemFree: +(\d+) kB", (NODES / "node0/meminfo").read_text())
    others, elsewhere = deferred() - deferred(0), _numa_foreign()
    size = (int(free) << 10) * 3 // 4 // ALIGN * ALIGN
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    try:
        finding = _hold(size)
    finally:
        os.sched_setaffinity(0, cpus)
    missed = _numa_foreign() - elsewhere
    expect(missed * PAGE < size * FOREIGN, f"{missed} pages are on another node")
    grown = others - (deferred() - deferred(0))
    expect(grown <= SECTION, f"{grown} bytes of other nodes got struct pages")
    return f"{finding}, {missed} pages elsewhere"


def _numa_foreign() -> int:
    """Return how many pages were meant for node 0 and came from another node."""
    (count,) = re.findall(r"^numa_foreign (\d+)$", (NODES / "node0/numastat").read_text(), re.M)
    return int(count)


def _take_transparent() -> str:
    return _hold(_room(0.75), huge=True)


def _overfill() -> str:
    """Fill ZONE_MOVABLE of the last node, of which most memory is moved there."""
    blocks = [block for block in _blocks() if (block / "node1").exists()]
    for block in blocks[len(blocks) // 3 :]:
        with suppress(OSError):  # it has pages that cannot move
            put(block / "state", "offline")
            put(block / "state", "online_movable")
    # ZONE_NORMAL is to keep as many pages for others as ZONE_MOVABLE has.
    put(Path("/proc/sys/vm/lowmem_reserve_ratio"), "1 1 1")
    before = deferred(1)
    expect(before > 0, "no memory of the node is deferred")
    text = Path("/proc/zoneinfo").read_text()
    (free,) = re.findall(r"^Node 1, zone +Movable\n +pages free +(\d+)$", text, re.M)
    size = int(free) * PAGE // ALIGN * ALIGN + BEYOND * ALIGN
    with _anonymous(size + ALIGN) as memory:
        address = address_of(memory)
        start = -address % ALIGN
        bind_memory(address + start, size, 1)
        memory.madvise(mmap.MADV_HUGEPAGE)
        for offset in range(start, start + size, ALIGN):
            memory[offset] = 1
            if deferred(1) != before:
                break
    grown = before - deferred(1)
    expect(not grown, f"{grown >> 20} MiB got struct pages")
    return f"{before >> 20} MiB"


def _take_together() -> str:
    """Fill memory by several programs at once, on all CPUs."""
    size = _room() // HOGS // ALIGN * ALIGN
    hogs = [child(lambda: _hold(size)) for _ in range(HOGS)]
    ended = [status_of(hog) for hog in hogs]
    expect(not any(ended), f"the programs ended with {ended}")
    return f"{HOGS} of {size >> 20} MiB each"


def _take_all() -> str:
    """Take memory without an end: the kernel is to kill for it only when nothing is deferred."""

    def hog() -> None:
        OOM_SCORE.write_text("1000")
        held = []
        while True:
            held.append(_anonymous(STEP))
            held[-1][::PAGE] = bytes(STEP // PAGE)

    _expect_killed(child(hog))
    told = re.findall(r" deferred:(\d+)kB", run("dmesg"))
    expect(bool(told), "there is no report of the OOM killer")
    expect(not any(map(int, told)), f"a kill came while {told} kB were deferred")
    left = deferred()
    expect(not left, f"{left} bytes have no struct pages")
    return "killed with no memory deferred"
