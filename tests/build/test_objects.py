# SPDX-License-Identifier: GPL-2.0-only
"""Faults of the glue: an error in its source is one, a failure of the machine is not."""

from pathlib import Path

import pytest

from pagemint.base.errors import Failure
from pagemint.trees import objects
from pagemint.trees.trees import Tree


def _faults(message: str, tmp_path: Path) -> dict[str, str]:
    """Compile a file in a tree whose make fails, with this message of a compiler."""
    tree, built, scratch = (tmp_path / name for name in ("tree", "built", "scratch"))
    for folder in (tree, built, scratch):
        folder.mkdir()
    (tree / "Makefile").write_text(f'%.o:\n\t@echo "{message}" >&2; false\n')
    source = tmp_path / "device.c"
    source.write_text("")
    return objects.compile_glue(Tree("base", tree, "", "7.3", "7.3.4"), built, [source], scratch)


@pytest.mark.parametrize(
    "message",
    [
        "device.c:3:9: error: implicit declaration of function 'no_such'",
        "device.c:3:10: fatal error: linux/none.h: No such file or directory",
        "device.c:3: Error: no such instruction: 'none %eax'",
    ],
)
def test_an_error_in_the_source_is_a_fault(message: str, tmp_path: Path) -> None:
    assert message in _faults(message, tmp_path)["device"]


@pytest.mark.parametrize(
    "message",
    [
        "device.c:200:1: fatal error: error writing to /tmp/ccX.s: No space left on device",
        "/tmp/ccX.s: Fatal error: device.o: No such file or directory",
        "gcc: fatal error: Killed signal terminated program cc1",
        "device.c:3:9: internal compiler error: Segmentation fault",
    ],
)
def test_a_failure_of_the_machine_is_not_a_fault(message: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="in the base tree failed"):
        _faults(message, tmp_path)
