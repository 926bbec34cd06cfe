# SPDX-License-Identifier: GPL-2.0-only
"""Every mode leaves the memory map that the base tree's own object code leaves, byte for byte."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from kernel_lines import LINES, WHOLE

from pagemint.base.memmap import MODES, STRUCT_PAGE
from pagemint.kernels import objects, sources, trees
from pagemint.native import link, process
from pagemint.native.device import FIRST_PFN

SECTION = 1 << 15
PAGEBLOCK = 512
DEDUPLICATED = 128  # pages of a compound that have a memory map of their own
MARGIN = 64  # pages that are watched on both sides of what is written
WINDOW = 2 * SECTION + 3 * (1 << 18) + 2 * MARGIN
POISON = 0xA5
MIGRATE_MOVABLE = 1
TYPES = {"private": 1, "coherent": 2, "fsdax": 3, "generic": 4, "pci_p2pdma": 5}
CONFIGS = {"mask": objects.DEBIAN, "pointer": objects.NO_MASK}
# On 6.12 tails point to their head in either.
HOSTS = [
    (line, name)
    for line in LINES
    for name, config in CONFIGS.items()
    if line in WHOLE or config == objects.DEBIAN
]
EXAMPLES = 30_000 if os.environ.get("PAGEMINT_LONG") else 1500


@dataclass(frozen=True)
class Case:
    """One call of memmap_init_zone_device().

    Attributes:
        start: the first PFN, counted from the first that the window can hold.
        nr: pages, those of the altmap among them.
        altmap: pages that the altmap reserves and has for the memory map, or None.
    """

    type: str
    order: int
    start: int
    nr: int
    altmap: tuple[int, int] | None
    nid: int
    early: bool

    @property
    def first(self) -> int:
        """The first PFN that is initialised."""
        return FIRST_PFN + MARGIN + self.start + sum(self.altmap or (0, 0))

    @property
    def end(self) -> int:
        """The PFN behind the range."""
        return FIRST_PFN + MARGIN + self.start + self.nr

    @property
    def written_end(self) -> int:
        """The PFN behind the last compound, which is always whole."""
        compounds = max(0, -(-(self.end - self.first) >> self.order))
        return self.first + (compounds << self.order)

    def words(self) -> tuple[int, ...]:
        """The arguments of the host's init command."""
        altmap = (0, 0, 0) if self.altmap is None else (1, *self.altmap)
        start = FIRST_PFN + MARGIN + self.start
        return (start, self.nr, TYPES[self.type], self.order, *altmap, self.nid, int(self.early))


class Memmap:
    """A host, and the memory map that it shares with this process."""

    def __init__(self, host: process.Host, memory: int) -> None:
        self.host = host
        self.bytes = mmap.mmap(memory, 0)
        self.threads = 1  # of the last initialisation

    def init(self, case: Case, variant: str) -> tuple[bytes, list[str], int]:
        """Poison the watched pages, initialise, and return them, the pageblocks and the events."""
        watched = (case.written_end if case.written_end > case.first else case.end) + MARGIN
        low = min(case.first, FIRST_PFN + MARGIN + case.start) - MARGIN
        self.host.ask("poison", POISON, low, watched - low)
        if variant == "base":
            answer = self.host.ask("init", "base", *case.words())
        else:
            self.host.ask("mode", variant)
            answer = self.host.ask("init", "patched", *case.words())
        data = self.bytes[(low - FIRST_PFN) * STRUCT_PAGE : (watched - FIRST_PFN) * STRUCT_PAGE]
        events, self.threads = (int(word) for word in answer.split()[1:])
        return data, self.host.ask("blocks").split(), events


