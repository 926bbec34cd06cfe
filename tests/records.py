# SPDX-License-Identifier: GPL-2.0-only
"""Lets make check-vm and make check-long go on where an earlier call stopped.

The outcome of each test is kept in the cache as soon as it is known, by a digest of all that the
test consists of. A later call leaves out the tests that have passed or were skipped. The end of a
call prints a table of all outcomes so far, and writes it to a file.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pagemint.base import cache, machine

_ROOT = Path(__file__).resolve().parent.parent
_TESTED = ("pagemint", "kernel", "native", "guest", "module", "scripts", "pyproject.toml")
_TEXTS = ("docs", "README.md", "CONTRIBUTING.md", "Makefile")  # tested if a test file names them
_VARIABLES = ("PAGEMINT_VM", "PAGEMINT_LONG")
_LINE = re.compile(r"(?<![\d.])(?:linux-)?([67]\.\d+)(?![\d.])")
_WORST = ("failed", "skipped", "passed")  # the first of them that a phase of a test ends with
_COLUMNS = ("passed", "failed", "skipped", "left")


@dataclass
class _Record:
    """A test's outcome, and the seconds of its phases."""

    outcome: str = "passed"
    seconds: float = 0

    @property
    def done(self) -> bool:
        """Whether a later call leaves the test out."""
        return self.outcome != "failed"


@dataclass
class Records:
    """A plugin of pytest that keeps the outcomes of tests.

    Attributes:
        name: the call: check-vm or check-long.
        worker: whether this process runs tests for another one, which keeps the outcomes.
        file: the file for the table.
    """

    name: str
    worker: bool
    file: Path
    _files: dict[str, Path] = field(default_factory=dict)
    _running: dict[str, _Record] = field(default_factory=lambda: defaultdict(_Record))
    _chosen: set[str] = field(default_factory=set)

    def _file(self, test_file: str) -> Path:
        """Return the file with the outcomes of a test file, as it is now."""
        if test_file not in self._files:
            helpers = sorted(
                one
                for one in (_ROOT / "tests").iterdir()
                if one.is_file() and not one.name.startswith("test_")
            )
            chosen = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
            text = (_ROOT / test_file).read_text()
            texts = [_ROOT / one for one in _TEXTS if one in text]
            key = cache.digest(
                *(_ROOT / one for one in _TESTED),
                *helpers,
                _ROOT / test_file,
                *texts,
                machine.compiler(),
                *chosen,
            )
            self._files[test_file] = cache.entry("records", key, lambda work: None) / "outcomes"
        return self._files[test_file]

    def _known(self, test_file: str) -> dict[str, _Record]:
        """Return the outcomes of the tests of a file."""
        file = self._file(test_file)
        lines = file.read_text().splitlines() if file.exists() else []
        return {one.pop("test"): _Record(**one) for one in map(json.loads, lines)}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out the tests that an earlier call has done."""
        known = {file: self._known(file) for file in {_file_of(one.nodeid) for one in items}}
        done = [
            item
            for item in items
            if (found := known[_file_of(item.nodeid)].get(item.nodeid)) and found.done
        ]
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item not in done]
        self._chosen.update(item.nodeid for item in items)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Take the names of the tests that the workers run."""
        self._chosen.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of a test when its last phase ends."""
        if self.worker:
            return
        record = self._running[report.nodeid]
        record.outcome = min(record.outcome, report.outcome, key=_WORST.index)
        record.seconds += report.duration
        if report.when == "teardown":
            del self._running[report.nodeid]
            with self._file(_file_of(report.nodeid)).open("a") as file:
                line = {"test": report.nodeid, "outcome": record.outcome}
                file.write(json.dumps({**line, "seconds": round(record.seconds, 2)}) + "\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Succeed if earlier calls have done everything."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self.worker:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, and write it."""
        if self.worker:
            return
        rows = self.table()
        terminalreporter.section(f"{self.name}, with what earlier calls did")
        terminalreporter.line(f"{'':34}{'kernel':>8}{'minutes':>9}" + _cells(_COLUMNS))
        for (part, line), counts in rows.items():
            minutes = counts["seconds"] / 60
            numbers = _cells(int(counts[one]) for one in _COLUMNS)
            terminalreporter.line(f"{part:34}{line:>8}{minutes:9.1f}{numbers}")
        self.file.parent.mkdir(parents=True, exist_ok=True)
        table = [
            {"part": part, "kernel": line, "minutes": round(counts["seconds"] / 60, 1)}
            | {one: int(counts[one]) for one in _COLUMNS}
            for (part, line), counts in rows.items()
        ]
        self.file.write_text(
            json.dumps({"machine": machine.about(), "parts": table}, indent=1, default=str) + "\n"
        )
        terminalreporter.line(f"The table is in {self.file}.")

    def table(self) -> Mapping[tuple[str, str], Counter[str]]:
        """Return the number of tests with each outcome, and the seconds, by part and kernel."""
        rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        known: dict[str, _Record] = {test: _Record("left") for test in self._chosen}
        for file in sorted((_ROOT / "tests").glob("test_*.py")):
            known |= self._known(str(file.relative_to(_ROOT)))
        for test, record in sorted(known.items()):
            line = _LINE.search(test.partition("::")[2])
            row = rows[Path(_file_of(test)).stem, line[1] if line else ""]
            row[record.outcome] += 1
            row["seconds"] += round(record.seconds)
        return rows


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _cells(words: Iterable[object]) -> str:
    return "".join(f"{word:>9}" for word in words)
