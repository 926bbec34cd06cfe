# SPDX-License-Identifier: GPL-2.0-only
"""An installed pagemint has all files that it needs, and works from any directory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

_ROOT = Path(__file__).parents[2]


def _run(*argv: str | Path, cwd: Path, stderr: IO[str] | None = None) -> str:
    # The environment must not lead Python to this checkout.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ended = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=stderr or subprocess.PIPE, text=True, cwd=cwd, env=env
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


# scope="module": such a fixture runs before cache_home, so the bench uses the user's cache.
@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a virtual environment, venv, that the wheel was installed into."""
    where = tmp_path_factory.mktemp("installed")
    _run(sys.executable, "-m", "venv", "venv", cwd=where)
    pip: list[str | Path] = [where / "venv/bin/python", "-m", "pip", "-q"]
    _run(*pip, "wheel", "--no-deps", "--wheel-dir", where, _ROOT, cwd=where)
    (wheel,) = where.glob("pagemint-*.whl")
    _run(*pip, "install", wheel, cwd=where)
    return where


@pytest.fixture(scope="module")
def bench(installed: Path) -> Path:
    """The result of a short bench, made without the extra `report`."""
    out = installed / "bench.json"
    argv = ["bench", "--quick", "--size", "1GB", "--runs", "3", "--json", str(out)]
    screen = installed / "screen"
    with screen.open("w") as file:
        _run(installed / "venv/bin/pagemint", *argv, cwd=installed, stderr=file)
    return out


def test_the_wheel_has_the_sources_and_nothing_that_was_built(installed: Path) -> None:
    program = "from pagemint.base import files; print(files.KERNEL.parent)"
    shipped = Path(_run(installed / "venv/bin/python", "-c", program, cwd=installed).strip())
    assert shipped.is_relative_to(installed)
    listed = _run("git", "ls-files", "kernel", "stock", "docs/results", cwd=_ROOT)
    tracked = {name for name in listed.splitlines() if (_ROOT / name).exists()}
    names = {
        str(path.relative_to(shipped))
        for path in shipped.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert tracked <= names
    assert not [name for name in names if name.endswith((".o", ".ko", ".cmd", ".mod"))]


def test_a_bench_runs_from_another_directory(bench: Path) -> None:
    result = json.loads(bench.read_text())
    assert {row["case"]["workload"] for row in result["rows"]} >= {"fsdax", "boot"}


def test_without_the_extra_the_bench_says_how_to_get_the_page(installed: Path, bench: Path) -> None:
    last = (installed / "screen").read_text().splitlines()[-1]
    assert last == (
        "no page of plots: jinja2 is not installed; "
        "pip install 'pagemint[report]', then: pagemint report RESULT.json -o DIR"
    )
    assert not (installed / "bench-report").exists()
    (wheel,) = installed.glob("pagemint-*.whl")
    pip = (installed / "venv/bin/python", "-m", "pip", "-q")
    _run(*pip, "install", f"{wheel}[report]", cwd=installed)
    _run(installed / "venv/bin/pagemint", "report", bench, "-o", "page", cwd=installed)
    assert (installed / "page/index.html").exists()
