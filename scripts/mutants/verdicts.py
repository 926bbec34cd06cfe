# SPDX-License-Identifier: GPL-2.0-only
"""The outcomes of mutants: kept in a file, and shown as a table."""

import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from mutants.faults import Mutant
from mutants.hosts import LATE_HEADER
from mutants.judge import Verdict
from pagemint.base import files, journal, machine
from pagemint.base.errors import Failure

_KNOWN = files.PACKAGE.parent / "tests/mutants.toml"
_DRAINS = "dropped drains, of all files"
_LATE_SUITE = "test_drains.py"
_COLUMNS = ("made", "left", "broken", "same", "argued", "guests", "counted", "caught", "survived")

Known = dict[tuple[str, str, str], str]
"""The table of tests/mutants.toml for a file, its line, and the faulty line if one is named."""


class Verdicts:
    """The verdicts so far, in a file that outlives a run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.by_key = {entry["mutant"]: Verdict(**entry) for entry in journal.read(file)}

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        journal.add(self._file, asdict(verdict))
        self.by_key[verdict.mutant] = verdict


def known_faults(made: Collection[Mutant]) -> Known:
    """Return the entries of tests/mutants.toml: argued or guests, for lines and their faults.

    Raises:
        Failure: an entry has no fault, or is in another table.
    """
    # An entry without `after` stands for all faults of a line.
    known = {
        (entry["path"], entry["before"], entry.get("after", "")): name
        for name, table in tomllib.loads(_KNOWN.read_text()).items()
        for entry in table
    }
    faults = ((mutant.path, mutant.before.strip(), mutant.after.strip()) for mutant in made)
    there = {(path, before, text) for path, before, after in faults for text in ("", after)}
    for path, before, after in known.keys() - there:
        raise Failure(f"{_KNOWN.name}: {path} has no {before} -> {after}", "remove the entry")
    if wrong := set(known.values()) - {"argued", "guests"}:
        raise Failure(f"{_KNOWN.name} has a table {wrong.pop()}", "argued or guests")
    return known


class Table:
    """The outcome of each mutant, by file.

    Attributes:
        outcomes: an outcome for each mutant: left, broken, same, argued (tests/mutants.toml says
            why it is no fault), guests (it says which test in a guest sees it), counted, caught
            or survived; see Verdict.
    """

    def __init__(self, made: Collection[Mutant], known: Known, verdicts: Verdicts) -> None:
        """Take the mutants, the entries of tests/mutants.toml, and the verdicts so far."""
        self.outcomes: dict[Mutant, str] = {}
        self._verdicts = verdicts.by_key
        for mutant in made:
            verdict = self._verdicts.get(mutant.key)
            outcome = verdict.outcome if verdict else "left"
            if outcome == "survived":
                here, after = (mutant.path, mutant.before.strip()), mutant.after.strip()
                outcome = known.get((*here, after), known.get((*here, ""), outcome))
            self.outcomes[mutant] = outcome

    def rows(self) -> dict[str, Counter[str]]:
        """Return how many mutants of each file, and of all files, had each outcome."""
        rows: dict[str, Counter[str]] = defaultdict(Counter)
        for mutant, outcome in self.outcomes.items():
            for name in (mutant.path, *([_DRAINS] if mutant.drops_drain else ()), "all"):
                rows[name].update(["made", outcome])
        # The sums stand behind the files.
        names = sorted(rows, key=lambda name: (name == "all", name == _DRAINS, name))
        return {name: rows[name] for name in names}

    def drains_not_caught(self) -> list[Mutant]:
        """Return the dropped drains that the suite with late stores was to catch and did not.

        The host whose stores land late replaces the header of x86, so any suite may catch that one.
        """

        def is_caught(mutant: Mutant) -> bool:
            verdict = self._verdicts[mutant.key]
            by_any = mutant.path == LATE_HEADER
            return verdict.outcome == "caught" and (by_any or verdict.by.startswith(_LATE_SUITE))

        judged = (mutant for mutant in self.outcomes if mutant.key in self._verdicts)
        return [mutant for mutant in judged if mutant.drops_drain and not is_caught(mutant)]

    def survivors(self) -> list[Mutant]:
        """Return the mutants that no test saw."""
        return [mutant for mutant, outcome in self.outcomes.items() if outcome == "survived"]

    def share(self) -> float:
        """Return the share of the faults that a native suite saw; 0 if none is judged."""
        counts = Counter(self.outcomes.values())
        seen = counts["caught"] + counts["counted"]
        judged = seen + counts["survived"] + counts["guests"]
        return seen / judged if judged else 0.0

    def show(self) -> None:
        """Print the table, and then the survivors."""
        print(f"{'':44}" + "".join(f"{name:>9}" for name in _COLUMNS))
        for path, counts in self.rows().items():
            print(f"{path:44}" + "".join(f"{counts[name]:9}" for name in _COLUMNS))
        for mutant in self.survivors():
            print(f"survived: {mutant}")

    def write(self, file: Path) -> None:
        """Write the table and the survivors as JSON."""
        body = {
            "machine": machine.about(),
            "files": {
                path: {name: row[name] for name in _COLUMNS} for path, row in self.rows().items()
            },
            "survived": [str(mutant) for mutant in self.survivors()],
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(body, indent=1, default=str) + "\n")
