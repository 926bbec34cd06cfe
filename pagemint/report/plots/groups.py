# SPDX-License-Identifier: GPL-2.0-only
"""Values in groups, one group below the other."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pagemint.report.plots import style
from pagemint.report.plots.sheet import Frame, Plot, finished, sheet
from pagemint.report.plots.style import Look
from pagemint.results.estimates import Estimate

BAR = 0.165  # inches for each bar
_GAP = 0.7  # space between two groups, in bars
_LINE, _LINES = 18, 4  # most characters of a line, and most lines, in the name of a group


@dataclass(frozen=True)
class Group:
    """Values that are drawn side by side: those of a workload, or of a machine.

    Attributes:
        name: its label at the axis.
        values: the value of each series that has one.
        limit: the value of its limit, if that is known.
    """

    name: str
    values: dict[str, Estimate]
    limit: float | None = None


def grouped(
    frame: Frame,
    groups: Sequence[Group],
    paint: Callable[[Axes, dict[str, Look]], None],
) -> Plot:
    """Make a plot with its groups one below the other."""
    series = style.looks_of(name for group in groups for name in group.values)
    count = sum(len(group.values) + _GAP for group in groups)
    with mpl.rc_context(style.STYLE):
        figure, axes = sheet(frame, count * BAR + 0.55)
        paint(axes, series)
        spans = list(spans_of(groups))
        axes.set_yticks(
            [(top + bottom) / 2 for top, bottom, _ in spans],
            [folded(group.name) for _, _, group in spans],
        )
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(spans[-1][1] + _GAP / 2, spans[0][0] - _GAP / 2)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.set_xlabel(frame.axis, gid="unit")
        return finished(frame, figure, axes)


def places(groups: Iterable[Group]) -> dict[str, tuple[list[float], list[Estimate]]]:
    """Return the values of each series, and their places from the top."""
    series: dict[str, tuple[list[float], list[Estimate]]] = {}
    for top, _, group in spans_of(groups):
        for number, (name, value) in enumerate(group.values.items()):
            at, values = series.setdefault(name, ([], []))
            at.append(top + 0.5 + number)
            values.append(value)
    return series


def spans_of(groups: Iterable[Group]) -> Iterator[tuple[float, float, Group]]:
    """Yield the start and end of each group, and the group."""
    top = 0.0
    for group in groups:
        bottom = top + len(group.values)
        yield top, bottom, group
        top = bottom + _GAP


def folded(text: str, line: int = _LINE) -> str:
    """Return the name of a group, broken into lines that leave room for the plot."""
    folded = [part for each in text.split("\n") for part in textwrap.wrap(each, line)]
    return "\n".join(folded if len(folded) <= _LINES else [*folded[: _LINES - 1], "…"])
