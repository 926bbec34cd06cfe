# SPDX-License-Identifier: GPL-2.0-only
"""The patch series: puts the kernel part into a tree, as files, as a branch, or as mails."""

import argparse
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagemint import cache, source
from pagemint.errors import Failure
from pagemint.progress import note, step
from pagemint.run import interruption_put_off, run

KERNEL = Path(__file__).resolve().parent.parent / "kernel"
"""The kernel part: new files as they stand in a tree, and under series/ the steps."""

COVER = "cover"
"""The file beside the steps with the text of the cover letter."""


@dataclass(frozen=True)
class Step:
    """One patch of the series.

    Attributes:
        name: its folder under series/, which sorts in the order of the series.
        message: the commit message, for messages.filled() to fill, without a Signed-off-by.
        files: the new files that it adds, relative to a kernel tree.
        diff: the edits to existing files, for one kernel line.
    """

    name: str
    message: str
    files: tuple[str, ...]
    diff: Path


@dataclass(frozen=True)
class Change:
    """What one step does to a certain tree: the whole contents of each file it touches."""

    step: Step
    contents: dict[str, bytes]


def lines() -> list[str]:
    """Return the kernel lines that the series has edits for, oldest first."""
    return sorted(
        {path.stem for path in (KERNEL / "series").glob("*/*.diff")},
        key=_numbers,
    )


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare --kernel and --ksrc, which `source_for` takes."""
    tree = parser.add_mutually_exclusive_group()
    tree.add_argument("--kernel", default="7.3", metavar="LINE", help="kernel line (7.3)")
    tree.add_argument("--ksrc", type=Path, metavar="DIR", help="a kernel tree of your own")


def source_for(line: str, own: Path | None) -> source.Source:
    """Return the source that --ksrc names, or else Debian's of a kernel line, to be patched.

    Raises:
        Failure: the series has no edits for `line`, or the source cannot be had.
    """
    if own:
        return source.from_tree(own)
    if line not in lines():
        raise Failure(
            f"the series has no edits for Linux {line!r}",
            f"choose one of {', '.join(lines())}, or give a tree with --ksrc DIR",
        )
    return source.get(line)


def nearest_line(line: str) -> str:
    """Return the line whose edits to try on a tree of `line`: the fewest releases away from it."""
    return min(lines(), key=lambda one: abs(_release(one) - _release(line)))


def steps(line: str) -> list[Step]:
    """Return the series for a kernel line that `lines` names."""
    found = []
    for folder in sorted(path for path in (KERNEL / "series").iterdir() if path.is_dir()):
        listed = folder / "files"
        files = tuple(listed.read_text().split()) if listed.exists() else ()
        found.append(
            Step(folder.name, (folder / "message").read_text(), files, folder / f"{line}.diff")
        )
    return found


def digest(line: str) -> str:
    """Return a digest of what `patch` puts into a tree of `line`: edits and new files alone."""
    parts: list[str | Path] = []
    for one in steps(nearest_line(line)):
        parts.append(one.diff)
        for path in one.files:
            parts += [path, KERNEL / path]
    return cache.digest(*parts)


def plan(tree: Path, line: str) -> list[Change]:
    """Return what each step changes in `tree`, which is only read.

    Raises:
        Failure: an edit does not apply exactly; names the step and the file.
    """
    changes = []
    with tempfile.TemporaryDirectory(prefix="pagemint-") as name:
        scratch = Path(name)
        for one in steps(nearest_line(line)):
            changes.append(Change(one, _apply(one, tree, scratch)))
    return changes


def patch(tree: Path, line: str) -> None:
    """Put the whole series into `tree`, a plain directory of pagemint's own.

    Raises:
        Failure: an edit does not apply exactly; `tree` is as it was.
    """
    contents: dict[str, bytes] = {}
    for change in plan(tree, line):
        contents.update(change.contents)
    for path, data in contents.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # The tree shares its files with another one: replace, never write into them.
        target.unlink(missing_ok=True)
        target.write_bytes(data)


def commit(tree: Path, line: str | None = None, results: Sequence[str | Path] = ()) -> str:
    """Turn a kernel tree into a branch with one commit a step, check it out, return its name.

    A directory that is no git checkout becomes one, with all its files in a first commit.
    The cover letter is the branch's description, where git and b4 look for it.
    Until the branch is complete nothing in the tree changes.

    Args:
        tree: a directory.
        line: the kernel line whose edits to take, if not that of the tree.
        results: result files for the figures of the messages, if not those of docs/results.

    Raises:
        Failure: the tree has uncommitted changes, the branch is there already, git has no
            identity for the commits, an edit does not apply exactly, or no result has a figure.
    """
    if tree.resolve().is_relative_to(cache.root().resolve()):
        raise Failure(f"{tree} is in pagemint's own cache", "copy it somewhere else first")
    found = source.from_tree(tree)
    line = line or found.line
    _identity(tree)
    fresh = not (tree / ".git").exists()
    branch = f"pagemint-{nearest_line(line)}"
    if not fresh:
        _check_clean(tree, branch)
    texts = _texts(results)
    with step(f"trying the series on Linux {found.version}"):
        changes = plan(tree, line)
    try:
        if fresh:
            _make_repository(tree, f"Linux {found.version}")
        head = _commit_all(tree, "HEAD", changes, texts)
        with interruption_put_off():
            _switch(tree, branch, head, texts[COVER])
            fresh = False  # from here on there is nothing to take back
    except BaseException:
        if fresh:
            shutil.rmtree(tree / ".git", ignore_errors=True)
        raise
    return branch


def mails(
    found: source.Source,
    output: Path,
    line: str | None = None,
    results: Sequence[str | Path] = (),
) -> list[Path]:
    """Write the series for a source as mails into the directory `output`, the cover letter first.

    Args:
        found: what it is to apply to.
        output: a new directory, or an empty one.
        line: the kernel line whose edits to take, if not that of the source.
        results: result files for the figures of the messages, if not those of docs/results.

    Raises:
        Failure: `output` is not empty, git has no identity, an edit does not apply exactly, or
            no result has a figure.
    """
    _check_output(output)
    texts = _texts(results)
    changes = plan(found.tree, line or found.line)
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
            _switch(repository, "series", head, texts[COVER])
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
    if args.kernel is not None and args.kernel not in lines():
        raise Failure(
            f"the series has no edits for Linux {args.kernel!r}",
            f"choose one of: {', '.join(lines())}",
        )
    if args.tree:
        branch = commit(args.tree, args.kernel, args.results)
        note(f"{args.tree} is on the branch {branch}, {len(steps(lines()[-1]))} commits")
        return 0
    # Before a source is fetched for them.
    _check_output(args.output)
    _texts(args.results)
    found = source.get(args.kernel or lines()[-1])
    for mail in mails(found, args.output, results=args.results):
        print(mail)
    return 0


def _numbers(line: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", line)]


def _texts(results: Sequence[str | Path]) -> dict[str, str]:
    """Return messages.filled(), or with the repository's own results if none are given."""
    # What reads results comes after what makes them, and that after this.
    from pagemint import messages

    return messages.filled([str(one) for one in results])


