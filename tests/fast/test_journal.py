# SPDX-License-Identifier: GPL-2.0-only
"""The file that keeps outcomes when a process is killed, or the disk is full."""

from pathlib import Path

import pytest

from pagemint.base import journal


def test_a_file_that_is_not_there_has_no_entries(tmp_path: Path) -> None:
    assert journal.read(tmp_path / "none") == []


def test_a_line_that_is_cut_off_behind_a_brace_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "outcomes"
    file.write_text('{"a": {"n": 0}\n')
    journal.add(file, {"n": 1})
    assert journal.read(file) == [{"n": 1}]


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_line_that_is_cut_off_costs_no_other(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "outcomes"
    for number in range(2):
        journal.add(file, {"n": number})
    whole = file.read_bytes()
    assert journal.read(file) == [{"n": 0}, {"n": 1}]
    file.write_bytes(whole[:-cut])
    assert journal.read(file) == [{"n": 0}]
    journal.add(file, {"n": 2})
    # If it lacks the line feed alone, the entry is complete after all.
    kept = [0, 1, 2] if cut == 1 else [0, 2]
    assert journal.read(file) == [{"n": number} for number in kept]
