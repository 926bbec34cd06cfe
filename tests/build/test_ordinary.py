# SPDX-License-Identifier: GPL-2.0-only
"""Every mode leaves ordinary memory, initialised and freed, as the base tree leaves it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_lines import LINES, LONG
from memmaps import (
    HOSTS,
    MIGRATE_MOVABLE,
    PAGEBLOCK,
    SECTION,
    Memmap,
    differences,
    open_memmap,
    program_for,
)

from pagemint.bench.link import Program
from pagemint.bench.variants import modes_of
from pagemint.bench.window import POISON, blocks_of
from pagemint.bench.workload import FIRST_PFN
from pagemint.words import MODES, STRUCT_PAGE

CHUNK = 1024
MARGIN = CHUNK  # pages that are compared on both sides of the written ones
DRIVERS = ("none", "onlines", "keeps", "keeps odd", "hyperv", "forgets")
EXAMPLES = 10_000 if LONG else 300


@dataclass(frozen=True)
class Case:
    """Memory that is initialised and freed.

    Attributes:
        start: the first PFN, counted from the first one of the window.
        nr: number of pages.
        nid: its node.
        block: pages of a hot-added block; 0 for deferred init at boot.
        free: the ranges that are free at boot, counted from `start`: first page and end of each.
        driver: which pages a driver keeps offline: one of DRIVERS.
        back: whether it brings them online later.
        unaccepted: whether a guest has yet to accept the memory.
        order: of the chunks that boot frees before it defers anything; None if it defers them.
    """

    start: int
    nr: int
    nid: int
    block: int
    free: tuple[tuple[int, int], ...] = ()
    driver: str = "none"
    back: bool = False
    unaccepted: bool = False
    order: int | None = None

    @property
    def written(self) -> set[int]:
        """The pages that are initialised, counted from `start`."""
        if self.block or self.order is not None:
            return set(range(self.nr))
        return {page for first, end in self.free for page in range(first, end)}

    @property
    def kept(self) -> set[int]:
        """The pages that a driver keeps in the end, counted from `start`."""
        if self.back or self.driver not in ("keeps", "keeps odd", "forgets"):
            return set()
        first = FIRST_PFN + MARGIN + self.start
        odd = self.driver == "keeps odd"
        return {page for page in range(self.nr) if not odd or (first + page) // PAGEBLOCK % 2}

    def command(self) -> tuple[str, dict[str, object]]:
        """Return the host's command and its arguments."""
        start = FIRST_PFN + MARGIN + self.start
        arguments: dict[str, object] = {
            "start": start,
            "pages": self.nr,
            "nid": self.nid,
            "unaccepted": int(self.unaccepted),
        }
        if self.block:
            driver = DRIVERS.index(self.driver)
            return "hotplug", arguments | {
                "block": self.block,
                "driver": driver,
                "check": 1,
                "back": int(self.back),
            }
        if self.order is not None:
            return "early", {**arguments, "order": self.order}
        for number, (first, end) in enumerate(self.free):
            arguments |= {f"free{number}": start + first, f"end{number}": start + end}
        return "boot", arguments


@dataclass(frozen=True)
class Left:
    """The state that a run leaves.

    Attributes:
        pages: the memmap, with MARGIN pages on both sides.
        blocks: the pageblocks, as the host reports them.
        zone: a hash over the node: free lists, counters.
        events: calls of page_ref_set.
    """

    pages: bytes
    blocks: list[str]
    zone: str
    events: int


def bring_up(memory: Memmap, case: Case, variant: str) -> Left:
    """Poison the watched pages and bring the memory up."""
    watched = case.nr + 2 * MARGIN
    memory.host.ask("poison", byte=POISON, first=FIRST_PFN + case.start, pages=watched)
    tree = "base" if variant == "base" else "patched"
    if variant != "base":
        memory.host.ask("mode", tree=tree, name=variant)
    command, arguments = case.command()
    answer = memory.host.ask(command, tree=tree, **arguments)
    first = case.start * STRUCT_PAGE
    return Left(
        memory.bytes[first : first + watched * STRUCT_PAGE],
        blocks_of(memory.host, tree),
        memory.host.ask("zone", tree=tree)["hash"],
        int(answer["events"]),
    )


def added(
    start: int, sections: int, block: int, nid: int = 0, *, driver: str = "none", **more: bool
) -> Case:
    """Return memory that is hot-added: it begins within a section and ends with one.

    Args:
        start: number of pageblocks before it in its first section.
        sections: number of sections that it reaches into.
        block: number of sections in a block.
        nid: its node.
        driver: see Case.
        more: see Case.
    """
    first = start * PAGEBLOCK
    return Case(
        first, sections * SECTION - MARGIN - first, nid, block * SECTION, (), driver, **more
    )


