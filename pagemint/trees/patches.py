# SPDX-License-Identifier: GPL-2.0-only
"""Reads the topics and steps (the patches) of kernel/series/, and applies them to a tree."""

import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from pagemint.base import cache, files, git
from pagemint.base.errors import Failure
from pagemint.trees import sources
from pagemint.words import MODES

_MAINLINE = "mainline"
"""The folder of the topic that makes `sources.EXPECTED` of its base. Other lines lack it."""


@dataclass(frozen=True)
class Topic:
    """A patch series that is sent by itself.

    Attributes:
        name: its folder under series/.
        needs: the topics that have to be applied before it.
    """

    name: str
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One patch of a topic.

    Attributes:
        topic: the name of its topic.
        name: its folder in the topic's folder. The names sort in the order of the patches.
        message: the commit message, without a Signed-off-by.
        files: the new files that it adds, relative to a kernel tree.
        diff: the edits to existing files for one kernel line; None if it only adds files.
    """

    topic: str
    name: str
    message: str
    files: tuple[str, ...]
    diff: Path | None

    @property
    def path(self) -> str:
        """The step's folder under series/: "device/02-template"."""
        return f"{self.topic}/{self.name}"


@dataclass(frozen=True)
class Change:
    """A step, and the whole contents of each file that it touches, as it leaves them."""

    step: Step
    contents: dict[str, bytes]


class _ConflictError(Exception):
    """A step does not apply; the text says where and why."""


def topics(names: Iterable[str] | None = None) -> list[Topic]:
    """Return topics and the topics that they need, in the order in which they apply.

    Args:
        names: the topics; None stands for all.

    Raises:
        Failure: there is no topic of that name.
    """
    known = _topics_in(files.KERNEL / "series/topics")
    chosen = set(known if names is None else names)
    unknown = sorted(chosen - known.keys())
    if unknown:
        raise Failure(f"there is no topic {unknown[0]!r}", f"choose from: {', '.join(known)}")
    for topic in reversed(known.values()):
        if topic.name in chosen:
            chosen.update(topic.needs)
    return [topic for topic in known.values() if topic.name in chosen]


def lines(topic: str = "*") -> list[str]:
    """Return the released lines that the series, or one topic, has edits for, oldest first."""
    edited = {path.stem for path in (files.KERNEL / "series").glob(f"{topic}/*/*.diff")}
    return sorted(edited - {sources.EXPECTED}, key=_numbers)


def source_for(line: str, own: Path | None) -> sources.Source:
    """Return the source to patch: the tree that --ksrc names, or else Debian's of a kernel line.

    Raises:
        Failure: the series has no edits for `line`, or the source cannot be fetched.
    """
    if own:
        return sources.from_tree(own)
    if line not in (known := [*lines(), sources.EXPECTED]):
        raise Failure(
            f"the series has no edits for Linux {line!r}",
            f"choose one of {', '.join(known)}, or give a tree with --ksrc DIR",
        )
    return sources.get(line)


def nearest_line(line: str) -> str:
    """Return the line with edits that is the fewest releases away from `line`."""
    if line == sources.EXPECTED:
        return line
    return min(lines(), key=lambda known: abs(_release(known) - _release(line)))


def with_mainline(line: str, chosen: Sequence[Topic] | None = None) -> list[Topic]:
    """Return topics, all for None; if `line` is `sources.EXPECTED`, the one that makes it first."""
    chosen = list(topics() if chosen is None else chosen)
    mainline = Topic(_MAINLINE, ())
    lacks = line == sources.EXPECTED and mainline not in chosen
    return [mainline, *chosen] if lacks else chosen


def of(line: str, chosen: Sequence[Topic] | None = None) -> list[Step]:
    """Return the steps for a kernel line, in order.

    A step that has edits for other lines but none for this one is left out. `sources.EXPECTED`
    takes the edits of its base where it has none of its own, without the steps that it replaces.

    Args:
        line: one that `lines` names, or `sources.EXPECTED`.
        chosen: the topics; None stands for all.
    """
    expected = line == sources.EXPECTED
    # The topics, and the paths of steps, that `sources.EXPECTED` has already.
    replaced = set(_listed(files.KERNEL / "series" / _MAINLINE / "replaces") if expected else ())
    steps = []
    for topic in with_mainline(line, chosen):
        folders = sorted((files.KERNEL / "series" / topic.name).iterdir())
        for folder in filter(Path.is_dir, folders):
            if replaced & {topic.name, f"{topic.name}/{folder.name}"}:
                continue
            diff = folder / f"{line}.diff"
            if expected and not diff.exists():
                diff = folder / f"{sources.EXPECTED_FROM}.diff"
            if not diff.exists() and any(folder.glob("*.diff")):
                continue
            new_files = folder / "files"
            steps.append(
                Step(
                    topic.name,
                    folder.name,
                    (folder / "message").read_text(),
                    tuple(new_files.read_text().split()) if new_files.exists() else (),
                    diff if diff.exists() else None,
                )
            )
    return steps


