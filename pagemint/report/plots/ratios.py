# SPDX-License-Identifier: GPL-2.0-only
"""Ratios: points with their intervals, against the line at 1."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from pagemint.report.plots import style
from pagemint.report.plots.groups import Group, grouped, places, spans_of
from pagemint.report.plots.sheet import Frame, Plot, beside, errors
from pagemint.report.plots.style import Look


def draw(frame: Frame, groups: Sequence[Group]) -> Plot:
    """Draw ratios as points with their intervals, in groups, against the line at 1.

    A stroke beside each point shows the ratio of the fastest runs.
    """

    def paint(axes: Axes, series: dict[str, Look]) -> None:
        for top, bottom, group in spans_of(groups):
            low, high = 1 / group.noise, group.noise
            if high > 1:
                label = "same code"
                axes.fill_betweenx([top, bottom], low, high, color=style.GRID, lw=0, label=label)
        axes.axvline(1, color=style.INK, lw=1)
        for name, (at, values) in places(groups).items():
            axes.errorbar(
                [each.value for each in values],
                at,
                xerr=errors(values),
                fmt=series[name].marker,
                color=series[name].colour,
                **style.POINTS,
                label=name,
            )
            fastest = [group.fastest[name] for group in groups if name in group.values]
            axes.plot(fastest, at, "|", ms=9, mew=1.4, color=style.INK, label="fastest runs")
            for y, each, other in zip(at, values, fastest, strict=True):
                beside(axes, max(each.high, other), y, f"{each.value:.2f}x, {other:.2f}x")
        all_values = [each for group in groups for each in group.values.values()]
        all_fastest = [each for group in groups for each in group.fastest.values()]
        low = min(1, *all_fastest, *(each.low for each in all_values))
        high = max(1, *all_fastest, *(each.high for each in all_values))
        wide = max(high - low, 0.1)
        axes.set_xlim(low - 0.06 * wide, high + 0.36 * wide)
        axes.grid(axis="y", visible=False)

    return grouped(frame, groups, paint)