def differences(one: bytes, other: bytes) -> list[str]:
    """Return where two memory maps differ, the first few places."""
    if one == other:
        return []
    assert len(one) == len(other)
    found = []
    for page in range(0, len(one), STRUCT_PAGE):
        if one[page : page + STRUCT_PAGE] != other[page : page + STRUCT_PAGE]:
            found += [
                f"page {page // STRUCT_PAGE} byte {at - page}: {one[at]:#04x} {other[at]:#04x}"
                for at in range(page, page + STRUCT_PAGE)
                if one[at] != other[at]
            ]
    return found[:8]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    order = draw(st.sampled_from((0, 0, 1, 2, 3, 9, 9, 18)))
    near_edge = st.sampled_from((SECTION, 2 * SECTION, PAGEBLOCK, 1 << 9)).flatmap(
        lambda edge: st.integers(edge - MARGIN - 40, edge - MARGIN + 40)
    )
    start = draw(st.one_of(st.integers(0, 2 * SECTION), near_edge))
    if draw(st.booleans()):
        # As drivers have it: compounds are aligned.
        start = max(0, (start >> order << order) - MARGIN)
    most = 2 << 18 if order == 18 else 2 * SECTION + 100
    nr = draw(st.one_of(st.integers(0, 5), st.integers(0, 3000), st.integers(most // 2, most)))
    altmap = draw(st.none() | st.tuples(st.integers(0, 600), st.integers(0, 2000)))
    case = Case(
        type=draw(st.sampled_from(sorted(TYPES))),
        order=order,
        start=start,
        nr=nr,
        altmap=altmap,
        nid=draw(st.integers(0, 1023)),
        early=draw(st.booleans()),
    )
    assume(case.written_end + MARGIN <= FIRST_PFN + WINDOW)
    return case


@pytest.fixture(scope="module", params=HOSTS, ids="-".join)
def program(request: pytest.FixtureRequest) -> process.Program:
    line, config = request.param
    return link.link(trees.pair(sources.get(line)), CONFIGS[config])


@pytest.fixture(scope="module")
def memmap(program: process.Program) -> Iterator[Memmap]:
    yield from open_memmap(program, trace=False)


@contextmanager
def shared_map(
    program: process.Program, *, trace: bool, window: int
) -> Iterator[tuple[process.Host, int]]:
    """Start a host and share the memory map of `window` pages with it, by that descriptor."""
    memory = os.memfd_create("memmap")
    os.ftruncate(memory, window * STRUCT_PAGE)
    with process.Host(program, memory) as host:
        host.patch("plain", events=trace)
        host.ask("map", FIRST_PFN, window, memory)
        yield host, memory
    os.close(memory)


def open_memmap(program: process.Program, *, trace: bool, window: int = WINDOW) -> Iterator[Memmap]:
    with shared_map(program, trace=trace, window=window) as (host, memory):
        yield Memmap(host, memory)


def check(memmap: Memmap, case: Case) -> None:
    base, blocks, events = memmap.init(case, "base")
    for mode in MODES:
        data, mode_blocks, mode_events = memmap.init(case, mode)
        assert not differences(base, data), mode
        assert mode_blocks == blocks, mode
        assert mode_events == events, mode

    # The oracle, too, is where it should be.
    empty = bytes([POISON]) * MARGIN * STRUCT_PAGE
    low = FIRST_PFN + case.start
    first, end = (case.first - low) * STRUCT_PAGE, (case.written_end - low) * STRUCT_PAGE
    if case.first >= case.end:
        assert base == bytes([POISON]) * len(base)
        assert not blocks
        return
    assert base[: len(empty)] == empty
    assert base[end:] == empty
    assert base[first : first + STRUCT_PAGE] != empty[:STRUCT_PAGE]
    aligned = range(-(-case.first // PAGEBLOCK) * PAGEBLOCK, case.end, PAGEBLOCK)
    assert blocks == [f"{pfn}:{MIGRATE_MOVABLE}:0" for pfn in aligned]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
@example(case=Case("fsdax", 0, 0, 0, None, 0, False))
@example(case=Case("fsdax", 0, 0, 1, None, 0, False))
@example(case=Case("private", 0, SECTION - MARGIN - 1, 2, None, 3, False))
@example(case=Case("private", 0, SECTION - MARGIN - 1, SECTION + 3, None, 3, False))
@example(case=Case("generic", 9, SECTION - MARGIN, 1 << 15, None, 1, False))
@example(case=Case("generic", 9, SECTION - MARGIN, 1 << 15, None, 1, True))
@example(case=Case("generic", 9, SECTION - MARGIN, 1 << 15, (0, 512), 1, False))
@example(case=Case("fsdax", 18, 2 * SECTION - MARGIN, 1 << 18, (0, 0), 1, False))
@example(case=Case("fsdax", 18, 2 * SECTION - MARGIN, 2 << 18, None, 1, False))
@example(case=Case("generic", 9, 0, 700, (300, 400), 1, False))
def test_every_mode_leaves_what_base_leaves(memmap: Memmap, case: Case) -> None:
    check(memmap, case)


@settings(max_examples=200, deadline=None)
@given(case=cases(), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_one_wrong_bit_is_seen(memmap: Memmap, case: Case, where: float, bit: int) -> None:
    base, _, _ = memmap.init(case, "base")
    data = bytearray(memmap.init(case, "streaming")[0])
    at = int(where * len(data))
    data[at] ^= 1 << bit
    (place,) = differences(base, bytes(data))
    assert place.startswith(f"page {at // STRUCT_PAGE} byte {at % STRUCT_PAGE}:")


def test_a_deduplicated_compound_is_written_in_part(memmap: Memmap) -> None:
    case = Case("generic", 9, (1 << 9) - MARGIN, 1 << 9, None, 0, False)
    data, _, _ = memmap.init(case, "streaming")
    rest = data[(MARGIN + DEDUPLICATED) * STRUCT_PAGE :]
    assert rest == bytes([POISON]) * len(rest)
    assert data[: (MARGIN + DEDUPLICATED) * STRUCT_PAGE].endswith(
        data[(MARGIN + 64) * STRUCT_PAGE : (MARGIN + 65) * STRUCT_PAGE]
    )


@pytest.fixture(scope="module", params=WHOLE)
def traced(request: pytest.FixtureRequest) -> Iterator[Memmap]:
    program = link.link(trees.pair(sources.get(request.param)), objects.NO_MASK)
    yield from open_memmap(program, trace=True)


@pytest.mark.parametrize(
    "case",
    [
        Case("private", 0, 100, 3000, None, 2, False),
        Case("generic", 9, (1 << 9) - MARGIN, 4 << 9, (0, 0), 2, False),
    ],
)
def test_an_active_tracepoint_sees_every_page(traced: Memmap, case: Case) -> None:
    check(traced, case)
    assert traced.init(case, "streaming")[2] >= case.written_end - case.first


def test_an_inactive_tracepoint_sees_none(memmap: Memmap) -> None:
    assert memmap.init(Case("private", 0, 100, 3000, None, 2, False), "slow")[2] == 0
