# SPDX-License-Identifier: GPL-2.0-only
"""The list of programs and packages, and a system without apt and dpkg."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_lines import LONG
from stand_ins import Ended, Patch, program

from pagemint.base import packages
from pagemint.trees import sources

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory with links to all programs but apt's and dpkg's, for PATH."""
    made = tmp_path / "bin"
    made.mkdir()
    for folder in map(Path, (*os.environ["PATH"].split(":"), "/usr/sbin", "/sbin")):
        for file in folder.glob("*"):
            there = made / file.name
            if not file.name.startswith(("apt", "dpkg")) and not there.is_symlink():
                there.symlink_to(file)
    return made


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with what scripts/setup reads: it would replace the .venv of this one."""
    made = tmp_path / "checkout"
    for name in ("scripts/setup", "pyproject.toml", "pagemint/__init__.py"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_ROOT / name, made / name)
    shutil.copytree(_ROOT / "pagemint/base", made / "pagemint/base")
    return made


def _run(*argv: str | Path, cwd: Path, **environment: str) -> Ended:
    env = {**os.environ, **environment}
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True)


def test_the_debian_package_depends_on_all_that_a_bench_needs() -> None:
    control = (_ROOT / "debian/control").read_text()
    stanza = control[control.index("Package: pagemint\n") :]
    depends = re.search(r"^Depends: (.*(?:\n .*)*)", stanza, re.MULTILINE)
    assert depends
    there = set(re.split(r",\s*", depends[1]))
    parts = [part for part in packages.parts().values() if part.needs != "guest"]
    assert {part.packages["Debian"] for part in parts} - {"-"} <= there


@pytest.mark.parametrize("manager", ["dnf", "pacman", "zypper", "apt-get"])
def test_the_command_of_the_distribution_is_named(
    manager: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    program(tmp_path / manager, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    remedy = packages.remedy(["gelf.h", "flex"])
    assert re.fullmatch(rf"install them: {manager} \S+ \S*libelf\S* flex", remedy)


def test_setup_without_dpkg_names_programs_and_headers_of_all_distributions(
    path: Path, checkout: Path
) -> None:
    (path / "flex").unlink()
    (path / "gcc").unlink()
    program(path / "gcc", "! grep -q gelf")
    ended = _run("sh", "scripts/setup", cwd=checkout, PATH=str(path))
    assert (ended.returncode, ended.stderr) == (
        1,
        "setup: missing: flex gelf.h; install them (Debian: flex libelf-dev; "
        "Fedora: flex elfutils-libelf-devel; Arch: flex libelf; openSUSE: flex libelf-devel)\n",
    )
    ended = _run("sh", "scripts/setup", "dev", cwd=checkout, PATH=str(path))
    assert ended.returncode == 1
    assert "of Debian; run it there" in ended.stderr


def test_doctor_without_apt_names_no_apt(path: Path) -> None:
    (path / "flex").unlink()
    program = "from pagemint.commands import doctor; [print(check) for check in doctor.checks()]"
    ended = _run(sys.executable, "-c", program, cwd=_ROOT, PATH=str(path))
    assert "Debian: flex" in ended.stdout, ended.stderr
    assert "apt-get install" not in ended.stdout
    assert "bench --ksrc DIR does not need it" in ended.stdout


@pytest.mark.skipif(not LONG, reason="installs and builds for minutes")
@pytest.mark.usefixtures("in_user_cache")
def test_a_bench_runs_without_apt_and_dpkg_from_an_empty_cache(path: Path, tmp_path: Path) -> None:
    tree, clone, home = tmp_path / "own tree", tmp_path / "clone", tmp_path / "empty"
    shutil.copytree(sources.get("7.3").tree, tree, symlinks=True)
    assert _run("git", "clone", "-q", _ROOT, clone, cwd=tmp_path).returncode == 0
    argv = f"--ksrc '{tree}' --workload fsdax --size 1GB --runs 3"
    make = ("make", "bench", f"BENCH_ARGS={argv}")
    ended = _run(*make, cwd=clone, PATH=str(path), XDG_CACHE_HOME=str(home))
    assert ended.returncode == 0, ended.stderr
    assert "using the defconfig" in ended.stderr
    assert "apt-get install" not in ended.stderr
    assert "fsdax" in ended.stdout
    assert "configuration: defconfig with options of pagemint" in ended.stdout
    result = json.loads((clone / "out/bench.json").read_text())
    assert result["kernel"]["config"].startswith("defconfig")
    assert (clone / "out/bench-report/index.html").exists()
    shutil.rmtree(home)
