# SPDX-License-Identifier: GPL-2.0-only
"""Every mode leaves the same memmap as the base tree's own object code, byte for byte."""

from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from kernel_lines import LINES, LONG
from memmaps import (
    CONFIGS,
    DEDUPLICATED,
    HOSTS,
    MARGIN,
    MIGRATE_MOVABLE,
    PAGEBLOCK,
    SECTION,
    TYPES,
    WINDOW,
    Case,
    Memmap,
    differences,
    open_memmap,
    program_for,
)

from pagemint.bench import link
from pagemint.bench.process import Host
from pagemint.bench.variants import modes_of
from pagemint.bench.window import POISON
from pagemint.bench.workload import FIRST_PFN
from pagemint.trees import patches, sources, trees
from pagemint.words import BASE, MODES, PATCHED, PUBLISHED, STRUCT_PAGE

EXAMPLES = 30_000 if LONG else 1500


@st.composite
def cases(draw: st.DrawFn) -> Case:
    order = draw(st.sampled_from((0, 0, 1, 2, 3, 9, 9, 18)))
    near_edge = st.sampled_from((SECTION, 2 * SECTION, PAGEBLOCK, 1 << 9)).flatmap(
        lambda edge: st.integers(edge - MARGIN - 40, edge - MARGIN + 40)
    )
    start = draw(st.one_of(st.integers(0, 2 * SECTION), near_edge))
    if draw(st.booleans()):
        # Align compounds, as drivers do.
        start = max(0, (start >> order << order) - MARGIN)
    most = 2 << 18 if order == 18 else 2 * SECTION + 100
    nr = draw(st.one_of(st.integers(0, 5), st.integers(0, 3000), st.integers(most // 2, most)))
    altmap = draw(st.none() | st.tuples(st.integers(0, 600), st.integers(0, 2000)))
    case = Case(
        type=draw(st.sampled_from(TYPES)),
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
def memmap(request: pytest.FixtureRequest) -> Iterator[Memmap]:
    yield from open_memmap(program_for(*request.param))


@pytest.mark.parametrize("line", LINES)
def test_a_patched_tree_has_the_modes_of_its_line(in_user_cache: None, line: str) -> None:
    with Host(program_for(line, "mask")) as host:
        assert modes_of(host, "patched") == list(MODES)


def check(memmap: Memmap, case: Case) -> None:
    base, blocks, events = memmap.init(case, "base")
    for mode in modes_of(memmap.host, "patched") or ["patched"]:
        data, mode_blocks, mode_events = memmap.init(case, mode)
        assert not differences(base, data), mode
        assert mode_blocks == blocks, mode
        assert mode_events == events, mode

    # Check the oracle, too: base must write where it should, and leave the margins alone.
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


@settings(max_examples=EXAMPLES)
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


@pytest.fixture(scope="module", params=[LINES[-1], *([sources.EXPECTED] if LONG else [])])
def stand_in(request: pytest.FixtureRequest) -> Iterator[Memmap]:
    """A host whose patched tree is a stand-in for Linux 7.4: that of the bench, or the base."""
    base = trees.unpatched(BASE, sources.get(request.param))
    published = patches.topics([PUBLISHED] if request.param == LINES[-1] else [])
    expected = trees.with_topics(PATCHED, base, published)
    yield from open_memmap(link.link((base, expected), CONFIGS["mask"]))


@settings(max_examples=EXAMPLES // 5)
@given(case=cases())
def test_each_stand_in_for_the_next_release_leaves_what_base_leaves(
    stand_in: Memmap, case: Case
) -> None:
    check(stand_in, case)


def test_one_wrong_bit_is_seen() -> None:
    base = bytes(3 * STRUCT_PAGE)
    wrong = bytearray(base)
    wrong[STRUCT_PAGE + 5] ^= 1 << 3
    assert differences(base, bytes(wrong)) == ["page 1 byte 5: 0x00 0x08"]


def test_a_deduplicated_compound_is_written_in_part(memmap: Memmap) -> None:
    case = Case("generic", 9, (1 << 9) - MARGIN, 1 << 9, None, 0, False)
    data, _, _ = memmap.init(case, "streaming")
    rest = data[(MARGIN + DEDUPLICATED) * STRUCT_PAGE :]
    assert rest == bytes([POISON]) * len(rest)
    assert data[: (MARGIN + DEDUPLICATED) * STRUCT_PAGE].endswith(
        data[(MARGIN + 64) * STRUCT_PAGE : (MARGIN + 65) * STRUCT_PAGE]
    )


@pytest.fixture(scope="module", params=LINES)
def traced(request: pytest.FixtureRequest) -> Iterator[Memmap]:
    yield from open_memmap(program_for(request.param, "pointer"), trace=True)


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
