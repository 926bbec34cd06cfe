# SPDX-License-Identifier: GPL-2.0-only
"""Applies topics to a tree as branches, or writes them as mails."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pagemint.base import cache, disk
from pagemint.base.errors import Failure
from pagemint.base.git import git, identity
from pagemint.base.progress import step
from pagemint.base.run import interruption_put_off
from pagemint.trees import patches, sources
from pagemint.trees.patches import Change, Topic


def commit(
    tree: Path,
    chosen: Sequence[Topic] | None = None,
    line: str | None = None,
) -> list[str]:
    """Make a branch for each topic in a kernel tree, each on top of the one before.

    A branch has one commit for each step. The last branch is checked out. The cover letter of a
    topic is its branch's description, where git and b4 look for it. A directory that is not a git
    checkout becomes one, with all its files in a first commit. Nothing in the tree changes until
    the branches are complete.

    Args:
        tree: the directory of the kernel tree.
        chosen: the topics; None stands for all.
        line: the kernel line whose edits to take; None stands for the line of the tree.

    Returns:
        the names of the branches, in the order of the topics.

    Raises:
        Failure: the tree has uncommitted changes, a branch exists already, git has no identity
            for the commits, or an edit does not apply exactly.
    """
    if tree.resolve().is_relative_to(cache.root().resolve()):
        raise Failure(f"{tree} is in pagemint's own cache", "copy it somewhere else first")
    source = sources.from_tree(tree)
    line = patches.nearest_line(line or source.line)
    chosen = patches.with_mainline(line, chosen)
    who = identity(tree)
    fresh = not (tree / ".git").exists()
    branches = {topic.name: f"pagemint-{line}-{topic.name}" for topic in chosen}
    if not fresh and git(tree, "status", "--porcelain", "--untracked-files=no"):
        raise Failure(f"{tree} has uncommitted changes", "commit or stash them first")
    for branch in () if fresh else branches.values():
        if git(tree, "branch", "--list", branch):
            raise Failure(
                f"{tree} has a branch {branch} already",
                f"delete or rename it: git branch -m {branch}",
            )
    with step(f"trying the topics on Linux {source.version}"):
        changes = patches.plan(tree, line, chosen)
    # A topic may have no steps for this line.
    filled = list(dict.fromkeys(change.step.topic for change in changes))
    made = [branches[name] for name in filled]
    try:
        if fresh:
            _make_repository(tree, f"Linux {source.version}", who)
        heads = _commit_all(tree, changes, who)
        with interruption_put_off():
            _switch(tree, {branches[name]: (heads[name], patches.cover(name)) for name in filled})
            fresh = False  # from here on the new repository stays
    except BaseException:
        if fresh:
            shutil.rmtree(tree / ".git", ignore_errors=True)
        raise
    return made


def mails(
    source: sources.Source,
    output: Path,
    chosen: Sequence[Topic] | None = None,
) -> list[Path]:
    """Write topics for a source as mails, a directory for each in `output`, cover letter first.

    Args:
        source: the source that the mails apply to.
        output: a new directory, or an empty one.
        chosen: the topics; None stands for all.

    Returns:
        the mails in the order in which they apply.

    Raises:
        Failure: `output` is not empty, git has no identity, or an edit does not apply exactly.
    """
    who = check_output(output)
    changes = patches.plan(source.tree, source.line, chosen)
    with tempfile.TemporaryDirectory(prefix="pagemint-") as name:
        scratch = Path(name)
        repository, written = scratch / "tree", scratch / "mails"
        repository.mkdir()
        for path in {path for change in changes for path in change.contents}:
            if (source.tree / path).exists():
                (repository / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source.tree / path, repository / path)
        _make_repository(repository, f"Linux {source.version}", who)
        before = "base"
        for topic, head in _commit_all(repository, changes, who).items():
            _switch(repository, {topic: (head, patches.cover(topic))})
            cover = ("--cover-letter", "--cover-from-description=subject")
            target = ("-o", str(written / topic), f"{before}..{topic}")
            git(repository, "format-patch", "-q", *cover, *target, **who)
            before = topic
        try:
            with interruption_put_off():
                output.mkdir(parents=True, exist_ok=True)
                folders = list(dict.fromkeys(change.step.topic for change in changes))
                for folder in folders:
                    shutil.move(written / folder, output / folder)
                return [mail for folder in folders for mail in sorted((output / folder).iterdir())]
        except OSError as error:
            raise Failure(f"cannot write {output}: {error.strerror}", "name another one") from error


def check_output(output: Path) -> dict[str, str]:
    """Check that the directory for mails is empty and writable, and that git has an identity.

    Returns:
        variables with which the mails are from the committer, who signs them off.

    Raises:
        Failure: the directory is not empty or cannot be written, or git has no identity.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise Failure(f"{output} is not an empty directory", "name a new one")
    disk.check_directory(output, str(output), "name another one")
    who = identity(Path.cwd())
    name, email = who["GIT_COMMITTER_NAME"], who["GIT_COMMITTER_EMAIL"]
    return who | {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email}


