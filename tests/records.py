# SPDX-License-Identifier: GPL-2.0-only
"""Lets make check-vm and make check-long go on where an earlier call stopped.

The outcome of each test is kept in the cache as soon as it is known. Its key is a digest, taken
when the call begins, of the files that the test may use. A later call leaves out the tests that
have passed. The end of a call prints a table of all outcomes so far, and writes it to a file.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from pagemint.base import cache, journal, machine
from pagemint.base.git import git
from pagemint.trees import patches as steps

_ROOT = Path(__file__).resolve().parent.parent
# The code that any test may run, and the results that texts are made of.
_TESTED = (
    *("pagemint", "kernel", "native", "guest", "module", "scripts", "debian", "pyproject.toml"),
    ":(glob)docs/results/*.json",
)
# Any test file may import or read these. Only check-mutants reads mutants.toml.
_SUPPORT = ("tests", ":!tests/test_*.py", ":!tests/mutants.toml")
_TEXTS = ("docs", "README.md", "CONTRIBUTING.md", "Makefile")  # tested if a test file names them
_VARIABLES = ("PAGEMINT_VM", "PAGEMINT_LONG")
_LINE = re.compile(r"(?<![\d.])(?:linux-)?([67]\.\d+)(?![\d.])")
_WORST = ("failed", "skipped", "passed")  # worst first: the worst phase decides the outcome
_COLUMNS = ("passed", "failed", "skipped", "left")


@dataclass
class _Record:
    """A test's outcome, and the seconds of its phases."""

    outcome: str = "passed"
    seconds: float = 0


class LeaveOut:
    """A plugin of pytest that leaves out tests.

    Attributes:
        done: the tests to leave out.
        chosen: the other ones, once they are collected.
    """

    def __init__(self, done: Collection[str]) -> None:
        self.done = done
        self.chosen: set[str] = set()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out the tests that an earlier call has done."""
        config.hook.pytest_deselected(items=[one for one in items if one.nodeid in self.done])
        items[:] = [one for one in items if one.nodeid not in self.done]
        self.chosen.update(item.nodeid for item in items)


class Records(LeaveOut):
    """The plugin for the main process: it also keeps the outcomes, and prints the table."""

    def __init__(self, name: str, file: Path) -> None:
        """Read the outcomes of earlier calls.

        Args:
            name: the call: check-vm or check-long.
            file: the file for the table.
        """
        self._name = name
        self._file = file
        common = [_digest(_TESTED), _digest(_SUPPORT)]
        self._files = {}
        self._known: dict[str, _Record] = {}
        for test_file in sorted(_ROOT.glob("tests/test_*.py")):
            name = str(test_file.relative_to(_ROOT))
            kept = _kept(test_file, common)
            self._files[name] = kept
            for one in journal.read(kept):
                test = one.pop("test")
                self._known[test] = _Record(**one)
        self._running: dict[str, _Record] = defaultdict(_Record)
        done = {test for test, one in self._known.items() if one.outcome == "passed"}
        super().__init__(done)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker which tests to leave out."""
        node.workerinput["done"] = sorted(self.done)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Take the names of the tests that the workers run."""
        self.chosen.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of a test when its last phase ends."""
        record = self._running[report.nodeid]
        record.outcome = min(record.outcome, report.outcome, key=_WORST.index)
        record.seconds += report.duration
        if report.when == "teardown":
            self._known[report.nodeid] = self._running.pop(report.nodeid)
            line: dict[str, Any] = {"test": report.nodeid, "outcome": record.outcome}
            line["seconds"] = round(record.seconds, 2)
            journal.add(self._files[_file_of(report.nodeid)], line)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Succeed if earlier calls have done everything."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.done:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, and write it."""
        rows = self.table()
        terminalreporter.section(f"{self._name}, with what earlier calls did")
        terminalreporter.line(f"{'':34}{'kernel':>8}{'minutes':>9}" + _cells(_COLUMNS))
        for (part, line), counts in rows.items():
            minutes = counts["seconds"] / 60
            numbers = _cells(int(counts[one]) for one in _COLUMNS)
            terminalreporter.line(f"{part:34}{line:>8}{minutes:9.1f}{numbers}")
        table = [
            {"part": part, "kernel": line, "minutes": round(counts["seconds"] / 60, 1)}
            | {one: int(counts[one]) for one in _COLUMNS}
            for (part, line), counts in rows.items()
        ]
        commit = git(_ROOT, "describe", "--always", "--dirty").strip()
        body = {"commit": commit, "machine": machine.about(), "parts": table}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(body, indent=1, default=str) + "\n")
        terminalreporter.line(f"The table is in {self._file}.")

    def table(self) -> Mapping[tuple[str, str], Counter[str]]:
        """Return the number of tests with each outcome, and the seconds, by part and kernel."""
        rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        known = {test: _Record("left") for test in self.chosen} | self._known
        newest = steps.lines()[-1]
        for test, record in sorted(known.items()):
            part = Path(_file_of(test)).stem
            line = _LINE.search(test.partition("::")[2])
            # Guests have the newest kernel line if a test names no other.
            unnamed = newest if part.startswith("test_vm") else ""
            row = rows[part, line[1] if line else unnamed]
            row[record.outcome] += 1
            row["seconds"] += round(record.seconds)
        return rows


def _digest(names: Iterable[str]) -> str:
    """Return a digest of the files of the checkout that git does not ignore."""
    listed = git(_ROOT, "ls-files", "-z", "-co", "--exclude-standard", "--", *names)
    files = [_ROOT / one for one in sorted(listed.split("\0")) if (_ROOT / one).is_file()]
    return cache.digest(*(part for one in files for part in (str(one.relative_to(_ROOT)), one)))


def _kept(test_file: Path, common: Iterable[str]) -> Path:
    """Return the file with the outcomes of the tests of a file."""
    text = test_file.read_text()
    texts = [one for one in _TEXTS if one in text]
    chosen = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    key = cache.digest(
        *common, test_file, _digest(texts) if texts else "", machine.compiler(), *chosen
    )
    return cache.entry("records", key, lambda work: None) / "outcomes"


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _cells(words: Iterable[object]) -> str:
    return "".join(f"{word:>9}" for word in words)
