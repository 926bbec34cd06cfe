# SPDX-License-Identifier: GPL-2.0-only
"""Compares both trees' copies of folios with plain bytes, for each class of CPU, and on faults."""

import mmap
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_lines import LINES
from memmaps import program_for

from pagemint.bench.process import Host
from pagemint.bench.workload import FIRST_PFN
from pagemint.bench.workloads.folio import FUNCTIONS
from pagemint.words import PAGE

GUARD = 2  # pages that are compared on both sides of a destination
ORDER_MAX = 10
FROM = 1 << ORDER_MAX  # the first page of the sources, counted from FIRST_PFN
TO = 4 << ORDER_MAX  # the first page of the destinations; its guard is past the sources, too
BATCHED = 14  # the order of a folio of two batches, of 32 MiB each
PAGES = 2 << BATCHED
EHWPOISON = 133
SKEWS = {
    "first byte of a page": 0,
    "last byte of a page": 1,
    "last word of a page": 8,
    "inside a page": 2048,
    "last byte of a line": 4033,
}
"""Bytes from a host page, which is the unit that can fault, to the kernel's page inside it."""


@dataclass(frozen=True)
class Result:
    """The host's answer about a copy.

    Attributes:
        status: 0 or a negative error.
        queued: number of calls of memory_failure_queue().
        first: the page of the first call, counted from the source's first page.
        faults: number of accesses to the source that faulted.
    """

    status: int
    queued: int
    first: int
    faults: int


class Memory:
    """A host, and the memory of the folios that it shares with this process."""

    def __init__(self, host: Host, descriptor: int) -> None:
        self.host = host
        self.descriptor = descriptor
        self.bytes = mmap.mmap(descriptor, PAGES * PAGE)
        self.skew = 0

    def move(self, skew: int) -> None:
        """Move the start of the kernel's pages up by `skew` bytes."""
        self.skew = skew
        self.host.ask("memory", first=FIRST_PFN, pages=PAGES, fd=self.descriptor)
        for tree in ("base", "patched"):
            self.host.ask("skew", tree=tree, bytes=skew)

    def prepare(self, order: int, *pages: int, skew: int = 0, fragile: bool = False) -> None:
        """Make compounds of an order at pages, in memory that was moved up by `skew` bytes."""
        self.move(skew)
        self.host.patch("plain", "erms", fragile=int(fragile))
        for page in pages:
            self.fold(page, order)

    @contextmanager
    def hidden(self, page: int, *, once: bool = False) -> Iterator[None]:
        """Let accesses to a page of the source fault, or only the first one."""
        self.host.ask("hide", pfn=FIRST_PFN + FROM + page, pages=1, once=int(once))
        yield
        self.host.ask("hide", pfn=FIRST_PFN, pages=0, once=0)

    def put(self, page: int, data: bytes) -> None:
        at = page * PAGE + self.skew
        self.bytes[at : at + len(data)] = data

    def get(self, page: int, pages: int) -> bytes:
        at = page * PAGE + self.skew
        return self.bytes[at : at + pages * PAGE]

    def fold(self, page: int, order: int) -> None:
        """Make a compound at `page`, with the base tree's code."""
        where = {"start": FIRST_PFN + page, "pages": 1 << order, "order": order}
        self.host.ask("init", tree="base", type="fsdax", altmap=1, **where)

    def copy(
        self, variant: str, function: str, order: int, to: int, from_: int, early: int = 0
    ) -> Result:
        name, _ = FUNCTIONS[function]
        answer = self.host.ask(
            "copy",
            tree=variant,
            function=name,
            order=order,
            folios=1,
            to=FIRST_PFN + to,
            early=early,
            **{"from": FIRST_PFN + from_},
        )
        queued = int(answer["queued"])
        first = int(answer["first"]) - FIRST_PFN - from_ if queued else -1
        return Result(int(answer["error"]), queued, first, int(answer["faults"]))


@pytest.fixture(scope="module", params=LINES)
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    program = program_for(request.param, "mask")
    descriptor = os.memfd_create("folios")
    os.ftruncate(descriptor, PAGES * PAGE)
    with Host(program, descriptor) as host:
        host.patch("plain")
        host.ask("map", first=FIRST_PFN, pages=PAGES)
        yield Memory(host, descriptor)
    os.close(descriptor)


def same(one: bytes, other: bytes) -> bool:
    """Whether they are equal. An assertion on megabytes takes minutes to show how they differ."""
    return one == other


@settings(max_examples=60)
@given(
    order=st.integers(0, ORDER_MAX),
    to=st.integers(0, 2),
    from_=st.integers(0, 1),
    function=st.sampled_from(sorted(FUNCTIONS)),
    cpu_class=st.sampled_from(("erms", "rep_good", "none")),
    returns=st.sampled_from(("plain", "safe")),
    seed=st.integers(0, 2**32),
)
@example(
    order=ORDER_MAX, to=0, from_=1, function="folio_copy", cpu_class="erms", returns="plain", seed=0
)
def test_a_copy_is_all_of_the_folio_and_nothing_else(
    memory: Memory,
    order: int,
    to: int,
    from_: int,
    function: str,
    cpu_class: str,
    returns: str,
    seed: int,
) -> None:
    memory.move(0)
    memory.host.patch(returns, cpu_class, fragile=int(FUNCTIONS[function][1]))
    pages = 1 << order
    # Naturally aligned, as folios are.
    source_page, page = FROM + from_ * pages, TO + to * pages
    memory.fold(source_page, order)
    memory.fold(page, order)
    data = random.Random(seed).randbytes(pages * PAGE)
    around = random.Random(seed + 1).randbytes((pages + 2 * GUARD) * PAGE)
    for variant in ("base", "patched"):
        memory.put(source_page, data)
        memory.put(page - GUARD, around)
        assert memory.copy(variant, function, order, page, source_page) == Result(0, 0, -1, 0)
        assert same(memory.get(source_page, pages), data)
        after = memory.get(page - GUARD, pages + 2 * GUARD)
        assert same(after[GUARD * PAGE : -GUARD * PAGE], data)
        assert same(after[: GUARD * PAGE], around[: GUARD * PAGE])
        assert same(after[-GUARD * PAGE :], around[-GUARD * PAGE :])


