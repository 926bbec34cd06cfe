# SPDX-License-Identifier: GPL-2.0-only
"""Every drain is needed: with streaming stores that land late, a run without it is caught.

The long run removes one drain after the other from the kernel part, and builds each such tree.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import fake_tree
import mutant
import pytest
import test_ordinary
from kernel_lines import LONG
from memmaps import MARGIN, SECTION, Case, Memmap, differences, open_memmap
from test_ordinary import CHUNK, added, bring_up

from pagemint.base import cache, files
from pagemint.base.errors import Failure
from pagemint.bench import link
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.trees import objects, sources, trees

_HEADER = "arch/x86/include/asm/memfill_streaming.h"
_PLACES = ("mm/mm_init.c", "mm/memmap_template.h", "mm/memmap_threads.c", "mm/memory_hotplug.c")
_DRAIN = re.compile(r"^\tmemmap_template_drain\(&?t\);\n", re.MULTILINE)
_GIB = 1 << 18
_DEVICES = (
    Case("fsdax", 0, SECTION - MARGIN - 9, SECTION + 20, None, 1, False),
    Case("generic", 9, SECTION - MARGIN, 2 * SECTION, (0, 0), 1, False),
)
_SHARED = Case("fsdax", 0, SECTION - MARGIN, 2 * _GIB, None, 1, False)


@dataclass(frozen=True)
class Drain:
    """A drain in a file of the patched tree: the `number`th one."""

    path: str
    number: int


def _late(patched: trees.Tree, without: Drain | None = None) -> trees.Tree:
    """Return a patched tree whose streaming stores land late, perhaps without one drain."""
    header = files.BENCH / "host/late/memfill_streaming.h"
    changes = {_HEADER: header.read_text()}
    if without:
        text = (patched.path / without.path).read_text()
        drain = list(_DRAIN.finditer(text))[without.number]
        changes[without.path] = text[: drain.start()] + text[drain.end() :]

    def change(tree: Path) -> None:
        for path, text in changes.items():
            (tree / path).unlink()
            (tree / path).write_text(text)

    key = cache.digest(patched.key, header, repr(without))
    return trees.changed("patched", patched, key, f"removing {without}", change)


def _drains(patched: trees.Tree) -> list[Drain]:
    return [
        Drain(path, number)
        for path in _PLACES
        if (patched.path / path).exists()
        for number in range(len(_DRAIN.findall((patched.path / path).read_text())))
    ]


@contextmanager
def _undrained(host: Host) -> Iterator[None]:
    """Check that no thread let others run with stores that had not landed."""
    host.ask("late")
    yield
    assert host.ask("late")["undrained"] == "0", "undrained"


def _check(program: Program) -> None:
    """Check everything that a tree writes, as another process sees it.

    Raises:
        AssertionError: a page differs from base's, or a drain is missing.
    """
    with contextmanager(open_memmap)(program, 3 * _GIB) as memmap:
        for case in _DEVICES:
            _check_device(memmap, case, 1)
        memmap.host.ask("threads", tree="patched", nr=2)
        _check_device(memmap, _SHARED, 2)
    with contextmanager(open_memmap)(program) as memory:
        for block in (1, 2):
            _check_ordinary(memory, added(3, 2, block))
        free = ((0, CHUNK), (CHUNK + 7, SECTION // 2))
        _check_ordinary(memory, test_ordinary.Case(5, SECTION, 1, 0, free))


def _check_device(memmap: Memmap, case: Case, threads: int) -> None:
    base, blocks, _ = memmap.init(case, "base")
    with _undrained(memmap.host):
        data, own, _ = memmap.init(case, "streaming")
        assert not differences(base, data)
        assert (own, memmap.threads) == (blocks, threads)


def _check_ordinary(memory: Memmap, case: test_ordinary.Case) -> None:
    base = bring_up(memory, case, "base")
    with _undrained(memory.host):
        left = bring_up(memory, case, "streaming")
        assert not differences(base.pages, left.pages)
        assert replace(left, pages=b"") == replace(base, pages=b"")


def test_stores_that_land_late_change_nothing(in_user_cache: None) -> None:
    if mutant.JUDGED:
        _check(mutant.program("late"))
        return
    base, patched = trees.pair(sources.get(fake_tree.LINE))
    _check(link.link([base, _late(patched)], objects.DEBIAN))


@pytest.mark.skipif(not LONG, reason="builds a tree for each drain: PAGEMINT_LONG=1")
def test_each_drain_is_missed(in_user_cache: None) -> None:
    base, patched = trees.pair(sources.get(fake_tree.LINE))
    drains = _drains(patched)
    assert len(drains) == 3
    survived = []
    for drain in drains:
        program = link.link([base, _late(patched, drain)], objects.DEBIAN)
        try:
            _check(program)
        except (AssertionError, Failure):
            continue  # Failure: the host crashed on pages that were not written
        survived.append(drain)
    assert survived == []
