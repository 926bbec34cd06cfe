# SPDX-License-Identifier: GPL-2.0-only
"""The lists of modes agree: one that native/ or guest/ lacks would not be timed, without a word."""

import re
from pathlib import Path

import pytest

from pagemint.base.memmap import MODES

_ROOT = Path(__file__).parent.parent
_KERNEL = r"\[MEMMAP_INIT_\w+\]\s*= (\"\w+\"),"


@pytest.mark.parametrize(
    ("places", "pattern"),
    [
        (["native/glue/tree.c"], r"\bnames\[\] = \{(.*)\};"),
        (["guest/modes.py"], r"^SERIES = \((.*)\)$"),
        (["kernel/mm/memmap_template.c", "kernel/series/published/*/7.3.diff"], _KERNEL),
    ],
)
def test_the_modes_are_those_of_the_lab(places: list[str], pattern: str) -> None:
    found = [file for place in places for file in _ROOT.glob(place)]
    text = "".join(file.read_text() for file in found)
    names = " ".join(re.findall(pattern, text, re.MULTILINE))
    assert set(re.findall(r'"(\w+)"', names)) == set(MODES)
