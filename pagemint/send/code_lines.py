# SPDX-License-Identifier: GPL-2.0-only
"""Counts the lines of code that each topic adds to a kernel tree and removes from it."""

import difflib
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from pagemint.trees import edited, patches
from pagemint.trees.patches import Topic
from pagemint.trees.sources import Source


def show(source: Source, chosen: Sequence[Topic]) -> None:
    """Print a table of the lines of code of each topic, and of all topics but `published`.

    Comments, blank lines, tests and documentation do not count.
    """
    table = Table(title=f"Lines of code on Linux {source.version}")
    table.add_column("topic", no_wrap=True)
    for name in ("patches", "added", "removed"):
        table.add_column(name, justify="right")
    counts = count(source, chosen)
    for topic, numbers in counts.items():
        table.add_row(topic, *map(str, numbers))
    if len(counts) > 1:
        table.add_section()
        product = [numbers for topic, numbers in counts.items() if topic != "published"]
        table.add_row(
            "all but published", *(str(sum(column)) for column in zip(*product, strict=True))
        )
    Console().print(table)


def count(source: Source, chosen: Sequence[Topic]) -> dict[str, tuple[int, int, int]]:
    """Return the patches of each topic, and the lines of code that it adds and removes.

    Raises:
        Failure: an edit does not apply.
    """
    now: dict[str, list[str]] = {}
    counts: dict[str, tuple[int, int, int]] = {}
    for change in patches.plan(source.tree, source.line, chosen):
        number, added, removed = counts.get(change.step.topic, (0, 0, 0))
        for path, data in change.contents.items():
            if not edited.is_code(path):
                continue
            if path not in now:
                original = source.tree / path
                now[path] = (
                    edited.lines_of_code(path, original.read_text()) if original.exists() else []
                )
            after = edited.lines_of_code(path, data.decode())
            matcher = difflib.SequenceMatcher(None, now[path], after, autojunk=False)
            for what, a, b, c, d in matcher.get_opcodes():
                if what != "equal":
                    removed += b - a
                    added += d - c
            now[path] = after
        counts[change.step.topic] = (number + 1, added, removed)
    return counts