@st.composite
def hot_added(draw: st.DrawFn) -> Case:
    # The start may lie behind a memmap of its own.
    start = draw(st.integers(0, (SECTION - MARGIN) // PAGEBLOCK - 1))
    sections, block, nid = (draw(st.integers(*ends)) for ends in ((1, 2), (1, 2), (0, 1023)))
    return added(
        start,
        sections,
        block,
        nid,
        driver=draw(st.sampled_from(DRIVERS[:4])),
        back=draw(st.booleans()),
        unaccepted=draw(st.booleans()),
    )


@st.composite
def found_free(draw: st.DrawFn) -> Case:
    start = draw(st.integers(0, SECTION))
    nr = draw(st.integers(1, SECTION))
    edge = st.one_of(st.integers(0, nr), st.integers(0, nr // CHUNK).map(lambda n: n * CHUNK))
    edges = sorted(draw(st.sets(edge, min_size=2, max_size=12)))
    # Pages between two free ranges are reserved.
    free = tuple(zip(edges[::2], edges[1::2], strict=False))
    unaccepted = draw(st.booleans())
    return Case(start, nr, draw(st.integers(0, 1023)), 0, free, unaccepted=unaccepted)


@pytest.fixture(scope="module", params=HOSTS, ids="-".join)
def program(request: pytest.FixtureRequest) -> Program:
    return program_for(*request.param)


@pytest.fixture(scope="module")
def memory(program: Program) -> Iterator[Memmap]:
    yield from open_memmap(program)


def check(memory: Memmap, case: Case) -> None:
    base = bring_up(memory, case, "base")
    for mode in modes_of(memory.host, "patched"):
        left = bring_up(memory, case, mode)
        assert not differences(base.pages, left.pages), mode
        assert left == base, mode

    # Check the oracle, too: base writes the right pages, and only kept ones have a reference.
    written, kept = case.written, case.kept
    for page in range(-MARGIN, case.nr + MARGIN):
        at = (MARGIN + page) * STRUCT_PAGE
        bytes_ = base.pages[at : at + STRUCT_PAGE]
        assert (bytes_ == bytes([POISON]) * STRUCT_PAGE) == (page not in written), page
        if page in written:
            assert bytes_[52:56] == bytes([page in kept, 0, 0, 0]), page  # _refcount


def test_streaming_stores_are_the_default_on_x86(program: Program) -> None:
    with contextmanager(open_memmap)(program) as memory:
        before = [memory.host.ask("mode", tree="patched", name="slow")["was"] for _ in range(2)]
    assert before == [str(MODES.index(name)) for name in ("streaming", "slow")]


@settings(max_examples=EXAMPLES)
@given(case=hot_added())
@example(case=added(0, 1, 1))
@example(case=added(1, 2, 1, 1))
@example(case=added(61, 1, 2, 1023))
@example(case=added(0, 2, 1, 1, driver="onlines"))
@example(case=added(0, 2, 1, 1, driver="keeps"))
@example(case=added(0, 2, 1, 1, driver="keeps odd"))
@example(case=added(3, 2, 2, 1, driver="keeps", back=True))
@example(case=added(3, 2, 2, 1, driver="keeps odd", back=True))
@example(case=added(0, 2, 2, 1, unaccepted=True))
def test_hot_added_memory_is_what_base_leaves(memory: Memmap, case: Case) -> None:
    check(memory, case)
    isolated = range(FIRST_PFN + MARGIN + case.start, FIRST_PFN + MARGIN + case.start + case.nr)
    assert blocks_of(memory.host, "patched") == [
        f"{pfn}:{MIGRATE_MOVABLE}:1" for pfn in isolated[::PAGEBLOCK]
    ]


def without_lists(memmap: bytes) -> bytes:
    """Return a memmap without page->lru, in which pages that were merged keep poison."""
    pages = range(0, len(memmap), STRUCT_PAGE)
    return b"".join(memmap[at : at + 8] + memmap[at + 24 : at + STRUCT_PAGE] for at in pages)


def test_chunks_of_hyperv_are_free_as_single_pages_of_base(memory: Memmap) -> None:
    case = added(0, 2, 1, 1, driver="hyperv")
    base, left = (bring_up(memory, case, variant) for variant in ("base", "streaming"))
    assert without_lists(base.pages) == without_lists(left.pages)
    assert replace(base, pages=b"") == replace(left, pages=b"")


def test_a_driver_keeps_pages_that_it_does_not_online(memory: Memmap) -> None:
    check(memory, added(0, 1, 1, driver="forgets"))


@settings(max_examples=EXAMPLES)
@given(case=found_free())
@example(case=Case(0, CHUNK, 0, 0, ((0, CHUNK),)))
@example(case=Case(5, 4 * CHUNK, 3, 0, ((0, 1), (3, 4 * CHUNK))))
@example(case=Case(SECTION - 1, SECTION, 3, 0, ((0, SECTION),)))
@example(case=Case(0, SECTION, 1, 0, ((0, 3 * CHUNK), (3 * CHUNK + 1, SECTION))))
@example(case=Case(7, 4 * CHUNK, 1, 0, ((0, 4 * CHUNK),), unaccepted=True))
def test_memory_that_boot_frees_is_what_base_leaves(memory: Memmap, case: Case) -> None:
    check(memory, case)


@pytest.mark.parametrize("unaccepted", [False, True])
@pytest.mark.parametrize("order", [0, 1, 9, 10])
def test_memory_that_boot_does_not_defer_is_what_base_leaves(
    memory: Memmap, order: int, unaccepted: bool
) -> None:
    check(memory, Case(SECTION - MARGIN, CHUNK, 1, 0, unaccepted=unaccepted, order=order))


@pytest.fixture(scope="module", params=LINES)
def traced(request: pytest.FixtureRequest) -> Iterator[Memmap]:
    yield from open_memmap(program_for(request.param, "pointer"), trace=True)


@pytest.mark.parametrize(
    "case", [added(0, 2, 1, 1), Case(7, 4 * CHUNK, 1, 0, ((0, 3000), (3001, 4000)))]
)
def test_an_active_tracepoint_sees_every_page(traced: Memmap, case: Case) -> None:
    check(traced, case)
    # Once to be initialised, and once to be freed.
    assert bring_up(traced, case, "streaming").events == 2 * len(case.written)
