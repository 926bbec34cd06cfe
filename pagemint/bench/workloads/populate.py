# SPDX-License-Identifier: GPL-2.0-only
"""A device whose sections share a memmap: its bind, and the first use of each section.

A tree that has no shared memmap writes all of it at the bind: its time, with which both are
compared, is that of the blocks and the fill, as in the workload vmemmap.
"""

from collections.abc import Iterable
from functools import partial

from pagemint.bench.process import Host
from pagemint.bench.workload import FIRST_PFN, Settings, Task, Timed, Variant, Workload, map_window
from pagemint.bench.workloads import vmemmap
from pagemint.results.rows import Case
from pagemint.words import SECTION, STRUCT_PAGE

_MORE = 2  # sections of the window: for the shared block, and for page tables


def _pages(settings: Settings) -> int:
    """Return the pages whose memmap is mapped: of the device, of the rest, and of the blocks."""
    return vmemmap.pages(settings) + _MORE * SECTION + vmemmap.BLOCK


def _tasks(settings: Settings) -> Iterable[Task]:
    bind = vmemmap.case_of("populate", "bind", settings)
    use = vmemmap.case_of("populate", "first use", settings)
    for variant in settings.plain:
        yield Task(bind, variant, partial(_run, variant, bind, 0, "bind_ns"))
        yield Task(use, variant, partial(_run, variant, use, use.times, "use_ns"))


def _run(variant: Variant, case: Case, used: int, part: str, host: Host) -> Timed:
    where = {"first": FIRST_PFN, "sections": case.times, "used": used}
    answer = host.ask("populate", tree=variant.tree, **where)
    if answer["shares"] == "0":
        return vmemmap.run(variant, case, host)
    return Timed(int(answer[part]))


WORKLOADS = (
    Workload(
        name="populate",
        memory=lambda settings: _pages(settings) * STRUCT_PAGE if vmemmap.pages(settings) else 0,
        setup=lambda host, settings: map_window(host, _pages(settings)),
        tasks=_tasks,
        since=(7, 3),
        uses=("device", "vmemmap"),
    ),
)
