# SPDX-License-Identifier: GPL-2.0-only
"""Stand-ins for what tests need of a machine, and runs of git and of pagemint's command line."""

import difflib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]
Ended = subprocess.CompletedProcess[str]
Refused = Callable[..., str]
"""The type of the fixture refused."""

WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada Tester"), ("EMAIL", "ada@example.org"))
}
"""Variables with which git knows who commits."""

ARGV = (sys.executable, "-c", "import sys; from pagemint.cli import main; sys.exit(main())")
"""The program, to be followed by arguments."""

_STAGE = re.compile(r" \.\.\.( \d+\.\d s)?$")


def pagemint(*argv: str | Path, **environment: str) -> Ended:
    """Run `pagemint` with arguments and further variables, and return what it said."""
    env = {**os.environ, **environment}
    return subprocess.run([*ARGV, *argv], capture_output=True, text=True, env=env)


def wait_until(holds: Callable[[], bool], seconds: float = 5) -> None:
    """Wait until a condition holds, but not longer than so many seconds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.005)


def without_progress(stderr: str) -> list[str]:
    """Return the lines, without those of stages that take long on a busy machine."""
    return [line for line in stderr.splitlines() if not _STAGE.search(line)]


def program(path: Path, script: str) -> Path:
    """Write a program in the shell, and return it."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def git(tree: Path, *argv: str | Path, **variables: str) -> str:
    """Run git in a tree with further variables, and return what it said."""
    env = os.environ | variables
    ended = subprocess.run(["git", *argv], cwd=tree, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, f"git {argv}: {ended.stderr}"
    return ended.stdout


def diff_of(path: str, old: str, new: str) -> str:
    """Return the patch that makes `new` of `old`, the contents of a file; "" is no file."""
    before = f"a/{path}" if old else "/dev/null"
    lines = [text.splitlines(keepends=True) for text in (old, new)]
    return "".join(difflib.unified_diff(lines[0], lines[1], before, f"b/{path}"))


def contents(tree: Path) -> dict[str, bytes]:
    """Return every file in a tree, without those of git, by its path."""
    return {
        str(path.relative_to(tree)): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }
