# SPDX-License-Identifier: GPL-2.0-only
"""Curves: values against a size or a number, as lines with intervals."""

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from pagemint.base.sizes import format_size
from pagemint.report.plots import sheet, style
from pagemint.report.plots.sheet import Frame, Plot, errors
from pagemint.results.estimates import Estimate


def draw(
    frame: Frame,
    values: dict[str, dict[int, Estimate]],
    limits: dict[int, float],
    sizes: str,
    *,
    as_bytes: bool,
) -> Plot:
    """Draw values against a size or a number, as lines with intervals.

    Args:
        frame: the text around it.
        values: for each series, the values by their place on the horizontal axis.
        limits: the fill limits by their place on the horizontal axis.
        sizes: the quantity of the horizontal axis, and its unit.
        as_bytes: whether that quantity is bytes, which are drawn on a logarithmic axis.
    """
    series = style.looks_of(values)

    def paint(axes: Axes) -> None:
        for name, points in values.items():
            look = series[name]
            at = sorted(points)
            axes.errorbar(
                at,
                [points[x].value for x in at],
                yerr=errors([points[x] for x in at]),
                fmt=look.marker,
                ls=look.line,
                lw=1.6,
                color=look.colour,
                **style.POINTS,
                label=name,
            )
        if limits:
            at = sorted(limits)
            heights = [limits[x] for x in at]
            axes.plot(at, heights, color=style.INK, ls=(0, (4, 2)), lw=1.3, label="fill limit")
        ticks = sorted({x for points in values.values() for x in points})
        if as_bytes:
            axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticklabels([format_size(x) if as_bytes else str(x) for x in ticks])
        if as_bytes and len(ticks) > 5:
            axes.tick_params(axis="x", rotation=40)
        most = max(e.high for points in values.values() for e in points.values())
        axes.set_ylim(0, 1.08 * most)
        axes.set_xlabel(sizes, gid="unit")
        axes.set_ylabel(frame.axis, gid="unit")

    return sheet.draw(frame, 3.0, paint)
