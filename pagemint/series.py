# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint series`: puts the patch series into a tree as a branch, or writes it as mails."""

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint import cache, source, steps
from pagemint.errors import Failure
from pagemint.progress import note, step
from pagemint.run import interruption_put_off, run
from pagemint.steps import Change


def commit(tree: Path, texts: dict[str, str], line: str | None = None) -> str:
    """Turn a kernel tree into a branch with one commit a step, check it out, return its name.

    A directory that is no git checkout becomes one, with all its files in a first commit.
    The cover letter is the branch's description, where git and b4 look for it.
    Until the branch is complete nothing in the tree changes.

    Args:
        tree: a directory.
        texts: what messages.filled() returns.
        line: the kernel line whose edits to take, if not that of the tree.

    Raises:
        Failure: the tree has uncommitted changes, the branch is there already, git has no
            identity for the commits, or an edit does not apply exactly.
    """
    if tree.resolve().is_relative_to(cache.root().resolve()):
        raise Failure(f"{tree} is in pagemint's own cache", "copy it somewhere else first")
    found = source.from_tree(tree)
    line = line or found.line
    _identity(tree)
    fresh = not (tree / ".git").exists()
    branch = f"pagemint-{steps.nearest_line(line)}"
    if not fresh:
        _check_clean(tree, branch)
    with step(f"trying the series on Linux {found.version}"):
        changes = steps.plan(tree, line)
    try:
        if fresh:
            _make_repository(tree, f"Linux {found.version}")
        head = _commit_all(tree, "HEAD", changes, texts)
        with interruption_put_off():
            _switch(tree, branch, head, texts[steps.COVER])
            fresh = False  # from here on there is nothing to take back
    except BaseException:
        if fresh:
            shutil.rmtree(tree / ".git", ignore_errors=True)
        raise
    return branch


