# SPDX-License-Identifier: GPL-2.0-only
"""The checks before a file is written, and a file that outlives a process that is killed."""

from pathlib import Path

import pytest

from pagemint.base import disk, journal
from pagemint.base.errors import Failure


def test_need_space(tmp_path: Path) -> None:
    disk.need_space(tmp_path / "not/there/yet", 1, "a byte")
    with pytest.raises(Failure, match=r"the moon needs 1000000\.0 GB .* GB free"):
        disk.need_space(tmp_path / "not/there/yet", 10**15, "the moon")


def test_a_check_makes_no_directory_and_a_file_is_none(tmp_path: Path) -> None:
    disk.check_directory(tmp_path / "not/there/yet", "it", "elsewhere")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match=r"cannot write it: Not a directory.*elsewhere"):
        disk.check_directory(tmp_path / "file/not", "it", "elsewhere")


def test_a_line_that_is_cut_off_behind_a_brace_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "outcomes"
    file.write_text('{"a": {"n": 0}\n')
    journal.add(file, {"n": 1})
    assert journal.read(file) == [{"n": 1}]


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_line_that_is_cut_off_costs_no_other(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "outcomes"
    assert journal.read(file) == []  # it is not there
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
