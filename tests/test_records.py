# SPDX-License-Identifier: GPL-2.0-only
"""A second call of make check-vm leaves out what the first has done."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from records import Records

from pagemint.trees import patches as steps

_TEST = "tests/test_sizes.py::test_format"


def _records(work: Path) -> Records:
    return Records("check-vm", work / "table.json")


def _report(test: str, when: str, outcome: str) -> pytest.TestReport:
    return pytest.TestReport(
        test,
        (test.partition("::")[0], 1, ""),
        {},
        outcome,  # type: ignore[arg-type]
        None,
        when,  # type: ignore[arg-type]
        duration=30,
    )


@pytest.mark.parametrize(
    ("call", "teardown", "column"),
    [("passed", "passed", 1), ("failed", "passed", 2), ("passed", "failed", 2)],
)
def test_the_worst_phase_of_a_test_counts(
    call: str, teardown: str, column: int, cache_home: Path, tmp_path: Path
) -> None:
    records = _records(tmp_path)
    for when, outcome in (("setup", "passed"), ("call", call), ("teardown", teardown)):
        records.pytest_runtest_logreport(_report(_TEST, when, outcome))
    ((part, counts),) = _records(tmp_path).table().items()
    assert part == ("test_sizes", "")
    assert counts == {("passed", "failed")[column - 1]: 1, "seconds": 90}


@pytest.mark.parametrize(
    ("test", "kernel"),
    [("test_vm_edges.py::test_kexec", steps.lines()[-1]), ("test_vm.py::test_it[6.12]", "6.12")],
)
def test_a_row_names_the_kernel_of_its_guests(
    test: str, kernel: str, cache_home: Path, tmp_path: Path
) -> None:
    records = _records(tmp_path)
    records.chosen.add(f"tests/{test}")
    assert list(records.table()) == [(test.partition(".")[0], kernel)]


def test_a_test_that_failed_is_run_again_alone(
    cache_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEMINT_VM", "1")
    records = _records(tmp_path)
    listed = _pytest("--collect-only", "tests/test_sizes.py")
    tests = [line for line in listed.splitlines() if line.startswith("tests/")]
    assert _TEST in tests
    for test in tests:
        outcome = "failed" if test == _TEST else "passed"
        records.pytest_runtest_logreport(_report(test, "teardown", outcome))
    argv = ["tests/test_sizes.py", "--table", str(tmp_path / "table.json")]
    said = _pytest(*argv)
    assert f"1 passed, {len(tests) - 1} deselected" in said
    assert f"{len(tests)} deselected" in _pytest(*argv)
    (part,) = json.loads((tmp_path / "table.json").read_text())["parts"]
    assert part["passed"] == len(tests)


def _pytest(*argv: str) -> str:
    """Run pytest as make check-vm does, and return its output."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *argv]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return ended.stdout
