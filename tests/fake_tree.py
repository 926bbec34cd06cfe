# SPDX-License-Identifier: GPL-2.0-only
"""Makes a stand-in for a kernel tree: only the lines that the series' edits need, at their places.

The lines come from the edits themselves, so that the tests store nothing of the kernel.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import files
from pagemint.trees import patches

LINE = "7.3"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass
class _Line:
    """A line of a file; `step` is the path of the first step whose edit needs it."""

    text: str | None = None
    step: str = ""


@dataclass(frozen=True)
class Needed:
    """A line of the unpatched tree without which the edit of a step does not apply.

    Attributes:
        topic: the topic of the first step that needs it.
        step: the name of that step.
        path: its file.
        number: its number in the file, from 1.
    """

    topic: str
    step: str
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
    """Return a needed line for each step and each file that it edits, if there is one."""
    order = [step.path for step in patches.of(line)]
    needs: dict[tuple[str, str], Needed] = {}
    for path, lines in _unpatched(line).items():
        for number, old in enumerate(lines, 1):
            # An empty line could match at many places.
            if old.text:
                topic, step = old.step.split("/")
                needs.setdefault((old.step, path), Needed(topic, step, path, number))
    return [needs[key] for key in sorted(needs, key=lambda key: (order.index(key[0]), key[1]))]


def spoil(tree: Path, line: Needed) -> None:
    """Change one line in `tree`."""
    lines = (tree / line.path).read_text().split("\n")
    lines[line.number - 1] = "something else"
    (tree / line.path).write_text("\n".join(lines))


def edited(diff: str) -> list[str]:
    """Return the files that a diff edits."""
    return re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)


def _unpatched(line: str) -> dict[str, list[_Line]]:
    """Return the lines of each file before the first step; lines not in an edit have no text."""
    before: dict[str, list[_Line]] = {}
    now: dict[str, list[_Line]] = {}
    added = set()
    for step in patches.of(line):
        for new in step.files:
            now[new] = [
                _Line(text, step.path) for text in (files.KERNEL / new).read_text().split("\n")
            ]
            added.add(new)
        path, at, left = "", 0, 0
        shift = 0  # lines by which the hunks so far have moved the rest of the file
        for text in step.diff.read_text().splitlines() if step.diff else ():
            hunk = _HUNK.match(text)
            if left == 0 and text.startswith("+++ b/"):
                path, shift = text.removeprefix("+++ b/"), 0
                before.setdefault(path, [])
                now.setdefault(path, [])
            elif left == 0 and hunk:
                at, left = int(hunk[1]) - 1 + shift, int(hunk[2] or 1)
                if path not in added:
                    # Both lists share these lines.
                    more = [_Line() for _ in range(at + left - len(now[path]))]
                    before[path] += more
                    now[path] += more
            elif text.startswith("+") and not text.startswith("+++"):
                now[path].insert(at, _Line(text[1:], step.path))
                at, shift = at + 1, shift + 1
            elif left and text[:1] in (" ", "-", ""):
                old = now[path][at]
                if old.text is None:
                    old.text, old.step = text[1:], step.path
                assert old.text == text[1:], f"{step.path}: {path}: {text!r} is {old.text!r}"
                left -= 1
                if text.startswith("-"):
                    del now[path][at]
                    shift -= 1
                else:
                    at += 1
    return {path: lines for path, lines in before.items() if path not in added}
