# SPDX-License-Identifier: GPL-2.0-only
"""Values in rows, in groups one below the other: as bars, or every run as a point."""

import statistics
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pagemint.report.plots import sheet, style
from pagemint.report.plots.sheet import Frame, Plot, bars, beside, errors
from pagemint.report.plots.style import Look
from pagemint.results.estimates import Estimate

_BAR = 0.165  # inches for each bar
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


def draw_bars(frame: Frame, groups: Sequence[Group], limit: str, digits: int) -> Plot:
    """Draw the values as horizontal bars with their intervals, in groups.

    Args:
        frame: the text around it.
        groups: the groups from top to bottom.
        limit: the name of the groups' limits, for the legend.
        digits: decimal places of the values beside the bars.
    """

    def paint(axes: Axes, series: dict[str, Look]) -> None:
        for name, (at, values) in _places(groups).items():
            widths = [each.value for each in values]
            bars(axes, at, widths, series[name], xerr=errors(values), label=name)
            for y, each in zip(at, values, strict=True):
                beside(axes, each.high, y, f"{each.value:.{digits}f}")
        for top, bottom, group in _spans(groups):
            if group.limit is not None:
                axes.vlines(group.limit, top, bottom, style.INK, (0, (4, 2)), lw=1.3, label=limit)
        most = max(each.high for group in groups for each in group.values.values())
        axes.set_xlim(0, 1.14 * most)

    return _grouped(frame, groups, paint)


def draw_runs(frame: Frame, groups: Sequence[tuple[str, dict[str, list[float]]]]) -> Plot:
    """Draw all runs, each as the per cent by which it differs from the median of its series."""
    # Only the names of the series matter: paint() takes the values from the runs.
    unused = Estimate(0, 0, 0, 0)
    shown = [Group(name, dict.fromkeys(members, unused)) for name, members in groups]

    def paint(axes: Axes, series: dict[str, Look]) -> None:
        axes.axvline(0, color=style.INK, lw=0.8)
        taken: dict[str, list[list[float]]] = {}
        for _, members in groups:
            for name, runs in members.items():
                middle = statistics.median(runs)
                points = [100 * (run / middle - 1) for run in runs]
                taken.setdefault(name, []).append(points)
        thin = {"color": style.FAINT, "lw": 0.7}
        for name, (at, _) in _places(shown).items():
            look = series[name]
            axes.boxplot(
                taken[name],
                positions=at,
                orientation="horizontal",
                widths=0.7,
                showfliers=False,
                manage_ticks=False,
                boxprops=thin,
                whiskerprops=thin,
                capprops=thin,
                medianprops={"color": style.INK, "lw": 1.4},
            )
            axes.plot(
                [point for points in taken[name] for point in points],
                [y for y, points in zip(at, taken[name], strict=True) for _ in points],
                look.marker,
                ms=3.6,
                mfc=look.colour,
                mec=style.INK,
                mew=0.4,
                label=name,
            )

    return _grouped(frame, shown, paint)


def draw_rows(
    frame: Frame,
    height: float,
    names: Mapping[float, str],
    ends: tuple[float, float],
    paint: Callable[[Axes], None],
) -> Plot:
    """Draw a plot whose rows have names at the axis, by their places from the top, in bars.

    `ends` are the places of the upper and the lower end; `paint` fills the axes.
    """

    def whole(axes: Axes) -> None:
        paint(axes)
        axes.set_yticks(list(names), list(names.values()))
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(*reversed(ends))
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(frame.axis, gid="unit")

    return sheet.draw(frame, height * _BAR + 0.55, whole)


def folded(text: str, line: int = _LINE) -> str:
    """Return the name of a group, broken into lines that leave room for the plot."""
    folded = [part for each in text.split("\n") for part in textwrap.wrap(each, line)]
    return "\n".join(folded if len(folded) <= _LINES else [*folded[: _LINES - 1], "…"])


def _grouped(
    frame: Frame,
    groups: Sequence[Group],
    paint: Callable[[Axes, dict[str, Look]], None],
) -> Plot:
    """Draw a plot with its groups one below the other."""
    series = style.looks_of(name for group in groups for name in group.values)
    spans = list(_spans(groups))

    def whole(axes: Axes) -> None:
        paint(axes, series)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))

    names = {(top + bottom) / 2: folded(group.name) for top, bottom, group in spans}
    bottom = spans[-1][1]
    return draw_rows(frame, bottom + _GAP, names, (-_GAP / 2, bottom + _GAP / 2), whole)


def _places(groups: Iterable[Group]) -> dict[str, tuple[list[float], list[Estimate]]]:
    """Return the values of each series, and their places from the top."""
    series: dict[str, tuple[list[float], list[Estimate]]] = {}
    for top, _, group in _spans(groups):
        for number, (name, value) in enumerate(group.values.items()):
            at, values = series.setdefault(name, ([], []))
            at.append(top + 0.5 + number)
            values.append(value)
    return series


def _spans(groups: Iterable[Group]) -> Iterator[tuple[float, float, Group]]:
    """Yield the start and end of each group, and the group."""
    top = 0.0
    for group in groups:
        bottom = top + len(group.values)
        yield top, bottom, group
        top = bottom + _GAP