def cover(topic: str) -> str:
    """Return the cover letter of a topic: its subject, an empty line and the text."""
    return (files.KERNEL / "series" / topic / "cover").read_text()


def suites(line: str) -> set[str]:
    """Return the names of the KUnit suites that the series adds to a kernel line."""
    added = (Path(path) for step in of(line) for path in step.files)
    return {path.stem.removesuffix("_kunit") for path in added if path.stem.endswith("_kunit")}


def modes(line: str) -> tuple[str, ...]:
    """Return the modes of a kernel of `line` with all topics."""
    published = any(step.topic == "published" for step in of(line))
    return tuple(mode for mode in MODES if mode != "published" or published)


def digest(line: str, chosen: Sequence[Topic] | None = None) -> str:
    """Return a digest of the edits and new files that patch() puts into a tree of `line`."""
    parts: list[str | Path] = []
    for step in of(nearest_line(line), chosen):
        parts += re.split(r"^--- a/", step.diff.read_text() if step.diff else "", flags=re.M)[1:]
        for path in step.files:
            parts += [path, files.KERNEL / path]
    return cache.digest(*parts)


def plan(tree: Path, line: str, chosen: Sequence[Topic] | None = None) -> list[Change]:
    """Return the changes of each step to `tree`, which is only read.

    Raises:
        Failure: an edit does not apply exactly. The message names each topic that does not apply,
            and its first conflict.
    """
    changes: list[Change] = []
    contents: dict[str, bytes] = {}
    conflicts: dict[str, str] = {}
    line = nearest_line(line)
    chosen = with_mainline(line, chosen)
    steps = of(line, chosen)
    for topic in chosen:
        missing = [name for name in topic.needs if name in conflicts]
        if missing:
            conflicts[topic.name] = f"needs {missing[0]}"
            continue
        patched, topic_changes = dict(contents), []
        try:
            for step in (step for step in steps if step.topic == topic.name):
                change = Change(step, _apply(step, tree, patched))
                patched |= change.contents
                topic_changes.append(change)
        except _ConflictError as conflict:
            conflicts[topic.name] = str(conflict)
            continue
        contents = patched
        changes += topic_changes
    if conflicts:
        # A topic may have no steps for this line.
        raise _refusal(dict.fromkeys(change.step.topic for change in changes), conflicts)
    return changes


def patch(tree: Path, line: str, chosen: Sequence[Topic] | None = None) -> None:
    """Apply topics to `tree`, a plain directory of pagemint's own.

    Raises:
        Failure: an edit does not apply exactly; `tree` is unchanged.
    """
    contents: dict[str, bytes] = {}
    for change in plan(tree, line, chosen):
        contents.update(change.contents)
    for path, data in contents.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # The tree shares its files with another one: replace them, never write into them.
        target.unlink(missing_ok=True)
        target.write_bytes(data)


@once
def _topics_in(file: Path) -> dict[str, Topic]:
    return {name: Topic(name, tuple(needs)) for name, *needs in map(str.split, _listed(file))}


def _listed(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line[:1] != "#"]


def _numbers(line: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", line)]


def _release(line: str) -> int:
    """Return the number of releases before a line; the second number goes from 0 to 19."""
    version, patchlevel = _numbers(line)
    return version * 20 + patchlevel


def _apply(step: Step, tree: Path, earlier: dict[str, bytes]) -> dict[str, bytes]:
    """Return the contents of each file that a step touches, as the step leaves them.

    The step finds the files of the unpatched `tree`, with the contents that `earlier` steps left.

    Raises:
        _ConflictError: an edit does not apply exactly.
    """
    diff = step.diff.read_text() if step.diff else ""
    touched = re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="pagemint-") as name:
        scratch = Path(name)
        for path in touched:
            target = scratch / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in earlier:
                target.write_bytes(earlier[path])
            elif (tree / path).is_file():
                shutil.copyfile(tree / path, target)
            else:
                raise _ConflictError(f"{step.name} edits {path}, which is not there")
        if step.diff:
            try:
                git.apply(step.diff, scratch, f"step {step.path}")
            except Failure as failure:
                rejected = re.search(r"error: (\S+): patch does not apply", failure.message)
                if not rejected:
                    raise
                raise _ConflictError(f"{step.name} does not match {rejected[1]}") from failure
        contents = {path: (scratch / path).read_bytes() for path in touched}
    for path in step.files:
        if path in earlier or (tree / path).exists():
            raise _ConflictError(f"{step.name} adds {path}, which is there already")
        contents[path] = (files.KERNEL / path).read_bytes()
    return contents


def _refusal(applied: Collection[str], conflicts: dict[str, str]) -> Failure:
    reasons = "; ".join(f"{name}: {why}" for name, why in conflicts.items())
    remedy = f"give an unpatched tree of one of the lines {', '.join(lines())}"
    if applied:
        remedy += f", or rebase the topic (docs/series.md); these apply: {', '.join(applied)}"
    noun = "topic does" if len(conflicts) == 1 else "topics do"
    return Failure(f"{len(conflicts)} {noun} not apply: {reasons}", remedy)
