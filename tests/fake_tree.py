# SPDX-License-Identifier: GPL-2.0-only
"""Makes a stand-in for a kernel tree: only the lines that the series' edits need, at their places.

The lines come from the edits themselves, so that the tests store nothing of the kernel.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pagemint.trees import patches
from pagemint.trees.patches import Patch

LINE = "7.3"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass
class _Line:
    """A line of a file; `patch` is the name of the first patch whose edit needs it."""

    text: str | None = None
    patch: str = ""


@dataclass(frozen=True)
class Needed:
    """A line of the unpatched tree without which a patch does not apply.

    Attributes:
        topic: the topic of the first patch that needs it.
        path: its file.
        number: its number in the file, from 1.
    """

    topic: str
    path: str
    number: int


def make(tree: Path, line: str = LINE) -> Path:
    """Make a tree of a line in a new directory, and return it: the whole series applies to it."""
    files = {
        path: [f"line {n}" if old.text is None else old.text for n, old in enumerate(lines, 1)]
        for path, lines in _unpatched(line).items()
    }
    version, patchlevel = line.split(".")
    # A build runs `make mrproper` first.
    files["Makefile"] = [f"VERSION = {version}", f"PATCHLEVEL = {patchlevel}", "mrproper:"]
    files["Kconfig"] = ['mainmenu "none"']
    for path, lines in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("\n".join(lines) + "\n")
    return tree


def needed(line: str = LINE) -> list[Needed]:
    """Return a needed line for each patch and each file that it edits, if there is one."""
    order = [patch.name for patch in patches.of(line, patches.every_topic())]
    needs: dict[tuple[str, str], Needed] = {}
    for path, lines in _unpatched(line).items():
        for number, old in enumerate(lines, 1):
            # An empty line could match at many places.
            if old.text:
                topic = old.patch.partition("/")[0]
                needs.setdefault((old.patch, path), Needed(topic, path, number))
    return [needs[key] for key in sorted(needs, key=lambda key: (order.index(key[0]), key[1]))]


def spoil(tree: Path, line: Needed) -> None:
    """Change one line in `tree`."""
    lines = (tree / line.path).read_text().split("\n")
    lines[line.number - 1] = "something else"
    (tree / line.path).write_text("\n".join(lines))


def _unpatched(line: str) -> dict[str, list[_Line]]:
    """Return the lines of each file before the first patch; lines not in an edit have no text."""
    before: dict[str, list[_Line]] = {}
    for chosen in (None, *(patches.topics([name]) for name in patches.beside())):
        now = {path: list(lines) for path, lines in before.items()}
        for patch in patches.of(line, chosen):
            for edit in patch.edits:
                if edit.new:
                    now[edit.path] = [_Line(text[1:]) for text in edit.hunks.splitlines()[1:]]
                    continue
                if edit.path not in now:
                    now[edit.path], before[edit.path] = [], []
                _apply(patch, edit.path, edit.hunks, now[edit.path], before.get(edit.path))
    return before


def _apply(
    patch: Patch, path: str, hunks: str, now: list[_Line], before: list[_Line] | None
) -> None:
    """Apply the hunks of a patch to a file, and add the lines that they need to the file before."""
    at, shift = 0, 0  # shift: lines by which the hunks so far have moved the rest of the file
    for text in hunks.splitlines():
        if hunk := _HUNK.match(text):
            at = int(hunk[1]) - 1 + shift
            if before is not None:
                # Both lists share these lines.
                more = [_Line() for _ in range(at + int(hunk[2] or 1) - len(now))]
                before += more
                now += more
        elif text.startswith("+"):
            now.insert(at, _Line(text[1:], patch.name))
            at, shift = at + 1, shift + 1
        else:
            old = now[at]
            if old.text is None:
                old.text, old.patch = text[1:], patch.name
            assert old.text == text[1:], f"{patch.name}: {path}: {text!r} is {old.text!r}"
            if text.startswith("-"):
                del now[at]
                shift -= 1
            else:
                at += 1
