# SPDX-License-Identifier: GPL-2.0-only
"""Steps of whole operations leave the same struct pages on both trees, and do what they say."""

import mmap
import struct
from collections.abc import Iterator
from enum import IntEnum

import pytest
from kernel_lines import LINES
from memmaps import MIGRATE_MOVABLE, SECTION, differences, program_for

from pagemint.bench.process import Host
from pagemint.bench.window import POISON, blocks_of, shared_map
from pagemint.bench.workload import FIRST_PFN
from pagemint.bench.workloads import known
from pagemint.words import STRUCT_PAGE

FOLIO = 512
FOLIOS = 4
WINDOW = (FOLIOS + 2) * FOLIO  # a folio on each side is left alone
BELOW = 31  # sections below FIRST_PFN that share a memmap
PG_ANON_EXCLUSIVE = 1 << 11
FOLIO_COMMANDS = {"dax_folio": "fsdax", "device_folio": "private"}


class Step(IntEnum):
    """A step of an unmap; see pagemint/bench/workloads/unmap.c."""

    DELETE, KILL, WAIT_RCU, WAIT_DONE, REMOVE, EXIT = range(6)


def last(steps: list[Step], which: Step) -> int:
    """Return where a step was taken for the last time."""
    return len(steps) - 1 - steps[::-1].index(which)


@pytest.fixture(scope="module", params=LINES[-1:])
def shared(request: pytest.FixtureRequest) -> Iterator[tuple[Host, mmap.mmap]]:
    with shared_map(program_for(request.param, "mask"), WINDOW) as shared:
        yield shared


def folios(
    shared: tuple[Host, mmap.mmap], command: str, tree: str, *, times: int, keep: bool
) -> bytes:
    """Make folios and undo them, several times; return the memmap that is left."""
    host, memmap = shared
    pages = {"start": FIRST_PFN, "pages": WINDOW, "type": FOLIO_COMMANDS[command], "order": 0}
    host.ask("init", tree="base", **pages)
    arguments = {"first": FIRST_PFN + FOLIO, "folios": FOLIOS, "times": times, "keep": int(keep)}
    host.ask(command, tree=tree, **arguments)
    return memmap[:]


def without_exclusive(memmap: bytes) -> bytes:
    """Return a memmap in which freed heads, and no other pages, have lost PG_anon_exclusive."""
    cleared = bytearray(memmap)
    heads = range(FOLIO * STRUCT_PAGE, len(memmap) - FOLIO * STRUCT_PAGE, FOLIO * STRUCT_PAGE)
    for at in heads:
        (flags,) = struct.unpack_from("Q", memmap, at)
        assert flags & PG_ANON_EXCLUSIVE, at // STRUCT_PAGE
        struct.pack_into("Q", cleared, at, flags & ~PG_ANON_EXCLUSIVE)
    return bytes(cleared)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("command", FOLIO_COMMANDS)
def test_device_folios_are_what_base_leaves(
    shared: tuple[Host, mmap.mmap], command: str, times: int, keep: bool
) -> None:
    before = folios(shared, command, "base", times=0, keep=False)
    base = folios(shared, command, "base", times=times, keep=keep)
    patched = folios(shared, command, "patched", times=times, keep=keep)
    if command == "device_folio" and not keep:
        patched = without_exclusive(patched)
    assert not differences(base, patched)

    # Check the oracle, too: every page of a folio is written, and no other one.
    edge = FOLIO * STRUCT_PAGE
    assert base[:edge] == before[:edge]
    assert base[-edge:] == before[-edge:]
    if keep:
        for at in range(edge, len(base) - edge, STRUCT_PAGE):
            assert base[at : at + STRUCT_PAGE] != before[at : at + STRUCT_PAGE], at // STRUCT_PAGE


@pytest.mark.parametrize("anon", [1, 0])
def test_freed_device_folios_are_counted_as_base_counts_them(
    shared: tuple[Host, mmap.mmap], anon: int
) -> None:
    host, _ = shared
    counted = []
    for tree in ("base", "patched"):
        folios(shared, "device_folio", tree, times=0, keep=False)
        where = {"first": FIRST_PFN + FOLIO, "folios": FOLIOS, "times": 1, "anon": anon}
        counted.append(int(host.ask("device_folio", tree=tree, **where)["nr_anon"]))
    assert counted == [-FOLIOS * anon] * 2


def test_splitting_a_dax_folio_leaves_single_pages(shared: tuple[Host, mmap.mmap]) -> None:
    before = folios(shared, "dax_folio", "patched", times=0, keep=False)
    after = folios(shared, "dax_folio", "patched", times=1, keep=False)
    for at in range(0, len(after), STRUCT_PAGE):
        for field in (slice(0, 8), slice(8, 16), slice(52, 56)):  # flags, compound_head, _refcount
            assert after[at:][field] == before[at:][field], at // STRUCT_PAGE


