# SPDX-License-Identifier: GPL-2.0-only
"""Bars: values, each with its interval and the limit of its group."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from pagemint.report.plots import style
from pagemint.report.plots.groups import Group, grouped, places, spans_of
from pagemint.report.plots.sheet import Frame, Plot, beside, errors, filling
from pagemint.report.plots.style import Look


def draw(frame: Frame, groups: Sequence[Group], limit: str, digits: int = 1) -> Plot:
    """Draw the values as horizontal bars with their intervals, in groups.

    Args:
        frame: the text around it.
        groups: the groups from top to bottom.
        limit: the name of the groups' limits, for the legend.
        digits: decimal places of the values beside the bars.
    """

    def paint(axes: Axes, series: dict[str, Look]) -> None:
        for name, (at, values) in places(groups).items():
            look = series[name]
            axes.barh(
                at,
                [each.value for each in values],
                xerr=errors(values),
                **filling(look),
                error_kw={"ecolor": style.INK, "elinewidth": 0.8, "capsize": 1.8},
                label=name,
            )
            for y, each in zip(at, values, strict=True):
                beside(axes, each.high, y, f"{each.value:.{digits}f}")
        for top, bottom, group in spans_of(groups):
            if group.limit is not None:
                axes.vlines(group.limit, top, bottom, style.INK, (0, (4, 2)), lw=1.3, label=limit)
        most = max(each.high for group in groups for each in group.values.values())
        axes.set_xlim(0, 1.14 * most)
        axes.grid(axis="y", visible=False)

    return grouped(frame, groups, paint)
