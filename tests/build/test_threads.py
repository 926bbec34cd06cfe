# SPDX-License-Identifier: GPL-2.0-only
"""Threads that share a memmap leave the same bytes as one thread, wherever it is cut."""

from collections.abc import Iterator

import pytest
from memmaps import (
    DEDUPLICATED,
    HOSTS,
    MARGIN,
    SECTION,
    Case,
    Memmap,
    differences,
    open_memmap,
    program_for,
)

from pagemint.base.errors import Failure
from pagemint.bench.variants import modes_of
from pagemint.words import MOST_THREADS

GIB = 1 << 18  # pages
WINDOW = 9 * GIB + 2 * SECTION
THREADS = (2, 3, MOST_THREADS)

# Aligned to the largest compounds and to nothing, from the end of a section and over some.
CASES = {
    "8 GiB": Case("fsdax", 0, GIB - MARGIN, 8 * GIB, None, 1, False),
    "to a section": Case("private", 0, SECTION - MARGIN - 1, 2 * GIB + 1, None, 3, False),
    "from a section": Case("fsdax", 0, SECTION - MARGIN, 2 * GIB + SECTION + 1, None, 3, False),
    "about sections": Case("fsdax", 0, SECTION - MARGIN - 1, 3 * GIB + 3, None, 3, False),
    "too small": Case("fsdax", 0, SECTION - MARGIN, 2 * GIB - 1, None, 3, False),
    "altmap": Case("fsdax", 0, 512 - MARGIN, 3 * GIB, (2, 1234), 3, False),
    "2 MiB": Case("generic", 9, SECTION - MARGIN + 512, 3 * GIB + SECTION, (0, 512), 1, False),
    "2 MiB, cut off": Case("generic", 9, SECTION - MARGIN, 2 * GIB + 700, (0, 0), 1, False),
    "2 MiB, unaligned": Case("generic", 9, SECTION - MARGIN + 100, 3 * GIB, (0, 0), 1, False),
    "2 MiB, shared tails": Case("generic", 9, SECTION - MARGIN, 8 * GIB, None, 1, False),
    "2 MiB, early": Case("generic", 9, SECTION - MARGIN, 2 * GIB, None, 1, True),
    "256 MiB": Case("fsdax", 16, 2 * SECTION - MARGIN, 8 * GIB + 2 * SECTION, (0, 0), 1, False),
    "1 GiB": Case("fsdax", 18, GIB - MARGIN, 4 * GIB, (0, 0), 1, False),
    "1 GiB, shared tails": Case("fsdax", 18, GIB - MARGIN, 8 * GIB, None, 1, False),
}


def shared_among(case: Case, threads: int) -> int:
    """Return how many of `threads` work on a case: at most one for each GiB that is written."""
    size, compound = case.end - case.first, 1 << case.order
    if case.first % compound:
        return 1
    if compound > DEDUPLICATED and case.altmap is None and not case.early:
        size = size // compound * DEDUPLICATED
    return max(1, min(threads, size // GIB))


@pytest.fixture(scope="module", params=HOSTS, ids="-".join)
def memmap(request: pytest.FixtureRequest) -> Iterator[Memmap]:
    yield from open_memmap(program_for(*request.param), WINDOW)


@pytest.mark.parametrize("name", CASES)
def test_threads_leave_what_one_leaves(memmap: Memmap, name: str) -> None:
    case = CASES[name]
    base, blocks, _ = memmap.init(case, "base")
    for threads in (1, *THREADS):
        memmap.host.ask("threads", tree="patched", nr=threads)
        # Each number in the mode that most differs, and one number in each mode.
        for mode in modes_of(memmap.host, "patched") if threads == THREADS[0] else ["streaming"]:
            data, mode_blocks, _ = memmap.init(case, mode)
            assert not differences(base, data), (mode, threads)
            assert mode_blocks == blocks, (mode, threads)
            expected = 1 if mode == "slow" else shared_among(case, threads)
            assert memmap.threads == expected, (mode, threads)


def test_ranges_are_shared_at_all(memmap: Memmap) -> None:
    assert {shared_among(case, MOST_THREADS) for case in CASES.values()} == {1, 2, 3, 4}


@pytest.mark.parametrize("threads", [1, *THREADS])
def test_each_thread_gets_four_parts_if_they_are_large_enough(memmap: Memmap, threads: int) -> None:
    memmap.host.ask("threads", tree="patched", nr=threads)
    pages = 12 * GIB
    job = {"tree": "patched", "start": 0, "pages": pages, "align": SECTION, "nr": threads}
    for least, parts in ((1, 1 if threads == 1 else 4 * threads), (6 * GIB, min(threads, 2))):
        answer = memmap.host.ask("parts", least=least, **job)
        expected = {"calls": parts, "pages": pages, "largest": pages // parts}
        assert {name: int(answer[name]) for name in expected} == expected


def test_more_cpus_than_the_kernel_uses_get_no_thread(memmap: Memmap) -> None:
    case = CASES["8 GiB"]
    memmap.host.ask("threads", tree="patched", nr=2 * MOST_THREADS)
    memmap.init(case, "streaming")
    assert memmap.threads == MOST_THREADS


def test_an_impossible_thread_count_is_refused(memmap: Memmap) -> None:
    for threads in (0, 65):
        with pytest.raises(Failure, match="1 to 64 threads"):
            memmap.host.ask("threads", tree="patched", nr=threads)