@pytest.fixture(scope="module", params=LINES)
def section(request: pytest.FixtureRequest) -> Iterator[tuple[Host, mmap.mmap]]:
    with shared_map(program_for(request.param, "mask"), SECTION) as (host, memmap):
        host.ask("repeat", pages=SECTION, times=BELOW)
        yield host, memmap


@pytest.mark.parametrize("before", [0, 1, BELOW])
@pytest.mark.parametrize("early", [False, True])
def test_a_block_goes_online_in_a_zone_as_with_base(
    section: tuple[Host, mmap.mmap], before: int, early: bool
) -> None:
    host, memmap = section
    left, contiguous = [], []
    for tree in ("base", "patched"):
        host.ask("poison", byte=POISON, first=FIRST_PFN, pages=SECTION)
        answer = host.ask("online", tree=tree, start=FIRST_PFN, before=before, early=int(early))
        left.append(memmap[:])
        contiguous.append(bool(int(answer["contiguous"])))
        blocks = range(FIRST_PFN, FIRST_PFN + SECTION, FOLIO)
        assert blocks_of(host, tree) == [f"{pfn}:{MIGRATE_MOVABLE}:1" for pfn in blocks]
    assert not differences(*left)
    assert bytes([POISON]) * STRUCT_PAGE not in left[0]
    # Mainline looks at all pageblocks from the start of the zone up to the first that is not
    # online, so it finds no hole only if it gets through all sections.
    assert contiguous == [early, True]


@pytest.mark.parametrize("fails", [0, 1, 5, 6])
def test_no_section_stays_if_adding_a_later_one_fails(
    section: tuple[Host, mmap.mmap], fails: int
) -> None:
    host, _ = section
    added = 6
    for tree, left in (("base", (1 << fails) - 1), ("patched", 0)):
        answer = host.ask("add", tree=tree, start=FIRST_PFN, pages=added * SECTION, fails=fails)
        failed = fails < added
        wanted = left if failed else (1 << added) - 1
        assert (int(answer["failed"]), int(answer["present"])) == (failed, wanted), tree


@pytest.mark.parametrize("ranges", [1, 3])
def test_an_unmap_removes_pages_after_references_and_ends_after_lookups(
    section: tuple[Host, mmap.mmap], ranges: int
) -> None:
    host, _ = section
    host.ask("init", tree="base", start=FIRST_PFN, pages=SECTION, type="private", order=0)
    pfns = [FIRST_PFN - at * SECTION for at in range(ranges)]
    periods = {}
    for tree in ("base", "patched"):
        answer = host.ask("unmap", tree=tree, first=FIRST_PFN, ranges=ranges)
        steps = [tuple(map(int, step.split(":"))) for step in answer["step"].split(",")]
        done = [Step(what) for what, _ in steps]
        for what in (Step.DELETE, Step.REMOVE):
            assert [pfn for step, pfn in steps if step == what] == pfns, tree
        kill, wait, leave = (done.index(step) for step in (Step.KILL, Step.WAIT_DONE, Step.EXIT))
        assert kill < wait < done.index(Step.REMOVE) <= last(done, Step.REMOVE) < leave, tree
        # Lookups that found the pgmap are over before it can be freed.
        assert Step.WAIT_RCU in done[last(done, Step.DELETE) : leave], tree
        periods[tree] = done.count(Step.WAIT_RCU)
        if tree == "patched":
            # Both waits begin before either ends.
            assert kill < done.index(Step.WAIT_RCU) < wait
    assert periods == {"base": ranges, "patched": 1}


def test_blocks_of_a_memmap_are_zeroed_by_base_alone(in_user_cache: None) -> None:
    pages, end = 2 * SECTION, 2 * SECTION + 2 * FOLIO
    left = {}
    with shared_map(program_for("7.3", "mask"), end + FOLIO) as (host, memmap):
        for tree, byte in (("base", 0), ("patched", POISON)):
            host.ask("poison", byte=POISON, first=FIRST_PFN, pages=end + FOLIO)
            where = {"first": FIRST_PFN, "blocks": 2, "page": FIRST_PFN + pages}
            host.ask("vmemmap", tree=tree, **where)
            allocated = memmap[: pages * STRUCT_PAGE]
            assert allocated == bytes([byte]) * len(allocated), tree
            host.ask("init", tree=tree, start=FIRST_PFN, pages=pages, type="private", order=0)
            left[tree] = memmap[:]
    # The fill leaves nothing of the poison, and the struct pages of the blocks are alike, too.
    assert not differences(left["base"], left["patched"])
    filled = left["patched"][: pages * STRUCT_PAGE]
    poison = bytes([POISON]) * STRUCT_PAGE
    assert all(filled[at : at + STRUCT_PAGE] != poison for at in range(0, len(filled), STRUCT_PAGE))
    assert left["patched"][end * STRUCT_PAGE :] == poison * FOLIO


def test_workloads_of_steps_name_the_first_line_with_their_code() -> None:
    since = {name: workload.since for name, workload in known().items() if any(workload.since)}
    assert since == dict.fromkeys(
        ("dax-folio", "device-folio", "grow", "populate", "vmemmap"), (7, 3)
    )
