# SPDX-License-Identifier: GPL-2.0-only
"""The objects of the native host's plain half call each other in no circle."""

import graphlib
import subprocess
from pathlib import Path

from pagemint.bench import link


def _symbols(file: Path, which: str) -> set[str]:
    argv: list[str | Path] = ["nm", "--extern-only", which, "--format=posix", file]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_no_circle_exists_among_the_calls() -> None:
    plain = link.compile_plain()
    owner = {symbol: one.stem for one in plain for symbol in _symbols(one, "--defined-only")}
    needs = {
        one.stem: {owner[symbol] for symbol in _symbols(one, "--undefined-only") if symbol in owner}
        for one in plain
    }
    # A graph that lacks its edges would pass.
    assert needs["main"] >= {"command", "faults"}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        # Each needs the one to its right; graphlib lists them the other way round.
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None
