# SPDX-License-Identifier: GPL-2.0-only
"""Deviations: all runs, each against the median of its series."""

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes

from pagemint.report.plots import style
from pagemint.report.plots.groups import Group, grouped, places
from pagemint.report.plots.sheet import Frame, Plot
from pagemint.report.plots.style import Look
from pagemint.results.estimates import Estimate


def draw(frame: Frame, groups: Sequence[tuple[str, dict[str, list[float]]]]) -> Plot:
    """Draw all runs, each as the per cent by which it differs from the median of its series."""
    shown = [
        Group(name, {series: _about_zero(runs) for series, runs in members.items()})
        for name, members in groups
    ]

    def paint(axes: Axes, series: dict[str, Look]) -> None:
        axes.axvline(0, color=style.INK, lw=0.8)
        taken: dict[str, list[list[float]]] = {}
        for _, members in groups:
            for name, runs in members.items():
                middle = statistics.median(runs)
                points = [100 * (run / middle - 1) for run in runs]
                taken.setdefault(name, []).append(points)
        thin = {"color": style.FAINT, "lw": 0.7}
        for name, (at, _) in places(shown).items():
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
        axes.grid(axis="y", visible=False)

    return grouped(frame, shown, paint)


def _about_zero(runs: Sequence[float]) -> Estimate:
    return Estimate(statistics.median(runs), min(runs), max(runs), len(runs))
