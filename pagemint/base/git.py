# SPDX-License-Identifier: GPL-2.0-only
"""Runs git."""

import os
from pathlib import Path

from pagemint.base.run import run

# A hook of git's, or a script, may have set these for another repository.
_ELSEWHERE = (
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)


def git(directory: Path, *argv: str, **variables: str) -> str:
    """Run git on the repository of a directory, whatever repository it is called from.

    It runs no hooks: git checkout fails if one does, although it has switched the branch.

    Args:
        directory: where it runs.
        argv: its arguments.
        variables: further environment variables.

    Raises:
        Failure: git fails.
    """
    env = _environment() | variables
    command = ["git", "-c", "core.hooksPath=/dev/null", *argv]
    return run(command, cwd=directory, env=env, what=f"git {argv[0]} in {directory}")


def apply(diff: Path, tree: Path, what: str, *options: str) -> None:
    """Apply a diff to a directory that is no repository, exactly or not at all.

    Files are replaced, so a hard link keeps the old contents.

    Args:
        diff: the diff.
        tree: the directory.
        what: the work, for messages.
        options: further ones of git apply.

    Raises:
        Failure: it does not apply. The message begins with `what` and has git's error.
    """
    # Keep git from using a repository above the directory.
    env = environment() | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
    run(["git", "apply", "--whitespace=nowarn", *options, diff], cwd=tree, env=env, what=what)


def environment() -> dict[str, str]:
    """Return an environment in which git has none of the user's or the system's settings."""
    return _environment() | {
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C",
    }


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