def _release(line: str) -> int:
    """Return how many releases came before a line: the second number goes from 0 to 19."""
    version, patchlevel = _numbers(line)
    return version * 20 + patchlevel


def _apply(one: Step, tree: Path, scratch: Path) -> dict[str, bytes]:
    """Apply one step to the files in `scratch`, which are fetched from `tree` as they are needed.

    Returns:
        the contents of each file that the step touches, after it.
    """
    touched = re.findall(r"^\+\+\+ b/(\S+)$", one.diff.read_text(), re.MULTILINE)
    for path in touched:
        if not (scratch / path).exists():
            if not (tree / path).is_file():
                raise _mismatch(one, path, "it is not there")
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / path, scratch / path)
    try:
        # No repository above the scratch directory may have a say.
        env = os.environ | {"GIT_CEILING_DIRECTORIES": str(scratch.parent), "LC_ALL": "C"}
        argv = ["git", "apply", "--whitespace=nowarn", str(one.diff)]
        run(argv, cwd=scratch, env=env, what=f"step {one.name}")
    except Failure as failure:
        bad = re.search(r"patch failed: (\S+):(\d+)", failure.message + failure.remedy)
        named = re.search(r"error: (\S+): patch does not apply", failure.message)
        if bad or named:
            path = bad[1] if bad else named[1] if named else ""
            raise _mismatch(one, path, "it differs there from what the edit expects") from failure
        raise
    for path in one.files:
        if (tree / path).exists():
            raise _mismatch(one, path, "it is there already")
        (scratch / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(KERNEL / path, scratch / path)
    return {path: (scratch / path).read_bytes() for path in [*touched, *one.files]}


def _mismatch(one: Step, path: str, why: str) -> Failure:
    return Failure(
        f"step {one.name} does not apply to {path}: {why}",
        f"give an unpatched tree of one of the lines {', '.join(lines())}",
    )


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
