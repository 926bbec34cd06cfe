# SPDX-License-Identifier: GPL-2.0-only
"""Counted operations in guests: runs agree, and the counts show what the series is for."""

from collections import defaultdict
from collections.abc import Iterable

import pytest
from guest_records import DEVICE, LONG, guest_kernel

from pagemint.guests.count import counts
from pagemint.guests.outside.guest import Guest
from pagemint.results.counted import PERIOD, WAITS
from pagemint.results.rows import Operation
from pagemint.trees.image import Kernel
from pagemint.words import DEFERRED_INIT, MODES, SHARED

pytestmark = LONG

# For each operation the functions that do its work on one tree or the other. Their stores and calls
# are exact.
_FILL = ("__init_zone_device_page", "memmap_init_zone_device", "memmap_template_copy")
_EXACT = {
    "bind device-private": _FILL,
    "allocate device-private": ("zone_device_page_init",),
    "free device-private": ("free_zone_device_folio",),
    "bind fsdax map=dev": _FILL,
    "bind devdax map=mem": _FILL,
    "first fault, existing xfs file": ("prep_compound_page", "dax_iomap_pmd_fault"),
    "truncate xfs file": ("dax_folio_reset_order", "dax_disassociate_entry"),
    "unmap devdax map=dev": ("zap_huge_pmd",),
    "online 64 blocks": ("memmap_init_range", "memmap_template_copy"),
    "offline 64 blocks": ("page_is_unmovable", "__offline_isolated_pages"),
}
_MANY = 10_000_000  # instructions: a timer interrupt is a small part of so many
_WALK = "__pageblock_pfn_to_page"  # visits a pageblock of a zone
_BLOCK = 1 << 15  # pages of a memory block
_MIB = 1 << 20
_LARGE = 100 << 30  # bytes of a device
HOT_ADDED = "operations-hot-added"
_PLUGS = ("plug virtio-mem, sub-blocks", "plug virtio-mem, big-blocks")

Run = dict[str, Operation]


def by_name(operations: Iterable[Operation]) -> Run:
    return {operation.name: operation for operation in operations}


@pytest.fixture(scope="module")
def kernels() -> list[Kernel]:
    return [guest_kernel(name, *counts.FRAGMENTS) for name in ("base", "patched")]


@pytest.fixture(scope="module")
def runs(kernels: list[Kernel]) -> dict[str, list[Run]]:
    """Two runs of each kernel: the operations by their names."""
    return {
        kernel.variant: [by_name(counts.count(kernel, 3600)) for _ in range(2)]
        for kernel in kernels
    }


BOTH = pytest.mark.parametrize("tree", ["base", "patched"])


def calls(run: Run, operation: str, function: str) -> int:
    """How often an operation called a function; 0 if so seldom that the result lacks it."""
    counted = run[operation].functions.get(function)
    return counted.calls if counted else 0


@BOTH
def test_stores_and_calls_of_named_functions_are_equal(
    tree: str, runs: dict[str, list[Run]]
) -> None:
    first, second = runs[tree]
    for name, functions in _EXACT.items():
        present = [function for function in functions if function in first[name].functions]
        assert present, name
        for function in present:
            one, other = (run[name].functions[function] for run in (first, second))
            assert (one.stored, one.calls) == (other.stored, other.calls), (name, function)


@BOTH
def test_sums_are_equal_within_one_per_cent(tree: str, runs: dict[str, list[Run]]) -> None:
    first, second = runs[tree]
    assert list(first) == list(second)
    for name, one in first.items():
        other = second[name]
        if one.total.instructions > _MANY:
            assert other.total.instructions == pytest.approx(one.total.instructions, rel=0.01), name
            assert other.total.stored == pytest.approx(one.total.stored, rel=0.01), name


def test_a_bind_stores_the_memmap_once(runs: dict[str, list[Run]]) -> None:
    # 4 GiB have 64 MiB of memmap.
    before, now = (runs[tree][0]["bind device-private"].total.stored for tree in runs)
    assert before > 128 * _MIB
    assert 64 * _MIB < now < 66 * _MIB


def test_a_bind_with_the_memmap_on_the_device_stores_one_64th_and_a_block(
    kernels: list[Kernel],
) -> None:
    run = by_name(counts.count(kernels[1], 3600, "operations-on-device", _LARGE))
    kinds = ("fsdax map=dev", "fsdax map=dev, shared memmap", "devdax map=dev, shared memmap")
    written, shared, compounds = (run[f"bind {kind}"].total.stored for kind in kinds)
    memmap = _LARGE // 64
    other = written - memmap  # that both binds store
    assert 0 < other < 4 * _MIB
    # The sections that hold the memmap itself are written. All others share a block of 2 MiB.
    assert 2 * _MIB < shared - other - memmap // 64 < 3 * _MIB
    # A block of compounds is no more to write.
    assert compounds < shared


