# SPDX-License-Identifier: GPL-2.0-only
"""The first use of each section of a device whose sections share a memmap.

A tree that has no shared memmap writes it at the bind instead: its time is that of the blocks and
the fill, as in the workload vmemmap.
"""

from collections.abc import Iterable
from functools import partial

from pagemint.base.memmap import SECTION, STRUCT_PAGE
from pagemint.native.process import Host
from pagemint.native.workload import FIRST_PFN, Asked, Task, Timed, Variant, Workload, map_window
from pagemint.native.workloads import vmemmap
from pagemint.results.rows import Case

_MORE = 2  # sections of the window: for the shared block, and for page tables


def _pages(asked: Asked) -> int:
    """Return the pages whose memmap is mapped: of the device, of the rest, and of the blocks."""
    return vmemmap.pages(asked) + _MORE * SECTION + vmemmap.BLOCK


def _memory(asked: Asked) -> int:
    return _pages(asked) * STRUCT_PAGE


def _setup(host: Host, asked: Asked) -> int:
    return map_window(host, _pages(asked))


def _tasks(asked: Asked) -> Iterable[Task]:
    case = vmemmap.case_of("populate", "first use", asked)
    for variant in asked.plain:
        yield Task(case, variant, partial(_run, variant, case))


def _run(variant: Variant, case: Case, host: Host) -> Timed:
    answer = host.ask("populate", tree=variant.tree, first=FIRST_PFN, sections=case.times)
    if answer["shares"] == "0":
        return vmemmap.run(variant, case, host)
    return Timed(int(answer["ns"]))


WORKLOADS = (
    Workload(
        name="populate",
        memory=_memory,
        setup=_setup,
        tasks=_tasks,
        loops=lambda host, asked: (),
        since=(7, 3),
    ),
)
