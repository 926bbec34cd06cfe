# SPDX-License-Identifier: GPL-2.0-only
"""Prints the table of docs/operations.md: the operations of the newest counts in docs/results."""

from pagemint.results import counted, kept, reader
from pagemint.results.counted import MEASURES, Pair

_HEAD = (
    "| operation | instructions, before | now | bytes stored, before | now | most of it now |",
    "|---|---:|---:|---:|---:|---|",
)


def table() -> str:
    """Return the table in Markdown."""
    newest = reader.read(str(kept.counts()))
    return "\n".join([*_HEAD, *(_line(pair) for pair in counted.pairs(newest))])


def _line(pair: Pair) -> str:
    cells = [
        counted.in_words(of(tree.total), measure) if tree else "-"
        for measure, of in MEASURES.items()
        for tree in (pair.before, pair.now)
    ]
    most = ", ".join(f"`{name}`: {shares}" for name, shares in pair.dominating().items())
    return f"| {' | '.join([pair.last.name, *cells, most])} |"


if __name__ == "__main__":
    print(table())
