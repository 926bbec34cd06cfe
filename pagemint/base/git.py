# SPDX-License-Identifier: GPL-2.0-only
"""Runs git."""

import os
from collections.abc import Mapping
from pathlib import Path

from pagemint.base.run import run


def git(directory: Path, *argv: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a directory, with a whole environment if it is not this one's.

    Raises:
        Failure: git fails.
    """
    return run(["git", *argv], cwd=directory, env=env, what=f"git {argv[0]} in {directory}")


def apply(diff: Path, tree: Path, what: str) -> None:
    """Apply a diff to a directory that is no repository, exactly or not at all.

    Files are replaced, so a hard link keeps the old contents.

    Raises:
        Failure: it does not apply. The message begins with `what` and has git's error.
    """
    # Keep git from using a repository above the directory.
    env = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent), "LC_ALL": "C"}
    run(["git", "apply", "--whitespace=nowarn", diff], cwd=tree, env=env, what=what)
