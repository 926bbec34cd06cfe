# SPDX-License-Identifier: GPL-2.0-only
"""A memmap that a native host shares with this process."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.workload import FIRST_PFN
from pagemint.words import STRUCT_PAGE

POISON = 0xA5
"""The byte that memmaps consist of before a run. No struct page consists of it."""


@contextmanager
def shared_map(
    program: Program, window: int, *, trace: bool = False
) -> Iterator[tuple[Host, mmap.mmap]]:
    """Start a host; yield it, and the memmap of `window` pages from FIRST_PFN on that it shares.

    `trace` activates the page_ref_set event.
    """
    with os.fdopen(os.memfd_create("memmap"), "r+b") as file:
        file.truncate(window * STRUCT_PAGE)
        memory = file.fileno()
        with Host(program, memory) as host, mmap.mmap(memory, 0) as shared:
            host.patch("plain", events=int(trace))
            host.ask("map", first=FIRST_PFN, pages=window, fd=memory)
            yield host, shared


def blocks_of(host: Host, tree: str) -> list[str]:
    """Return the pageblocks of a tree's last run, each as PFN:MIGRATETYPE:ISOLATED."""
    blocks = host.ask("blocks", tree=tree)
    return blocks["block"].split(",") if blocks else []
