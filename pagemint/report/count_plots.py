# SPDX-License-Identifier: GPL-2.0-only
"""The plots of counted operations: the largest functions before and after, stacked."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from pagemint.report.plots import style
from pagemint.report.plots.groups import draw_rows, folded
from pagemint.report.plots.sheet import Frame, Plot, bars, beside
from pagemint.report.svg import Names
from pagemint.results import counted
from pagemint.results.counted import MEASURES, Pair
from pagemint.results.rows import Result

MOST_PAIRS = 9
"""Most operations of a plot."""

MOST_PLOTS = 12
"""Most plots of a measure: a hostile result may have thousands of operations."""

_MOST_NAMED = 3  # functions below the bars
_ROWS = 3.6  # the height of an operation in bars: two bars, and a line with names
_LINE = 59  # most characters of the names below the bars
_LEAST = 1  # per cent of the base tree's total: smaller functions are not named
_LOOKS = {
    "1, the largest function": style.LOOKS["streaming"],
    "2": style.LOOKS["cached"],
    "3": style.LOOKS["published"],
}
_REST = "all others", style.LOOKS["slow"]
_NOTE = (
    "The upper bar of an operation is the kernel as it was, the lower one with pagemint. "
    "The line below names its largest functions, in the order of the bars' parts."
)


@dataclass(frozen=True)
class _Stack:
    """The bars of an operation.

    Attributes:
        title: its name.
        functions: its largest functions.
        bars: for each tree the parts of its bar, in per cent of the base tree's total: one for
            each of these functions, and one for all others.
        sums: the total of each tree, in words.
    """

    title: str
    functions: list[str]
    bars: list[list[float]]
    sums: list[str]


def draw(result: Result, tag: str, names: Names) -> list[Plot]:
    """Draw the counts of a result, if it has any."""
    drawn = []
    for measure in MEASURES:
        stacks = [stack for pair in counted.pairs(result) if (stack := _stack(pair, measure))]
        chunks = [stacks[at : at + MOST_PAIRS] for at in range(0, len(stacks), MOST_PAIRS)]
        for number, chunk in enumerate(chunks[:MOST_PLOTS], 1):
            frame = Frame(
                names("count", measure, str(number), tag),
                f"Operations: {measure}, {number} of {len(chunks)}",
                ", ".join(filter(None, (tag and f"result {tag}", result.host.emulated))),
                f"{measure} (% of the base tree's)",
                _NOTE,
            )
            drawn.append(_stacks(frame, chunk))
    return drawn


def _stack(pair: Pair, measure: str) -> _Stack | None:
    """Return the bars of an operation; None if it has nothing to show."""
    of = MEASURES[measure]
    whole = of(pair.trees[0].total)
    if not whole:
        return None
    most: dict[str, int] = {}
    for tree in pair.trees:
        for name, counts in tree.functions.items():
            most[name] = max(most.get(name, 0), of(counts))
    named = [name for name in most if 100 * most[name] >= _LEAST * whole]
    functions = sorted(named, key=lambda name: (-most[name], name))[:_MOST_NAMED]
    bars = []
    for tree in pair.trees:
        parts = [of(tree.functions[name]) if name in tree.functions else 0 for name in functions]
        bars.append([100 * part / whole for part in (*parts, of(tree.total) - sum(parts))])
    sums = [counted.in_words(of(tree.total), measure) for tree in pair.trees]
    return _Stack(pair.last.name, functions, bars, sums)


def _stacks(frame: Frame, stacks: Sequence[_Stack]) -> Plot:
    def paint(axes: Axes) -> None:
        for number, stack in enumerate(stacks):
            _draw_stack(axes, number * _ROWS, stack)
        axes.set_xlim(0, 1.3 * max(sum(bar) for stack in stacks for bar in stack.bars))

    height = len(stacks) * _ROWS
    names = {number * _ROWS + 1: folded(stack.title) for number, stack in enumerate(stacks)}
    return draw_rows(frame, height, names, (-0.6, height - 0.3), paint)


def _draw_stack(axes: Axes, top: float, stack: _Stack) -> None:
    looks = [*itertools.islice(_LOOKS.items(), len(stack.functions)), _REST]
    for row, (bar, total) in enumerate(zip(stack.bars, stack.sums, strict=True)):
        left, y = 0.0, top + 0.5 + row
        for (name, look), part in zip(looks, bar, strict=True):
            bars(axes, [y], [part], look, left=left, label=name)
            left += part
        beside(axes, left, y, total)
    named = (f"{number} {name}" for number, name in enumerate(_cut(stack.functions), 1))
    axes.text(0, top + 2.55, "  ".join(named), size=7, va="center")


def _cut(names: list[str]) -> list[str]:
    """Shorten the longest names until all of them, with their numbers, fit into a line."""
    lengths = [len(name) for name in names]
    while sum(length + 4 for length in lengths) > _LINE:
        lengths[lengths.index(max(lengths))] -= 1
    return [
        name if len(name) == length else f"{name[: length - 1]}…"
        for name, length in zip(names, lengths, strict=True)
    ]
