# SPDX-License-Identifier: GPL-2.0-only
"""What became of mutants: kept in a file, and shown as a table."""

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mutants.faults import Mutant
from mutants.judge import COUNTS, Verdict
from pagemint.base import files

_ARGUED = files.NATIVE.parent / "tests/mutants.toml"
_COLUMNS = ("made", "left", "broken", "same", "argued", "caught", "counted", "survived")


class Verdicts:
    """The verdicts so far, in a file that outlives a run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.found = {one["mutant"]: Verdict(**one) for one in map(json.loads, lines)}

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")
        self.found[verdict.mutant] = verdict


def _argued() -> set[tuple[str, str, str]]:
    """Return the mutants of tests/mutants.toml, each as its file, its line before and after."""
    known = tomllib.loads(_ARGUED.read_text())["equivalent"]
    return {(one["path"], one["before"], one["after"]) for one in known}


def _table(made: Sequence[Mutant], verdicts: Verdicts) -> dict[str, Counter[str]]:
    """Return how many mutants of each file had each outcome."""
    argued = _argued()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in made:
        verdict = verdicts.found.get(mutant.key)
        outcome = verdict.outcome if verdict else "left"
        here = (mutant.path, mutant.before.strip(), mutant.after.strip())
        if outcome == "survived" and here in argued:
            outcome = "argued"
        if verdict and verdict.by.startswith(f"test_{COUNTS}"):
            outcome = "counted"
        table[mutant.path][outcome] += 1
    return table


def show(made: Sequence[Mutant], verdicts: Verdicts) -> float:
    """Print the table and the survivors; return the share that was caught."""
    table = _table(made, verdicts)
    for counts in table.values():
        counts["made"] = sum(counts.values())
    table["all"] = sum(table.values(), Counter())
    print(f"{'':44}" + "".join(f"{one:>9}" for one in _COLUMNS))
    for path, counts in table.items():
        print(f"{path:44}" + "".join(f"{counts[one]:9}" for one in _COLUMNS))
    argued = _argued()
    for mutant in made:
        verdict = verdicts.found.get(mutant.key)
        here = (mutant.path, mutant.before.strip(), mutant.after.strip())
        if verdict and verdict.outcome == "survived" and here not in argued:
            print(f"survived: {mutant}")
    counts = table["all"]
    caught = counts["caught"] + counts["counted"]
    judged = caught + counts["survived"]
    return caught / judged if judged else 1.0
