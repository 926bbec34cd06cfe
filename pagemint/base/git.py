# SPDX-License-Identifier: GPL-2.0-only
"""Runs git with our settings: the user's must not change trees, branches or mails."""

import os
from functools import cache as once
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.run import run

# A hook of git's, or a script, may have set these for another repository.
_ELSEWHERE = (
    *("GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE"),
)
# The variables of git's that stay: the identity, where git is, and where it looks for repositories.
_KEPT = (
    *("GIT_AUTHOR_DATE", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME"),
    *("GIT_COMMITTER_DATE", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME"),
    *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH"),
)
_ISOLATED = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TEMPLATE_DIR": "",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# These also override the settings of a repository. Git reads attributes and ignored names from
# files in the user's home even without any setting.
_SETTINGS = {
    "commit.gpgSign": "false",
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.eol": "lf",
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "maintenance.auto": "false",
}


def git(directory: Path, *argv: str, **variables: str) -> str:
    """Run git on the repository of a directory, in the environment of environment().

    Args:
        directory: where it runs.
        argv: its arguments.
        variables: further environment variables.

    Raises:
        Failure: git fails.
    """
    env = environment() | variables
    return run(["git", *argv], cwd=directory, env=env, what=f"git {argv[0]} in {directory}")


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
    """Return an environment in which git, or a program that runs it, has our settings alone.

    The settings of the user and the system, hooks, templates, and the repository that a caller
    named do not count. A repository's own settings do, but for those that change files or run
    programs.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not name.startswith("GIT_")
    }
    # Only the user knows which repositories of others are safe.
    settings = [*_SETTINGS.items(), *(("safe.directory", path) for path in _safe_directories())]
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings):
        numbered |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return kept | _ISOLATED | numbered


def identity(directory: Path) -> dict[str, str]:
    """Return variables with the author and committer of commits that the user makes in a directory.

    Raises:
        Failure: git does not know them.
    """
    variables: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        try:
            ident = _as_user(directory, "var", f"GIT_{role}_IDENT")
        except Failure as failure:
            raise Failure(
                f"git does not know who signs the patches off ({failure.message})",
                "set user.name and user.email with git config",
            ) from failure
        name, email = ident.rsplit("> ", 1)[0].rsplit(" <", 1)
        variables |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email}
    return variables


@once
def _safe_directories() -> tuple[str, ...]:
    try:
        listed = _as_user(Path("/"), "config", "--null", "--get-all", "safe.directory")
    except Failure:
        return ()  # there are none, or git cannot read the user's settings
    return tuple(listed.split("\0")[:-1])


def _as_user(directory: Path, *argv: str) -> str:
    """Run git with the user's own settings."""
    env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    return run(["git", *argv], cwd=directory, env=env, what=f"git {argv[0]} in {directory}")
