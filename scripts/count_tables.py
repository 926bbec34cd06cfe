# SPDX-License-Identifier: GPL-2.0-only
"""The tables of counted operations in docs/results.md."""

from collections.abc import Iterator
from pathlib import Path

from pagemint.results import counted
from pagemint.results.counted import MEASURES, Pair
from pagemint.results.rows import Operation
from pagemint.send import kept
from pagemint.words import PAGE

_OPERATIONS = (
    "| operation | instructions, before | now | bytes stored, before | now |",
    "|---|---:|---:|---:|---:|",
)
_STOCK = (
    "| Debian's kernel | operation | instructions, without | with | bytes stored, without | with |",
    "|---|---|---:|---:|---:|---:|",
)
_SAME = 0.05  # of a count before: no less is told apart, since small operations are noisy
_INTRODUCTION = """## Whole operations, counted

The work of the kernel in each operation, counted in emulated guests, without the patches (before)
and with all of them in their default mode (now): [operations.md](operations.md) says how. A device
has 8.1 GiB, device-private memory 4 GiB. 1,024 folios of 2 MiB are allocated and freed, 64 are
mapped, 32 migrated. fsdev is devdax under the driver `fsdev_dax`, for famfs. "Add kmem" gives
devdax to the driver `kmem`; 16 or 64 memory blocks of it go online. "Shared memmap" means
`memmap_shared=1`: sections share a memmap until they are used. "Auto-online" adds 8 GiB that go
online at once; "plug" and "unplug" resize a virtio-mem device between nothing and 8 GiB. A count
is not a time, and small differences below ten million instructions are no gain."""

_WAITS = """### Grace periods

Normal RCU grace periods that end during operations that wait for some, where the patches change
their number. Those for which other tasks wait count, too, so a longer operation sees more.

| operation | before | now |
|---|---:|---:|"""

_BOOTS = """### Boots

The work of the kernel until it starts init, with one CPU, and the memory that the host then backs:
with `base` and `eager` mostly memmap, with `lazy` mostly hash tables and, from 4 GiB on, the 64 MiB
of swiotlb. Eager is the default; [operations.md](operations.md#boots) describes the others.

| guest | kernel | instructions | bytes stored | resident on the host |
|---|---|---:|---:|---:|"""

_LATENCY = """### Allocations while memory grows

Instructions of an allocation that does not zero its memory, in a guest with nodes of 2 and 4 GiB:
640 allocations of order 9, then 327,680 of order 0. None is freed meanwhile. Half of order 9 split
a larger block, so their median is one of two values; the mean tells more.

| allocations | kernel | mean | median | 99 of 100 need at most | all need at most |
|---|---|---:|---:|---:|---:|"""

_MODULE = """### Stock kernels

The same with Debian's kernels, without and with [the module](stock.md)."""


def section() -> Iterator[str]:
    """Yield the lines of the section."""
    newest = kept.counts()
    name = Path(newest.file).name
    earlier = "" if kept.counts_are_current(newest) else " The kernel code has changed since."
    yield from (_INTRODUCTION, "")
    yield (
        f"Linux {newest.kernel.version}, {newest.host.date:%-d %B %Y}: [{name}](results/{name}), "
        f"which has more operations, and each function.{earlier}"
    )
    yield from ("", *_OPERATIONS)
    operations = counted.telling(newest)
    same = [pair.last.name for pair in operations if _is_same(pair)]
    for pair in operations:
        if pair.last.name not in same:
            yield row(pair.last.name, *_amounts(pair))
    if same:
        yield from ("", f"Within {_SAME:.0%} before and now: {'; '.join(same)}.")
    yield from ("", _WAITS)
    for pair in operations:
        ended = _calls(pair, counted.PERIOD)
        if len(set(ended)) > 1 and any(any(_calls(pair, wait)) for wait in counted.WAITS):
            yield row(pair.last.name, *map(str, ended))
    if boots := counted.boots(newest):
        yield from ("", _BOOTS)
        for boot in boots:
            memory, _, mode = boot.name.removeprefix(counted.BOOT).partition(", ")
            amounts = [counted.in_words(of(boot.total), name) for name, of in MEASURES.items()]
            resident = counted.in_words(boot.resident, "bytes stored")
            yield row(memory, _kernel(boot, mode), *amounts, resident)
    if latencies := [operation for operation in newest.counts if operation.latency]:
        yield from ("", _LATENCY)
        for operation in latencies:
            what, _, mode = operation.name.removeprefix("allocate ").partition(", ")
            times = operation.bytes // (PAGE << int(what.removeprefix("order ")))
            needed = (operation.total.instructions // times, *operation.latency)
            yield row(what, _kernel(operation, mode), *map("{:,}".format, needed))
    yield from ("", _MODULE, "", *_STOCK)
    for result in kept.stock_counts():
        for pair in counted.pairs(result):
            yield row(result.kernel.version, pair.last.name, *_amounts(pair))
    yield ""


def _kernel(operation: Operation, mode: str) -> str:
    return "base" if operation.tree == "base" else f"patched, {mode}"


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def _is_same(pair: Pair) -> bool:
    """Tell whether all counts of an operation are nearly the same before and now."""
    if len(pair.trees) == 1:
        return False
    changes = ((of(pair.trees[0].total), of(pair.trees[1].total)) for of in MEASURES.values())
    return all(abs(now - before) < _SAME * before for before, now in changes)


def _calls(pair: Pair, function: str) -> list[int]:
    """Return how often an operation calls a function, before and now."""
    return [
        tree.functions[function].calls if function in tree.functions else 0 for tree in pair.trees
    ]


def _amounts(pair: Pair) -> list[str]:
    return [
        counted.in_words(of(tree.total), measure) if tree else "-"
        for measure, of in MEASURES.items()
        for tree in (pair.before, pair.now)
    ]
