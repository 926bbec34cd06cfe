# SPDX-License-Identifier: GPL-2.0-only
"""Makes a git branch for each topic in a kernel tree."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pagemint.base import cache
from pagemint.base.errors import Failure
from pagemint.base.git import git, identity
from pagemint.base.progress import step
from pagemint.base.run import interruption_put_off, run
from pagemint.trees import patches, sources
from pagemint.trees.patches import Patch, Topic
from pagemint.trees.sources import Source

_BASE = "base"  # the name of the unpatched tree in those of branches


def copied(source: Source, tree: Path) -> None:
    """Copy a source to a new directory.

    Raises:
        Failure: the directory cannot be written.
    """
    try:
        tree.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=f"{tree.name}-", dir=tree.parent) as name,
            step(f"copying Linux {source.version} to {tree}"),
        ):
            run(["cp", "-a", source.tree, Path(name) / "linux"], what=f"copying {source.tree}")
            (Path(name) / "linux").rename(tree)
    except OSError as error:
        raise Failure(f"cannot write {tree}: {error.strerror}", "name another --tree") from error


def commit(tree: Path, chosen: Sequence[Topic] | None = None, line: str | None = None) -> list[str]:
    """Make a branch for each topic in a kernel tree.

    The first branch is that of the unpatched tree. The others have one commit for each patch, on
    top of the topic before; that of a topic beside the stack stands on those that it needs. The
    cover letter of a topic is its branch's description, where git and b4 look for it. A directory
    that is not a git checkout becomes one, with all its files in a first commit. A failure leaves
    the tree as it was.

    Args:
        tree: the directory of the kernel tree.
        chosen: the topics, each of which may have no patches for the line; None stands for all.
        line: the kernel line whose patches to take; None stands for the line of the tree.

    Returns:
        the names of the branches. The last one is checked out: the last of the stack for all.

    Raises:
        Failure: the tree has uncommitted changes, a branch exists already, git has no identity
            for the commits, or a patch does not apply exactly.
    """
    if tree.resolve().is_relative_to(cache.root().resolve()):
        raise Failure(f"{tree} is in pagemint's own cache", "copy it somewhere else first")
    source = sources.from_tree(tree)
    line = patches.nearest_line(line or source.line)
    series = patches.by_topic(line, patches.every_topic() if chosen is None else chosen)
    last = [*(series if chosen else patches.by_topic(line))][-1]
    names = [_BASE, *(name for name in series if name != last), last]
    branches = {name: f"pagemint-{line}-{name}" for name in names}
    who = identity(tree)
    fresh = not (tree / ".git").exists()
    if not fresh and git(tree, "status", "--porcelain", "--untracked-files=no"):
        raise Failure(f"{tree} has uncommitted changes", "commit or stash them first")
    for branch in () if fresh else branches.values():
        if git(tree, "branch", "--list", branch):
            raise Failure(
                f"{tree} has a branch {branch} already",
                f"rename it: git -C {tree} branch -m {branch} old-{branch}",
            )
    with step(f"trying the patches on Linux {source.version}"):
        alone = (patches.topics([name]) for name in series.keys() & patches.beside())
        for some in (chosen, *alone):
            patches.apply(tree, line, some, check=True)
    start = _BASE if fresh else _checked_out(tree)
    try:
        if fresh:
            _make_repository(tree, f"Linux {source.version}", who)
        heads = _commit_all(tree, series, who)
        for name, branch in branches.items():
            git(tree, "branch", "-q", branch, heads[name])
            if name == _BASE:
                continue
            # The second setting tells b4 that the description is the cover letter.
            description = (f"branch.{branch}.description", patches.cover(line, name))
            strategy = (f"branch.{branch}.b4-prep-cover-strategy", "branch-description")
            for setting in (description, strategy):
                git(tree, "config", "--replace-all", *setting)
        git(tree, "checkout", "-q", branches[last])
    except BaseException:
        with interruption_put_off():
            _take_back(tree, start, branches.values())
            if fresh:
                shutil.rmtree(tree / ".git", ignore_errors=True)
        raise
    return list(branches.values())


def _checked_out(tree: Path) -> str:
    """Return the branch that is checked out, or the commit if there is none."""
    branch = git(tree, "rev-parse", "--abbrev-ref", "HEAD").strip()
    return git(tree, "rev-parse", "HEAD").strip() if branch == "HEAD" else branch


def _make_repository(tree: Path, message: str, who: dict[str, str]) -> None:
    """Make `tree` a git repository with all its files in one commit."""
    with step(f"committing {message} as the base"):
        git(tree, "init", "-q", "-b", _BASE)
        git(tree, "add", "-A", "--force")
        git(tree, "commit", "-q", "-m", message, **who)


def _commit_all(
    tree: Path, series: Mapping[str, Sequence[Patch]], who: dict[str, str]
) -> dict[str, str]:
    """Commit the patches of each topic, on no branch, and return the last commit of each."""
    needs = {topic.name: topic.needs for topic in patches.every_topic()}
    beside = patches.beside()
    heads = {_BASE: git(tree, "rev-parse", "HEAD").strip()}
    with step("committing the patches", len(series)) as advance:
        git(tree, "checkout", "-q", "--detach")
        for name, some in series.items():
            if name in beside:
                git(tree, "checkout", "-q", heads[needs[name][-1]])
            git(tree, "am", "-q", *(str(patch.mail) for patch in some), **who)
            heads[name] = git(tree, "rev-parse", "HEAD").strip()
            advance(1)
    return heads


def _take_back(tree: Path, start: str, branches: Iterable[str]) -> None:
    """Check out what was there before, and delete branches."""
    deleted = (("branch", "-q", "-D", branch) for branch in branches)
    for argv in (("am", "--quit"), ("checkout", "-q", "-f", start), *deleted):
        with suppress(Failure):  # it did not come to that
            git(tree, *argv)
