# SPDX-License-Identifier: GPL-2.0-only
"""Copies of folios: both trees' code for the classes of CPU for which it differs.

The code of every class runs on this machine's core, so its time says nothing about another core.
Source and destination are out of the cache when a copy begins.
"""

from collections.abc import Iterable
from functools import partial

from pagemint.bench.process import Host
from pagemint.bench.workload import (
    FIRST_PFN,
    Loop,
    Settings,
    Task,
    Timed,
    Variant,
    Workload,
    map_pages,
)
from pagemint.results.rows import Case, Limit
from pagemint.words import BASE, PAGE

ORDERS = (4, 6, 9, 18)
"""Orders of the folios: 64 KiB, 256 KiB, 2 MiB and 1 GiB."""

FUNCTIONS = {
    "folio_copy": ("folio_copy", False),
    "folio_mc_copy": ("folio_mc_copy", False),
    "folio_mc_copy, fragile": ("folio_mc_copy", True),
    "copy_user_large_folio": ("copy_user_large_folio", False),
    "copy_user_large_folio, fragile": ("copy_user_large_folio", True),
}
"""By their names in results: a function of the kernel, and whether it uses copy_mc_fragile()."""

# Only CPUs with ERMS copy runs. Elsewhere only copy_user_large_folio() differs from base: it copies
# the pages in another order.
_TIMED = dict.fromkeys(FUNCTIONS, ("erms",)) | {"copy_user_large_folio": ("erms", "rep_good")}

_SAMPLE = 32 << 20  # bytes that a run copies, if a folio is no larger
_LARGEST = PAGE << ORDERS[-1]
# In some processes the loop of copy_mc_fragile() takes half as long again, in every tree, for as
# long as the process lives. So the rounds are spread over several processes.
_ROUNDS = 2


def _pages(order: int) -> int:
    """Return how many pages a run copies."""
    return max(_SAMPLE // PAGE, 1 << order)


def _tasks(settings: Settings) -> Iterable[Task]:
    for order in ORDERS:
        for function in FUNCTIONS:
            for cpu_class in _TIMED[function]:
                case = Case(
                    "folio",
                    _pages(order) * PAGE,
                    _pages(order),
                    returns=settings.returns,
                    function=function,
                    cpu_class=cpu_class,
                    folio_bytes=PAGE << order,
                )
                for variant in settings.plain:
                    yield Task(case, variant, partial(_copy, variant, case, order))


def _prepare(host: Host, order: int, tree: str) -> dict[str, int]:
    """Make the folios with a tree's code, evict them from the cache, and return where they are."""
    pages = _pages(order)
    # A tree of another version may lay out its folios differently.
    host.ask(
        "init",
        tree=tree,
        start=FIRST_PFN,
        pages=2 * pages,
        type="fsdax",
        order=order,
        altmap=1,
    )
    # A folio that is far larger than the cache need not be evicted.
    if PAGE << order <= _SAMPLE:
        host.ask("evict", pfn=FIRST_PFN, pages=2 * pages)
    return {
        "order": order,
        "folios": pages >> order,
        "to": FIRST_PFN,
        "from": FIRST_PFN + pages,
    }


def _copy(variant: Variant, case: Case, order: int, host: Host) -> Timed:
    name, fragile = FUNCTIONS[case.function]
    host.patch(case.returns, case.cpu_class, fragile=int(fragile))
    where = _prepare(host, order, variant.tree)
    answer = host.ask("copy", tree=variant.tree, function=name, **where)
    return Timed(int(answer["ns"]))


def _loops(host: Host, settings: Settings) -> Iterable[Loop]:
    for order in ORDERS:
        for name in host.ask("loops", fills=0)["loop"].split(","):
            pages = _pages(order)
            limit = Limit(
                "copy",
                name,
                pages * PAGE,
                pages,
                [],
                returns=settings.returns,
                folio_bytes=PAGE << order,
            )
            yield Loop(limit, partial(_loop, name, order))


def _loop(name: str, order: int, host: Host) -> Timed:
    answer = host.ask("copy_loop", loop=name, **_prepare(host, order, BASE))
    return Timed(int(answer["ns"]))


WORKLOADS = (
    Workload(
        name="folio",
        memory=lambda settings: 2 * _LARGEST,
        setup=lambda host, settings: map_pages(host, 2 * _LARGEST // PAGE),
        tasks=_tasks,
        loops=_loops,
        rounds=_ROUNDS,
        sized=False,
    ),
)
"""One return a page is little beside its copy, so only the returns of this machine are timed."""