def test_the_walk_of_a_zone_is_linear_in_the_blocks(runs: dict[str, list[Run]]) -> None:
    before, now = (
        [calls(runs[tree][0], f"online {blocks} blocks", _WALK) for blocks in (16, 64)]
        for tree in runs
    )
    assert before[1] > 12 * before[0] > 0
    assert now[1] <= 4 * now[0]


def test_free_memory_goes_offline_by_its_order(runs: dict[str, list[Run]]) -> None:
    operation, pages = "offline 64 blocks", 64 * _BLOCK
    before, now = (calls(runs[tree][0], operation, "page_is_unmovable") for tree in runs)
    assert before == pages
    assert now < pages / 50
    # scan_movable_pages() is inlined into it.
    before, now = (
        runs[tree][0][operation].functions["offline_pages"].instructions for tree in runs
    )
    assert before > 10 * pages
    assert now < pages / 5


def test_fsdev_does_not_walk_its_pages(runs: dict[str, list[Run]]) -> None:
    for operation in ("bind fsdev", "rebind fsdev", "unbind fsdev"):
        before, now = (calls(runs[tree][0], operation, "dax_folio_reset_order") for tree in runs)
        assert before > 2_000_000
        assert now == 0


def test_fsdev_finds_single_pages_where_devdax_had_folios(kernels: list[Kernel]) -> None:
    hashes = defaultdict(set)
    for kernel in kernels:
        records = Guest("tcg", DEVICE, 900).run(kernel, "fsdev", 2, DEVICE)[0]
        hashed = [record for record in records if "hash" in record]
        modes = {"base"} if kernel.variant == "base" else {SHARED, *MODES}
        assert {record["mode"] for record in hashed} == modes
        assert len(hashed) == 2 * 2 * 2 * len(modes)  # places, drivers and rounds
        for record in hashed:
            hashes[record["where"], record["driver"]].add(record["hash"])
    # Both kernels and all modes left the same, each time.
    assert {len(some) for some in hashes.values()} == {1}
    assert len(set.union(*hashes.values())) == 4


def test_an_unbind_waits_for_one_grace_period_less(runs: dict[str, list[Run]]) -> None:
    unbind = "unbind device-private"
    # Other code may end one, too.
    before, now = (min(calls(run, unbind, PERIOD) for run in runs[tree]) for tree in runs)
    assert before == now + 1
    for function in WAITS:
        base, patched = (calls(runs[tree][0], unbind, function) for tree in runs)
        assert base == patched, function


def test_the_memmap_of_hot_added_memory_is_written_once(kernels: list[Kernel]) -> None:
    added = [
        by_name(counts.count(kernel, 3600, HOT_ADDED, spare=counts.SPARE)) for kernel in kernels
    ]
    # 8 GiB have 128 MiB of memmap. The page allocator zeroes it first in base.
    memmap = 128 * _MIB
    for name in ("add kmem, auto-online", "add DIMM, auto-online", *_PLUGS):
        before, now = (run[name].total for run in added)
        assert before.stored > 2.4 * memmap, name
        assert memmap < now.stored < 1.1 * memmap, name
        assert now.instructions < 0.4 * before.instructions, name


def test_no_fault_costs_more_once_all_memory_has_struct_pages(kernels: list[Kernel]) -> None:
    # Boot leaves smaller blocks on the free lists in one run of two or so. These functions take
    # them apart, and then take 2% more.
    refill = ("__rmqueue_pcplist", "__mod_zone_page_state")
    rest, refilled = {}, {}
    for mode in ("eager", "background"):
        append = f"deferred_init={mode}"
        populated = [
            operation
            for _ in range(2)
            for operation in counts.count(kernels[1], 3600, "operations-boot-memory", append=append)
            if operation.name.startswith("populate")
        ]
        parts = [sum(run.functions[name].instructions for name in refill) for run in populated]
        refilled[mode] = min(parts)
        # Interrupts and kernel threads come at other times in each run, and only add to it.
        rest[mode] = min(
            run.total.instructions - part for run, part in zip(populated, parts, strict=True)
        )
    assert rest["background"] == pytest.approx(rest["eager"], rel=0.001)
    assert refilled["background"] == pytest.approx(refilled["eager"], rel=0.02)


def test_a_lazy_boot_leaves_the_memmap_alone(kernels: list[Kernel]) -> None:
    small, large = 512 << 20, 200 << 30
    made = counts.boots(kernels[1], 3600, (small, large))
    boots = {(boot.bytes, boot.name.partition(", ")[2]): boot for boot in made}
    for mode in DEFERRED_INIT[1:]:
        boot = boots[large, mode]
        assert boot.total.instructions <= 330_000_000, mode
        # A boot with little memory takes 156 MB and 48 MiB of these.
        assert boot.total.stored <= 625_000_000, mode
        assert boot.resident <= 415 * _MIB, mode
    # The memmap of all memory.
    assert boots[large, "eager"].resident > large // 64
    eager, background, lazy = (boots[small, mode].total.instructions for mode in DEFERRED_INIT)
    assert lazy < eager
    # The thread writes as much before init starts, and has to be made.
    assert background < 1.001 * eager
