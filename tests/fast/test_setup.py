# SPDX-License-Identifier: GPL-2.0-only
"""The script that makes the environment, and the imports, which keep contracts of the project."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from stand_ins import Ended, program

_ROOT = Path(__file__).parents[2]
_LOCKS = sorted((_ROOT / "scripts").glob("requirements*.txt"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with only the script, and stand-ins for the machine's programs in bin/."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(_ROOT / "scripts/setup", tmp_path / "scripts/setup")
    for file in ("pyproject.toml", *(f"scripts/{path.name}" for path in _LOCKS)):
        shutil.copy(_ROOT / file, tmp_path / file)
    (tmp_path / "pagemint/base").mkdir(parents=True)
    for name in ("__init__.py", "base/__init__.py", "base/packages.py", "base/packages.txt"):
        shutil.copy(_ROOT / "pagemint" / name, tmp_path / "pagemint" / name)
    (tmp_path / "bin").mkdir()
    for name in ("cat", "cksum", "dirname", "mktemp", "rm"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    _stand_in(tmp_path, "id", "echo 1000")
    _stand_in(tmp_path, "sudo", "exit 1")
    lacks = '*flex*) ;; *libelf-dev*) echo " not-installed ";;'
    _stand_in(tmp_path, "dpkg-query", f'case "$*" in {lacks} *) echo " installed ";; esac')
    _stand_in(tmp_path, "python3", f'exec {sys.executable} "$@"')
    return tmp_path


def _stand_in(checkout: Path, name: str, body: str) -> None:
    program(checkout / "bin" / name, body)


def _setup(checkout: Path, *argv: str) -> Ended:
    env = {**os.environ, "PATH": str(checkout / "bin")}
    command = ["/bin/sh", str(checkout / "scripts/setup"), *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_without_root_it_prints_the_one_command(checkout: Path) -> None:
    ended = _setup(checkout)
    assert (ended.returncode, ended.stdout) == (1, "")
    command = "sudo apt-get install --no-install-recommends flex libelf-dev"
    assert ended.stderr == f"setup: packages are missing; run: {command}\n"


def test_with_sudo_it_updates_and_installs_only_what_is_missing(checkout: Path) -> None:
    _stand_in(checkout, "sudo", '[ "$1" = -n ] && shift; "$@"')
    _stand_in(checkout, "true", "exit 0")
    _stand_in(checkout, "env", 'shift; "$@"')
    _stand_in(checkout, "apt-get", f'echo "$*" >> {checkout}/calls')
    _stand_in(checkout, "python3", 'case "$*" in *-V*) echo P;; *venv*.venv*) exit 1;; esac')
    ended = _setup(checkout)
    calls = (checkout / "calls").read_text().splitlines()
    assert calls[0] == "-qq update"
    assert calls[1].endswith("install flex libelf-dev")
    assert len(calls) == 2
    assert ended.returncode == 1  # the stand-in makes no .venv
    assert "run this again" in ended.stderr


def test_a_second_run_installs_only_what_a_new_lock_file_has(checkout: Path) -> None:
    _stand_in(checkout, "dpkg-query", "echo ' installed '")
    (checkout / ".venv").mkdir()
    pip = f'echo "$*" >> {checkout}/calls'
    make = f"mkdir -p .venv/bin; printf '#!/bin/sh\\n{pip}\\n' > .venv/bin/python"
    (checkout / "make-venv").write_text(f"{make}; chmod +x .venv/bin/python\n")
    for name in ("mkdir", "chmod"):
        (checkout / "bin" / name).symlink_to(shutil.which(name) or name)
    _stand_in(checkout, "python3", f'case "$*" in "-m venv"*) . {checkout}/make-venv;; esac')
    assert _setup(checkout).returncode == 0
    again = _setup(checkout)
    assert (again.returncode, again.stderr) == (0, "")
    calls = (checkout / "calls").read_text().splitlines()
    assert [" --require-hashes " in call for call in calls] == [True, True, False]
    assert calls[-1].endswith("--no-deps --no-build-isolation -e .")
    assert _setup(checkout, "dev").returncode == 0
    calls = (checkout / "calls").read_text().splitlines()[3:]
    assert calls[1].endswith("-r scripts/requirements.txt -r scripts/requirements-dev.txt")
    assert _setup(checkout).stderr == ""  # dev holds base
    (checkout / "scripts/requirements.txt").write_text("rich==15.0.1\n")
    assert "making .venv" in _setup(checkout).stderr


def test_the_lock_files_have_what_the_project_asks_for() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    locked: dict[str, Version] = {}
    for path in _LOCKS:
        for name, version in re.findall(r"^(\S+)==(\S+)", path.read_text(), re.MULTILINE):
            assert name not in locked, f"{path.name} repeats {name}"
            locked[name] = Version(version)
    wanted = [*project["dependencies"], *(each for extra in extras.values() for each in extra)]
    for requirement in map(Requirement, wanted):
        version = locked[requirement.name.lower()]
        assert version in requirement.specifier, "resolve the packages again: make lock"


def test_old_python_and_an_unknown_argument_are_refused(checkout: Path) -> None:
    _stand_in(checkout, "dpkg-query", "echo ' installed '")
    _stand_in(checkout, "python3", "exit 1")
    ended = _setup(checkout)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "older than 3.11" in ended.stderr
    ended = _setup(checkout, "production")
    assert ended.returncode == 1
    assert "unknown argument" in ended.stderr


def test_imports_keep_the_contracts() -> None:
    argv: list[str | Path] = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    ended = subprocess.run(argv, capture_output=True, text=True, cwd=_ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 kept, 0 broken" in ended.stdout
