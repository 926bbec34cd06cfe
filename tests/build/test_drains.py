# SPDX-License-Identifier: GPL-2.0-only
"""With streaming stores that land late, everything is as with base: no drain is missing.

make check-mutants drops one drain after the other: this file has to fail then.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import fake_tree
import mutant
import test_ordinary
from memmaps import MARGIN, SECTION, Case, Memmap, differences, open_memmap
from test_ordinary import CHUNK, added, bring_up

from pagemint.base import cache, files
from pagemint.bench import link
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.trees import objects, sources, trees

_HEADER = "arch/x86/include/asm/memfill_streaming.h"
_GIB = 1 << 18
_DEVICES = (
    Case("fsdax", 0, SECTION - MARGIN - 9, SECTION + 20, None, 1, False),
    Case("generic", 9, SECTION - MARGIN, 2 * SECTION, (0, 0), 1, False),
)
_SHARED = Case("fsdax", 0, SECTION - MARGIN, 2 * _GIB, None, 1, False)


def _late(patched: trees.Tree) -> trees.Tree:
    """Return a patched tree whose streaming stores land late."""
    header = files.BENCH / "host/late/memfill_streaming.h"

    def change(tree: Path) -> None:
        (tree / _HEADER).unlink()
        (tree / _HEADER).write_text(header.read_text())

    key = cache.digest(patched.key, header)
    return trees.changed("patched", patched, key, "letting stores land late", change)


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