def _make_repository(tree: Path, message: str, who: dict[str, str]) -> None:
    """Make `tree` a git repository with all its files in one commit."""
    with step(f"committing {message} as the base"):
        git(tree, "init", "-q", "-b", "base")
        git(tree, "add", "-A", "--force")
        git(tree, "commit", "-q", "-m", message, **who)


def _switch(tree: Path, branches: dict[str, tuple[str, str]]) -> None:
    """Make all branches, or none, and check out the last one.

    `branches` has the commit and the description of each, by its name.
    """
    made = []
    try:
        for branch, (head, cover) in branches.items():
            git(tree, "update-ref", f"refs/heads/{branch}", head, "")
            made.append(branch)
            # The second setting tells b4 that the description is the cover letter.
            settings = {"description": cover, "b4-prep-cover-strategy": "branch-description"}
            for key, value in settings.items():
                git(tree, "config", "--replace-all", f"branch.{branch}.{key}", value)
        git(tree, "checkout", "-q", made[-1])
    except Failure:
        for branch in made:
            # This also deletes the settings of the branch.
            git(tree, "branch", "-q", "-D", branch)
        raise


def _commit_all(repository: Path, changes: list[Change], who: dict[str, str]) -> dict[str, str]:
    """Commit each change on top of HEAD, through a separate index.

    Returns:
        the last commit of each topic.
    """
    signer = f"{who['GIT_COMMITTER_NAME']} <{who['GIT_COMMITTER_EMAIL']}>"
    parent = git(repository, "rev-parse", "HEAD").strip()
    heads = {}
    with (
        tempfile.TemporaryDirectory(prefix="pagemint-") as name,
        step("committing the patches", len(changes)) as advance,
    ):
        index = {"GIT_INDEX_FILE": str(Path(name) / "index")}
        git(repository, "read-tree", parent, **index)
        for change in changes:
            blobs = [str(Path(name) / str(number)) for number in range(len(change.contents))]
            for blob, data in zip(blobs, change.contents.values(), strict=True):
                Path(blob).write_bytes(data)
            hashes = git(repository, "hash-object", "-w", "--no-filters", *blobs).split()
            # One call: each reads and writes the index of the whole tree.
            entries = [
                word
                for hash_, path in zip(hashes, change.contents, strict=True)
                for word in ("--cacheinfo", f"100644,{hash_},{path}")
            ]
            git(repository, "update-index", "--add", *entries, **index)
            tree = git(repository, "write-tree", **index).strip()
            message = f"{change.step.message}\nSigned-off-by: {signer}\n"
            made = git(repository, "commit-tree", tree, "-p", parent, "-m", message, **who)
            parent = made.strip()
            heads[change.step.topic] = parent
            advance(1)
    return heads
