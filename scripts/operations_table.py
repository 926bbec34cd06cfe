# SPDX-License-Identifier: GPL-2.0-only
"""Prints a table of counts in docs: that of operations.md, or the one that the argument names.

waits prints the grace periods of operations.md, and stock the table of stock.md.
"""

import argparse

from pagemint.results import counted
from pagemint.results.counted import MEASURES, Pair
from pagemint.results.rows import Result
from pagemint.send import kept

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
    newest = kept.counts()
    rows = "\n".join([*_HEAD, *(_line(pair) for pair in counted.pairs(newest))])
    return rows if kept.is_current(newest) else f"{_EARLIER}\n\n{rows}"


def waits_table() -> str:
    """Return the table of the grace periods in these counts, in Markdown."""
    kinds = (*counted.WAITS.values(), "RCU periods that end")
    head = f"| operation | {' | '.join(kinds)} |\n|---|{'---:|' * len(kinds)}"
    lines = [
        f"| {' | '.join([pair.last.name, *cells, _waits(pair, counted.PERIOD)])} |"
        for pair in counted.pairs(kept.counts())
        if not pair.last.name.startswith("rebind")  # it waits as the bind does
        and any(cells := [_waits(pair, function) for function in counted.WAITS])
    ]
    return "\n".join([head, *lines])


def _waits(pair: Pair, function: str) -> str:
    """Return how often an operation calls a function, before and now; "" if it never does."""
    calls = [
        one.functions[function].calls if function in one.functions else 0 for one in pair.trees
    ]
    if not any(calls):
        return ""
    return " to ".join(str(one) for one in dict.fromkeys(calls))


def stock_table() -> str:
    """Return the table of the counts of stock kernels, in Markdown."""
    lines = [line for one in kept.stock_counts() for line in _stock_lines(one)]
    return "\n".join([*_STOCK_HEAD, *lines])


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
    tables = {"operations": table, "stock": stock_table, "waits": waits_table}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=tables, default="operations")
    print(tables[parser.parse_args().table]())
