# SPDX-License-Identifier: GPL-2.0-only
"""The verdicts of make check-mutants: its table, and what makes it fail."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import fake_tree
import pytest
from mutants import __main__ as command
from mutants import verdicts
from mutants.faults import Mutant
from mutants.judge import Verdict
from mutants.verdicts import Table, Verdicts, known_faults
from stand_ins import Patch

from pagemint.base.errors import Failure
from pagemint.trees import patches

_PLAIN = Mutant("mm/util.c", 1, "\tn++;\n", "\tn--;\n")
_OTHER = Mutant("mm/util.c", 1, "\tn++;\n", "\tn;\n")
_DRAIN = Mutant("mm/mm_init.c", 2, "\tx_drain(&t);\n", "\t/*x_drain(&t);*/\n")
_FENCE = Mutant("arch/x86/include/asm/memfill_streaming.h", 3, "\twmb();\n", "\t/*wmb();*/\n")
_LATE = "test_drains.py::test_stores_that_land_late_change_nothing"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: Patch) -> Callable[..., Table]:
    """Makes the table of mutants with their verdicts, and of entries of mutants.toml."""

    def make(judged: dict[Mutant, tuple[str, str]], known: str = "") -> Table:
        (tmp_path / "mutants.toml").write_text(known)
        monkeypatch.setattr(verdicts, "_KNOWN", tmp_path / "mutants.toml")
        stored = Verdicts(tmp_path / "verdicts")
        for mutant, (outcome, by) in judged.items():
            if outcome != "left":
                stored.add(Verdict(mutant.key, outcome, by, 1))
        return Table(list(judged), known_faults(list(judged)), stored)

    return make


@pytest.mark.parametrize(
    ("outcomes", "share"),
    [
        (("left", "left"), 0),
        (("broken", "same"), 0),
        (("caught", "survived"), 0.5),
        (("counted", "caught"), 1),
    ],
)
def test_the_share_is_of_the_faults_that_were_judged(
    outcomes: tuple[str, str], share: float, table: Callable[..., Table]
) -> None:
    judged = dict(zip((_PLAIN, _OTHER), ((outcome, "") for outcome in outcomes), strict=True))
    assert table(judged).share() == share


@pytest.mark.parametrize(
    ("mutant", "outcome", "by", "ok"),
    [
        (_DRAIN, "caught", _LATE, True),
        (_DRAIN, "caught", "test_streaming.py::test_code", False),
        (_DRAIN, "survived", "", False),
        (_DRAIN, "broken", "", False),
        (_DRAIN, "left", "", True),
        (_FENCE, "caught", "test_streaming.py::test_code", True),
        (_FENCE, "same", "", False),
        (_PLAIN, "survived", "", True),
    ],
)
def test_late_stores_must_show_a_dropped_drain(
    mutant: Mutant, outcome: str, by: str, ok: bool, table: Callable[..., Table]
) -> None:
    wanted = [] if ok else [mutant]
    assert table({mutant: (outcome, by)}).drains_not_caught() == wanted


def test_an_entry_without_after_is_for_all_faults_of_a_line(table: Callable[..., Table]) -> None:
    judged = {mutant: ("survived", "") for mutant in (_PLAIN, _OTHER)}
    entry = '[[argued]]\npath = "mm/util.c"\nbefore = "n++;"\nwhy = "nobody looks"\n'
    assert table(judged, entry).survivors() == []
    entry += 'after = "n--;"\n'
    assert table(judged, entry).survivors() == [_OTHER]


def test_an_entry_of_no_fault_is_refused(table: Callable[..., Table]) -> None:
    entry = '[[argued]]\npath = "mm/util.c"\nbefore = "gone;"\nwhy = "nobody looks"\n'
    with pytest.raises(Failure, match="remove the entry"):
        table({_PLAIN: ("survived", "")}, entry)


def test_the_sums_come_last(table: Callable[..., Table]) -> None:
    judged = {mutant: ("left", "") for mutant in (_PLAIN, _DRAIN)}
    names = list(table(judged).rows())
    assert names == ["mm/mm_init.c", "mm/util.c", "dropped drains, of all files", "all"]


def test_each_entry_is_of_a_line_of_the_series(tmp_path: Path) -> None:
    tree = fake_tree.make(tmp_path / "linux")
    patches.apply(tree, fake_tree.LINE, command.topics())
    tables = tomllib.loads(verdicts._KNOWN.read_text()).values()
    gone = [
        (entry["path"], entry["before"])
        for table in tables
        for entry in table
        if entry["before"] not in map(str.strip, (tree / entry["path"]).read_text().split("\n"))
    ]
    assert gone == []