@pytest.fixture(params=[0, 1], ids=["voluntary", "lazy"])
def preemption(memory: Memory, request: pytest.FixtureRequest) -> Iterator[None]:
    memory.host.ask("preempt", lazy=request.param)
    yield
    memory.host.ask("preempt", lazy=1)


@pytest.mark.parametrize("function", ["folio_copy", "folio_mc_copy", "copy_user_large_folio"])
def test_a_folio_of_several_batches_is_copied(
    memory: Memory, preemption: None, function: str
) -> None:
    # A kernel that is not preemptible copies a batch at a time.
    order, to, source = BATCHED, 0, PAGES // 2
    memory.prepare(order, to, source)
    data = random.Random(1).randbytes(PAGE << order)
    for variant in ("base", "patched"):
        memory.put(source, data)
        memory.put(to, bytes(len(data)))
        assert memory.copy(variant, function, order, to, source) == Result(0, 0, -1, 0)
        assert same(memory.get(to, 1 << order), data)


def check_fault(memory: Memory, function: str, order: int, host_page: int, early: int) -> None:
    """Copy a folio with a host page of it hidden: base and patched queue the same page."""
    pages = 1 << order
    data = memory.get(FROM, pages)
    before = bytes([0x5A]) * ((pages + 2 * GUARD) * PAGE)
    # The first byte that faults lies in this page of the kernel's.
    bad = (host_page * PAGE - memory.skew) // PAGE
    whole = host_page * PAGE - memory.skew
    for variant in ("base", "patched"):
        memory.put(TO - GUARD, before)
        with memory.hidden(host_page):
            result = memory.copy(variant, function, order, TO, FROM, early)
        assert (result.status, result.queued, result.first) == (-EHWPOISON, 1, bad), variant
        assert result.faults >= 1
        after = memory.get(TO - GUARD, pages + 2 * GUARD)
        copied = after[GUARD * PAGE : -GUARD * PAGE]
        # All words before the poison are copied, and no byte of it or behind it.
        assert same(copied[: whole // 8 * 8], data[: whole // 8 * 8]), variant
        assert same(copied[whole:], before[: len(copied) - whole]), variant
        assert same(after[: GUARD * PAGE], before[: GUARD * PAGE])
        assert same(after[-GUARD * PAGE :], before[: GUARD * PAGE])


EVERY = range(1, 512)
SOME = (1, 2, 255, 511)
FAULTS = [
    # fragile, skew, bytes that a fast string stops too soon, host pages
    (False, "first byte of a page", 0, (0, *EVERY)),
    (False, "last byte of a page", 100, EVERY),
    (False, "last byte of a page", 5000, SOME),
    (False, "inside a page", 5000, SOME),
    (False, "last word of a page", 1, SOME),
    (False, "last byte of a line", 0, SOME),
    (True, "first byte of a page", 0, (0, *EVERY)),
    (True, "last byte of a page", 0, EVERY),
    (True, "last word of a page", 0, SOME),
    (True, "last byte of a line", 0, SOME),
]


@pytest.mark.parametrize(("fragile", "where", "early", "host_pages"), FAULTS)
def test_the_first_bad_page_is_queued_once(
    memory: Memory, fragile: bool, where: str, early: int, host_pages: Sequence[int]
) -> None:
    memory.prepare(9, FROM, TO, skew=SKEWS[where], fragile=fragile)
    memory.put(FROM, random.Random(9).randbytes(PAGE << 9))
    function = "folio_mc_copy, fragile" if fragile else "folio_mc_copy"
    for host_page in host_pages:
        # No more than there is before it.
        check_fault(memory, function, 9, host_page, min(early, max(0, host_page - 1) * PAGE))


def test_an_order_0_folio_can_be_bad(memory: Memory) -> None:
    memory.prepare(0, FROM, TO)
    check_fault(memory, "folio_mc_copy", 0, 0, 0)


@pytest.mark.parametrize("page", [0, 1, 200, 511])
def test_poison_under_a_write_fault_is_queued_once(memory: Memory, page: int) -> None:
    memory.prepare(9, FROM, TO)
    for variant in ("base", "patched"):
        with memory.hidden(page):
            result = memory.copy(variant, "copy_user_large_folio", 9, TO, FROM)
        assert (result.status, result.queued, result.first) == (-EHWPOISON, 1, page), variant


@pytest.mark.parametrize("early", [0, 100, 5000])
@pytest.mark.parametrize("page", [1, 2, 255, 511])
def test_poison_that_can_be_read_again_fails_the_copy_and_queues_no_neighbour(
    memory: Memory, page: int, early: int
) -> None:
    memory.prepare(9, FROM, TO)
    early = min(early, (page - 1) * PAGE)
    # A page by itself never stops in the page before, so base knows the page that faulted.
    with memory.hidden(page, once=True):
        assert memory.copy("base", "folio_mc_copy", 9, TO, FROM) == Result(-EHWPOISON, 1, page, 1)
    with memory.hidden(page, once=True):
        result = memory.copy("patched", "folio_mc_copy", 9, TO, FROM, early)
    assert result == Result(-EHWPOISON, 0, -1, 1)
