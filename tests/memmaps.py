# SPDX-License-Identifier: GPL-2.0-only
"""Shares memmaps between a native host and a test, and calls memmap_init_zone_device()."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass

import mutant
import numpy as np
from kernel_lines import BASES, LINES

from pagemint.bench import link
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.window import POISON, blocks_of, shared_map
from pagemint.bench.workload import FIRST_PFN
from pagemint.trees import objects, sources, trees
from pagemint.words import STRUCT_PAGE

SECTION = 1 << 15
PAGEBLOCK = 512
DEDUPLICATED = 128  # pages of a compound that have a memmap of their own
MARGIN = 64  # pages that are compared on both sides of the written ones
WINDOW = 2 * SECTION + 3 * (1 << 18) + 2 * MARGIN
MIGRATE_MOVABLE = 1
TYPES = ("private", "coherent", "fsdax", "generic", "pci_p2pdma")
CONFIGS = {"mask": objects.DEBIAN, "pointer": objects.NO_MASK}
# On 6.12 tails point to their head in both configurations.
HOSTS = [
    (line, name)
    for line in BASES
    for name, config in CONFIGS.items()
    if line in LINES or config == objects.DEBIAN
]


def program_for(line: str, config: str) -> Program:
    """Return the host of a kernel line and one of CONFIGS."""
    if mutant.JUDGED:
        return mutant.program(config)
    return link.link(trees.pair(sources.get(line)), CONFIGS[config])


@dataclass(frozen=True)
class Case:
    """One call of memmap_init_zone_device().

    Attributes:
        start: the first PFN, counted from the first one of the window.
        nr: number of pages, with those of the altmap.
        altmap: pages that the altmap reserves, and pages that it has for the memmap; or None.
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

    def arguments(self) -> dict[str, object]:
        """Return the arguments of the host's command init."""
        arguments: dict[str, object] = {
            "start": FIRST_PFN + MARGIN + self.start,
            "pages": self.nr,
            "type": self.type,
            "order": self.order,
            "nid": self.nid,
            "early": int(self.early),
        }
        if self.altmap:
            arguments |= {"altmap": 1, "reserve": self.altmap[0], "free": self.altmap[1]}
        return arguments


class Memmap:
    """A host, and the memmap that it shares with this process."""

    def __init__(self, host: Host, memmap: mmap.mmap) -> None:
        self.host = host
        self.bytes = memmap
        self.threads = 1  # of the last initialisation

    def init(self, case: Case, variant: str) -> tuple[bytes, list[str], int]:
        """Poison pages, initialise; return these pages, the pageblocks and the events."""
        low, watched = FIRST_PFN + case.start, case.written_end + MARGIN
        self.host.ask("poison", byte=POISON, first=low, pages=watched - low)
        tree = "base" if variant == "base" else "patched"
        if variant not in ("base", "patched"):
            self.host.ask("mode", tree=tree, name=variant)
        answer = self.host.ask("init", tree=tree, **case.arguments())
        data = self.bytes[(low - FIRST_PFN) * STRUCT_PAGE : (watched - FIRST_PFN) * STRUCT_PAGE]
        self.threads = int(answer["threads"])
        return data, blocks_of(self.host, tree), int(answer["events"])


def differences(one: bytes, other: bytes) -> list[str]:
    """Return the first few places at which two memmaps differ."""
    if one == other:  # much faster
        return []
    differ = np.frombuffer(one, np.uint8) != np.frombuffer(other, np.uint8)
    return [
        f"page {at // STRUCT_PAGE} byte {at % STRUCT_PAGE}: {one[at]:#04x} {other[at]:#04x}"
        for at in np.flatnonzero(differ)[:8]
    ]


def open_memmap(program: Program, window: int = WINDOW, *, trace: bool = False) -> Iterator[Memmap]:
    with shared_map(program, window, trace=trace) as shared:
        yield Memmap(*shared)
