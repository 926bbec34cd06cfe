# SPDX-License-Identifier: GPL-2.0-only
"""The patches in kernel/series/: those of each kernel line, and how a tree gets them.

kernel/series/LINE/TOPIC/ has the patches of a topic as mails, and its cover letter. LINE/series
lists the patches of the stack in the order in which they apply; a topic beside the stack stands on
those that it needs.
"""

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pagemint.base import cache, files, git
from pagemint.base.errors import Failure, MachineFailure
from pagemint.trees import sources

_MAINLINE = "mainline"
"""The topic that makes `sources.EXPECTED` of its base. Other lines lack it."""


@dataclass(frozen=True)
class Topic:
    """A patch series.

    Attributes:
        name: the name of its folder.
        needs: the topics that have to be applied before it.
    """

    name: str
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """The change of one file by a patch.

    Attributes:
        path: the file, relative to a kernel tree.
        new: whether the patch adds the file.
        hunks: the hunks of the diff.
    """

    path: str
    new: bool
    hunks: str


@dataclass(frozen=True)
class Patch:
    """One mail of a topic.

    Attributes:
        mail: its file, in the folder of its topic.
    """

    mail: Path

    @property
    def topic(self) -> str:
        """The name of its topic."""
        return self.mail.parent.name

    @property
    def name(self) -> str:
        """The topic and the name of the file: "device/0002-mm-add-a-template.patch"."""
        return f"{self.topic}/{self.mail.name}"

    @property
    def edits(self) -> list[Edit]:
        """The changes of files, in the order of the mail."""
        found = re.split(
            r"^--- (a/.*|/dev/null)\n\+\+\+ b/(.*)\n", self.mail.read_text(), flags=re.M
        )
        return [
            Edit(path, before == "/dev/null", hunks.partition("\ndiff --git ")[0])
            for before, path, hunks in zip(found[1::3], found[2::3], found[3::3], strict=True)
        ]


def topics(names: Iterable[str] | None = None) -> list[Topic]:
    """Return topics and the topics that they need, in the order in which they apply.

    Args:
        names: the topics; None stands for the stack.

    Raises:
        Failure: there is no topic of that name.
    """
    known = _known()
    chosen = known.keys() - beside() if names is None else set(names)
    unknown = sorted(chosen - known.keys())
    if unknown:
        raise Failure(f"there is no topic {unknown[0]!r}", f"choose from: {', '.join(known)}")
    for topic in reversed(known.values()):
        if topic.name in chosen:
            chosen.update(topic.needs)
    return [topic for topic in known.values() if topic.name in chosen]


def check_there(names: Iterable[str], line: str) -> None:
    """Check that there are patches of some topics for a kernel line.

    Raises:
        Failure: there are none of one topic, so that a tree would not be what its name says.
    """
    chosen = topics(names)
    there = {patch.topic for patch in of(line, chosen)}
    for name in names:
        if name not in there:
            raise Failure(
                f"there are no patches of {name} for Linux {line}",
                "choose another topic, or another line with --kernel",
            )


def every_topic() -> list[Topic]:
    """Return all topics: the stack, and those beside it."""
    return list(_known().values())


def beside() -> set[str]:
    """Return the names of the topics that stand beside the stack."""
    return _known().keys() - {mail.parent.name for mail in _listed(lines()[-1])}


def lines(topic: str = "*") -> list[str]:
    """Return the released lines that all topics, or one of them, have patches for, oldest first."""
    mails = (files.KERNEL / "series").glob(f"*/{topic}/*.patch")
    return sorted({mail.parts[-3] for mail in mails} - {sources.EXPECTED}, key=_numbers)


def source_for(line: str, own: Path | None) -> sources.Source:
    """Return the source to patch: the tree that --ksrc names, or else Debian's of a kernel line.

    Raises:
        Failure: there are no patches for `line`, or the source cannot be fetched.
    """
    if own:
        return sources.from_tree(own)
    if line not in (known := [*lines(), sources.EXPECTED]):
        raise Failure(
            f"there are no patches for Linux {line!r}",
            f"choose one of {', '.join(known)}, or give a tree with --ksrc DIR",
        )
    return sources.get(line)


def nearest_line(line: str) -> str:
    """Return the line with patches that is the fewest releases away from `line`."""
    if line == sources.EXPECTED:
        return line
    return min(lines(), key=lambda known: abs(_release(known) - _release(line)))


