# SPDX-License-Identifier: GPL-2.0-only
"""The steps of the series: reads them in kernel/, and puts them into a tree's files."""

import argparse
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pagemint import cache, source
from pagemint.errors import Failure
from pagemint.run import run

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


def of(line: str) -> list[Step]:
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
    for one in of(nearest_line(line)):
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
        for one in of(nearest_line(line)):
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


def _numbers(line: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", line)]


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
