# SPDX-License-Identifier: GPL-2.0-only
"""A bench of a new workload: the documented example runs; a wrong one ends in one line."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import fake_tree
import pytest
from stand_ins import Ended, without_progress

from pagemint.base import files

_C = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/jump_label.h>

#include "native.h"

NATIVE_OBJECTS(%s);

extern unsigned long native_no_such_symbol;
DECLARE_STATIC_KEY_FALSE(native_no_such_key);

/* faulty tree= what=: answers ns=. */
NATIVE_COMMAND(faulty)
{
	unsigned long what = native_number(r, "what");

	if (what == 1 && static_branch_unlikely(&native_no_such_key))
		what = 0;
	if (what == 2)
		what = native_no_such_symbol;
	native_answer(r, "ns", 1 + what);
}
"""

_PYTHON = """
from functools import partial

from pagemint.bench.workload import Task, Timed, Workload
from pagemint.results.rows import Case


def _run(command, arguments, wanted, host):
    return Timed(int(host.ask(command, tree="base", **arguments)[wanted]))


def _tasks(name, calls, asked):
    for call in calls:
        yield Task(Case(name, 4096, 1), asked.plain[0], partial(_run, *call))


WORKLOADS = [
    Workload(name, lambda asked: 4096, lambda host, asked: 4096, partial(_tasks, name, calls),
             sized=False)
    for name, calls in {
        "right": [("faulty", {"what": 0}, "ns")],
        "empty": [],
        "command": [("unheard", {"what": 0}, "ns")],
        "lacking": [("faulty", {}, "ns")],
        "surplus": [("faulty", {"what": 0, "why": 1}, "ns")],
        "wrong": [("faulty", {"what": "this"}, "ns")],
        "answer": [("faulty", {"what": 0}, "time")],
        "key": [("faulty", {"what": 1}, "ns")],
        "symbol": [("faulty", {"what": 2}, "ns")],
    }.items()
]
"""

# A bench with more workloads, and with another directory for the C of the host.
_PROGRAM = """
import sys
from pathlib import Path
from pagemint import cli
from pagemint.base import files
from pagemint.bench import workloads
files.BENCH = Path(sys.argv[1])
workloads.__path__.append(sys.argv[2])
sys.exit(cli.main(["bench", "--kernel", *sys.argv[3:]]))
"""


pytestmark = pytest.mark.usefixtures("in_user_cache")


def _bench(
    scratch: Path, name: str, c: str = _C % '"mm/mm_init.o"', python: str = _PYTHON
) -> Ended:
    """Run a bench of a workload; its result is in scratch/result.json."""
    native, modules = scratch / "native", scratch / "workloads"
    shutil.copytree(files.BENCH, native)
    (native / "workloads/faulty.c").write_text(c)
    modules.mkdir()
    (modules / "faulty.py").write_text(python)
    argv: list[str | Path] = [native, modules, fake_tree.LINE, "--workload", name, "--runs", "1"]
    argv += ["--no-report", "--json", scratch / "result.json"]
    command = [sys.executable, "-c", _PROGRAM, *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


def _refusal(ended: Ended) -> str:
    """Return the line on which a bench ended; lines about its progress may precede it."""
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    *lines, last = without_progress(ended.stderr)
    assert [line for line in lines if "plain returns" not in line] == []
    return last


def test_the_documented_example_is_timed(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/developing.md").read_text()
    c, python = (re.findall(f"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("c", "python"))
    ended = _bench(tmp_path, "clear", c[0], python[0])
    assert ended.returncode == 0, ended.stderr
    assert any(line.startswith("clear ") for line in ended.stdout.splitlines())
    rows = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert [row["tree"] for row in rows] == ["base", "patched"]
    assert {row["case"]["workload"] for row in rows} == {"clear"}


_COMMAND = "; compare it with its NATIVE_COMMAND() in pagemint/bench/"
_STAND_IN = (
    "; add one to pagemint/bench/host/stubs.c, or the object that defines it to NATIVE_OBJECTS()"
)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "pagemint: the workload empty has no tasks; its tasks() must yield some"),
        ("command", f"'unheard tree=base what=0': the command unheard is unknown{_COMMAND}"),
        ("lacking", f"the command faulty lacks the argument what{_COMMAND}"),
        ("surplus", f"the command faulty has no argument why{_COMMAND}"),
        ("wrong", f"the command faulty takes a number for what{_COMMAND}"),
        ("answer", "answer to 'faulty' has no 'time'; it has: ns; compare the calls of native_"),
        ("key", f"the static key native_no_such_key has no stand-in{_STAND_IN}"),
        ("symbol", f"native_no_such_symbol has no stand-in{_STAND_IN}"),
    ],
)
def test_a_fault_of_a_workload_is_one_line(tmp_path: Path, name: str, message: str) -> None:
    assert message in _refusal(_bench(tmp_path, name))


def test_an_object_without_a_source_is_named(tmp_path: Path) -> None:
    refusal = _refusal(_bench(tmp_path, "right", _C % '"mm/mm_init.o", "mm/no_such.o"'))
    assert "NATIVE_OBJECTS() names mm/no_such.o, and Linux " in refusal
    assert refusal.endswith("; give the path of a .c or .S file of the kernel, with the suffix .o")


def test_two_workloads_of_one_name_are_refused(tmp_path: Path) -> None:
    python = _PYTHON.replace('"right"', '"fsdax"')
    refusal = _refusal(_bench(tmp_path, "fsdax", python=python))
    assert "device.py and faulty.py in pagemint/bench/workloads/ both have a " in refusal
    assert refusal.endswith("workload 'fsdax'; rename one")
