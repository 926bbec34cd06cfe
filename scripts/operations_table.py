# SPDX-License-Identifier: GPL-2.0-only
"""Prints the tables of counts in docs: of operations.md, or with the argument stock of stock.md."""

import sys

from pagemint.kernels import steps
from pagemint.results import counted, kept, reader
from pagemint.results.counted import MEASURES, Pair
from pagemint.results.rows import Result

_HEAD = (
    "| operation | instructions, before | now | bytes stored, before | now | most of it now |",
    "|---|---:|---:|---:|---:|---|",
)
_EARLIER = "An earlier state of the series gave these counts."

_STOCK_HEAD = (
    "| Debian's kernel | operation | instructions, without | with | bytes stored, without | with |",
    "|---|---|---:|---:|---:|---:|",
)


def table() -> str:
    """Return the table of the newest counts of both trees, in Markdown."""
    newest = reader.read(str(kept.counts()))
    rows = "\n".join([*_HEAD, *(_line(pair) for pair in counted.pairs(newest))])
    return rows if newest.kernel.series in steps.digests() else f"{_EARLIER}\n\n{rows}"


def stock_table() -> str:
    """Return the table of the counts of stock kernels, in Markdown."""
    results = [reader.read(str(file)) for file in kept.stock_counts()]
    return "\n".join([*_STOCK_HEAD, *(line for one in results for line in _stock_lines(one))])


def _stock_lines(result: Result) -> list[str]:
    return [
        f"| {' | '.join([result.kernel.version, pair.last.name, *_amounts(pair)])} |"
        for pair in counted.pairs(result)
    ]


def _amounts(pair: Pair) -> list[str]:
    return [
        counted.in_words(of(tree.total), measure) if tree else "-"
        for measure, of in MEASURES.items()
        for tree in (pair.before, pair.now)
    ]


def _line(pair: Pair) -> str:
    cells = _amounts(pair)
    most = ", ".join(f"`{name}`: {shares}" for name, shares in pair.dominating().items())
    return f"| {' | '.join([pair.last.name, *cells, most])} |"


if __name__ == "__main__":
    print(stock_table() if sys.argv[1:] == ["stock"] else table())