def mails(found: source.Source, output: Path, texts: dict[str, str]) -> list[Path]:
    """Write the series for a source as mails into the directory `output`, the cover letter first.

    Args:
        found: what it is to apply to.
        output: a new directory, or an empty one.
        texts: what messages.filled() returns.

    Raises:
        Failure: `output` is not empty, git has no identity, or an edit does not apply exactly.
    """
    _check_output(output)
    changes = steps.plan(found.tree, found.line)
    with tempfile.TemporaryDirectory(prefix="pagemint-") as name:
        scratch = Path(name)
        repository, written = scratch / "tree", scratch / "mails"
        repository.mkdir()
        for path in {path for change in changes for path in change.contents}:
            if (found.tree / path).exists():
                (repository / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(found.tree / path, repository / path)
        with _same_identity(Path.cwd()):
            _make_repository(repository, f"Linux {found.version}")
            head = _commit_all(repository, "HEAD", changes, texts)
            _switch(repository, "series", head, texts[steps.COVER])
            # The form of the mails is not for the user's own settings to choose.
            form = ("--no-attach", "--src-prefix=a/", "--dst-prefix=b/")
            cover = ("--cover-letter", "--cover-from-description=subject")
            _git(
                repository, "format-patch", "-q", *form, *cover, "-o", str(written), "base..series"
            )
        try:
            with interruption_put_off():
                output.mkdir(parents=True, exist_ok=True)
                return [
                    Path(shutil.move(mail, output / mail.name))
                    for mail in sorted(written.iterdir())
                ]
        except OSError as error:
            raise Failure(f"cannot write {output}: {error.strerror}", "name another one") from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint series`."""
    parser.add_argument("--kernel", metavar="LINE", help="the kernel line (default: the tree's)")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--tree", type=Path, metavar="DIR", help="make a branch in this tree")
    target.add_argument("--output", type=Path, metavar="DIR", help="write mails")
    parser.add_argument(
        "--results",
        nargs="+",
        default=(),
        metavar="FILE",
        help="results of pagemint bench for the figures in the messages (those in docs/results)",
    )


def main(args: argparse.Namespace) -> int:
    """Run `pagemint series`."""
    # Who asks for the arguments alone, of all commands, is spared Jinja2.
    from pagemint import messages

    known = steps.lines()
    if args.kernel is not None and args.kernel not in known:
        raise Failure(
            f"the series has no edits for Linux {args.kernel!r}",
            f"choose one of: {', '.join(known)}",
        )
    # Before a source is fetched for it.
    if args.output:
        _check_output(args.output)
    texts = messages.filled(args.results)
    if args.tree:
        branch = commit(args.tree, texts, args.kernel)
        note(f"{args.tree} is on the branch {branch}, {len(steps.of(known[-1]))} commits")
        return 0
    for mail in mails(source.get(args.kernel or known[-1]), args.output, texts):
        print(mail)
    return 0


def _git(directory: Path, *argv: str, env: dict[str, str] | None = None) -> str:
    full = os.environ | env if env else None
    return run(["git", *argv], cwd=directory, env=full, what=f"git {argv[0]} in {directory}")


def _identity(directory: Path) -> str:
    """Return git's own "Name <email>" for commits made in `directory`."""
    try:
        ident = _git(directory, "var", "GIT_COMMITTER_IDENT")
    except Failure as failure:
        raise Failure(
            "git does not know who signs the patches off",
            "set user.name and user.email with git config",
        ) from failure
    return ident.rsplit(" ", 2)[0]


@contextmanager
def _same_identity(directory: Path) -> Iterator[None]:
    """Have git commit as it would in `directory`, wherever it is run."""
    name, email = _identity(directory).rsplit(" <", 1)
    before = dict(os.environ)
    for role in ("AUTHOR", "COMMITTER"):
        os.environ[f"GIT_{role}_NAME"] = name
        os.environ[f"GIT_{role}_EMAIL"] = email.rstrip(">")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _check_clean(tree: Path, branch: str) -> None:
    if _git(tree, "status", "--porcelain", "--untracked-files=no"):
        raise Failure(f"{tree} has uncommitted changes", "commit or stash them first")
    if _git(tree, "branch", "--list", branch):
        raise Failure(
            f"{tree} has a branch {branch} already", f"delete or rename it: git branch -m {branch}"
        )


def _check_output(output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise Failure(f"{output} is not an empty directory", "name a new one")
    _identity(Path.cwd())


def _make_repository(tree: Path, message: str) -> None:
    """Make `tree` a git repository with all its files in one commit."""
    with step(f"committing {message} as the base"):
        _git(tree, "init", "-q", "-b", "base")
        _git(tree, "add", "-A")
        _git(tree, "commit", "-q", "--no-verify", "--no-gpg-sign", "-m", message)


def _switch(tree: Path, branch: str, head: str, cover: str) -> None:
    """Make `branch` at the commit `head`, described by the cover letter, and check it out."""
    name = f"refs/heads/{branch}"
    # The second is what tells b4 where the cover letter is.
    settings = {"description": cover, "b4-prep-cover-strategy": "branch-description"}
    _git(tree, "update-ref", name, head, "")
    try:
        for key, value in settings.items():
            _git(tree, "config", "--replace-all", f"branch.{branch}.{key}", value)
        _git(tree, "checkout", "-q", branch)
    except Failure:
        # This takes its settings along.
        _git(tree, "branch", "-q", "-D", branch)
        raise


def _commit_all(repository: Path, base: str, changes: list[Change], texts: dict[str, str]) -> str:
    """Commit each change on top of `base`, through an index of its own; return the last commit.

    Args:
        repository: where.
        base: a commit.
        changes: of the steps.
        texts: the message of each step.
    """
    who = _identity(repository)
    parent = _git(repository, "rev-parse", base).strip()
    with tempfile.TemporaryDirectory(prefix="pagemint-") as name:
        env = {"GIT_INDEX_FILE": str(Path(name) / "index")}
        _git(repository, "read-tree", parent, env=env)
        for change in changes:
            for number, (path, data) in enumerate(change.contents.items()):
                blob = Path(name) / str(number)
                blob.write_bytes(data)
                argv = ("hash-object", "-w", "--no-filters", str(blob))
                entry = f"100644,{_git(repository, *argv).strip()},{path}"
                _git(repository, "update-index", "--add", "--cacheinfo", entry, env=env)
            tree = _git(repository, "write-tree", env=env).strip()
            message = f"{texts[change.step.name]}\nSigned-off-by: {who}\n"
            parent = _git(repository, "commit-tree", tree, "-p", parent, "-m", message).strip()
    return parent
