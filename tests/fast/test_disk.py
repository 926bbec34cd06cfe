# SPDX-License-Identifier: GPL-2.0-only
"""The checks before a file is written."""

from pathlib import Path

import pytest

from pagemint.base import disk
from pagemint.base.errors import Failure


def test_need_space(tmp_path: Path) -> None:
    disk.need_space(tmp_path / "not/there/yet", 1, "a byte")
    with pytest.raises(Failure, match=r"the moon needs 1000000\.0 GB .* GB free"):
        disk.need_space(tmp_path / "not/there/yet", 10**15, "the moon")


def test_a_check_makes_no_directory(tmp_path: Path) -> None:
    disk.check_directory(tmp_path / "not/there/yet", "it", "elsewhere")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match=r"cannot write it: Not a directory.*elsewhere"):
        disk.check_directory(tmp_path / "file/not", "it", "elsewhere")