def of(line: str, chosen: Sequence[Topic] | None = None) -> list[Patch]:
    """Return the patches for a kernel line, in order.

    Those that make `sources.EXPECTED` of its base come first, whatever is chosen.

    Args:
        line: one that `lines` names, or `sources.EXPECTED`.
        chosen: the topics, each of which may have no patches for this line; None stands for the
            stack.
    """
    stack = [Patch(mail) for mail in _listed(line)]
    if chosen is None:
        return stack
    names = {_MAINLINE, *(topic.name for topic in chosen)}
    beside = names - {patch.topic for patch in stack}
    more = (sorted((_folder(line) / name).glob("*.patch")) for name in sorted(beside))
    return [
        *(patch for patch in stack if patch.topic in names),
        *(Patch(mail) for mails in more for mail in mails),
    ]


def by_topic(line: str, chosen: Sequence[Topic] | None = None) -> dict[str, list[Patch]]:
    """Return the patches that of() returns, by the names of their topics."""
    grouped = groupby(of(line, chosen), lambda patch: patch.topic)
    return {topic: list(some) for topic, some in grouped}


def cover(line: str, topic: str) -> str:
    """Return the cover letter of a topic: its subject, an empty line and the text."""
    for known in (line, sources.EXPECTED_FROM):
        if (file := _folder(known) / topic / "cover.txt").exists():
            break
    return file.read_text()


def suites(line: str) -> set[str]:
    """Return the names of the KUnit suites that the stack adds to a kernel line."""
    added = (Path(edit.path) for patch in of(line) for edit in patch.edits if edit.new)
    return {path.stem.removesuffix("_kunit") for path in added if path.stem.endswith("_kunit")}


def digest(line: str, chosen: Sequence[Topic] | None = None) -> str:
    """Return a digest of the edits that apply() makes in a tree of `line`."""
    edits = (edit for patch in of(nearest_line(line), chosen) for edit in patch.edits)
    return cache.digest(*(part for edit in edits for part in (edit.path, edit.hunks)))


def apply(
    tree: Path, line: str, chosen: Sequence[Topic] | None = None, *, check: bool = False
) -> None:
    """Apply topics to `tree`, a plain directory of pagemint's own, or only check that they apply.

    Raises:
        Failure: a patch does not apply exactly; `tree` is unchanged. The message names each topic
            that does not apply, and its first conflict.
    """
    wanted = of(nearest_line(line), chosen)
    try:
        _git_apply(wanted, tree, *(["--check"] if check else []))
    except MachineFailure:
        raise
    except Failure as failure:
        raise _refusal(tree, wanted) or failure from failure


def _git_apply(some: Sequence[Patch], tree: Path, *options: str) -> None:
    """Apply patches to a tree: all of them, or none."""
    if some:
        with tempfile.NamedTemporaryFile(prefix="pagemint-") as file:
            file.writelines(patch.mail.read_bytes() for patch in some)
            file.flush()
            git.apply(Path(file.name), tree, "the series", *options)


def _refusal(tree: Path, wanted: Sequence[Patch]) -> Failure | None:
    """Return the failure that names each topic of some patches that does not apply."""
    needs = {name: topic.needs for name, topic in _known().items()}
    fitting: list[Patch] = []
    conflicts: dict[str, str] = {}
    names = dict.fromkeys(patch.topic for patch in wanted)
    for name in names:
        missing = [need for need in needs.get(name, ()) if need in conflicts]
        if missing:
            conflicts[name] = f"needs {missing[0]}"
            continue
        mine = [patch for patch in wanted if patch.topic == name]
        try:
            _git_apply([*fitting, *mine], tree, "--check")
        except Failure as failure:
            conflict = re.search(r"error: (?!patch failed)(.*)", failure.message)
            conflicts[name] = conflict[1] if conflict else failure.message
        else:
            fitting += mine
    if not conflicts:
        return None
    reasons = "; ".join(f"{name}: {why}" for name, why in conflicts.items())
    remedy = f"give an unpatched tree of one of the lines {', '.join(lines())}"
    if applied := [name for name in names if name not in conflicts]:
        remedy += f", or rebase the topic (docs/series.md); these apply: {', '.join(applied)}"
    noun = "topic does" if len(conflicts) == 1 else "topics do"
    return Failure(f"{len(conflicts)} {noun} not apply: {reasons}", remedy)


def _known() -> dict[str, Topic]:
    file = files.KERNEL / "series/topics"
    rows = (line.split() for line in file.read_text().splitlines() if line[:1] != "#")
    return {name: Topic(name, tuple(needs)) for name, *needs in rows}


def _folder(line: str) -> Path:
    return files.KERNEL / "series" / line


def _listed(line: str) -> list[Path]:
    """Return the mails of the stack of a line, in order."""
    folder = _folder(line)
    return [folder / name for name in (folder / "series").read_text().splitlines()]


def _numbers(line: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", line)]


def _release(line: str) -> int:
    """Return the number of releases before a line; the second number goes from 0 to 19."""
    version, patchlevel = _numbers(line)
    return version * 20 + patchlevel
