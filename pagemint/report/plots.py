# SPDX-License-Identifier: GPL-2.0-only
"""Draws the plots of a report, each as an SVG that follows light and dark, and as a PNG.

Readers can tell the series apart without colour: by hatch in bars, by marker and line elsewhere.
"""

import io
import itertools
import logging
import math
import statistics
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from pagemint.base.sizes import format_size
from pagemint.report import svg_text
from pagemint.results.estimates import Estimate

_INK, _FAINT, _GRID, _PAPER = "#1f2328", "#626a73", "#e2e5e9", "#ffffff"


@dataclass(frozen=True)
class Look:
    """The look of a series.

    Attributes:
        colour: the colour of its bars and lines.
        hatch: the hatch of its bars.
        marker: the marker of its points.
        line: its line style.
        hatched: the colour of the hatch.
    """

    colour: str
    hatch: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]
    hatched: str = "#ffffff"


LOOKS = {
    "base": Look("#a3aab3", "", "o", "-"),
    "slow": Look("#d5d9de", "|||||", "s", ":", _FAINT),
    "base2": Look("#c3aed6", "xxxxx", "P", (0, (3, 1, 1, 1))),
    "cached": Look("#9cc3e6", "/////", "^", "--"),
    "streaming": Look("#123f6d", "", "v", (0, (7, 2))),
    "published": Look("#c8702a", "\\\\\\\\\\", "D", "-."),
    "patched": Look("#1d5b4f", "+++++", ">", (0, (7, 2))),
    "streamed": Look("#8cc7b5", "-----", "<", "-."),
}
"""The looks of the known series; all others take one of OTHERS."""

OTHERS = (
    Look("#7d559f", "..", "X", (0, (1, 1))),
    Look("#4a8ac6", "oo", "*", (0, (5, 1, 1, 1, 1, 1))),
    Look("#7a6a21", "O", "p", (0, (9, 3))),
    Look("#d8c878", "**", "h", (0, (2, 3))),
)

DARK = {
    _INK: "#e4e7eb",
    _FAINT: "#9aa4af",
    _GRID: "#2c333b",
    _PAPER: "#161a1f",
    "#a3aab3": "#7f8791",
    "#d5d9de": "#535b65",
    "#9cc3e6": "#33608c",
    "#4a8ac6": "#5c9fdd",
    "#123f6d": "#c2e0fb",
    "#c8702a": "#e79a5a",
    "#1d5b4f": "#bfeadd",
    "#8cc7b5": "#3f7a6a",
    "#7d559f": "#b794d6",
    "#c3aed6": "#5d4a73",
    "#7a6a21": "#d9c763",
    "#d8c878": "#6b5f2a",
}

_RULES = (
    f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}'
    for light, dark in DARK.items()
)
DARK_CSS = f"@media screen and (prefers-color-scheme: dark){{{''.join(_RULES)}}}"
"""Makes the SVGs dark for a reader with a dark screen, but not in print."""

_STYLE: Any = {
    "axes.edgecolor": _FAINT,
    "axes.facecolor": _PAPER,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": _INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": _PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": _GRID,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.labelcolor": _INK,
    "legend.borderpad": 0,
    "legend.columnspacing": 1.4,
    "svg.fonttype": "none",
    "text.color": _INK,
    "text.parse_math": False,
    "xtick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "xtick.labelsize": 8.5,
    "ytick.color": _FAINT,
    "ytick.labelcolor": _INK,
    "ytick.labelsize": 8.5,
}
_POINTS: Any = {"ms": 5.5, "mec": _INK, "mew": 0.6, "ecolor": _INK, "elinewidth": 0.9, "capsize": 2}
_WIDTH = 5.0  # inches, 360 units of the SVG: the width of a telephone's screen
_DPI = 160  # of the PNGs
_BAR = 0.165  # inches for each bar
_GAP = 0.7  # space between two groups, in bars
_LONGEST = 34  # most characters of a name in a legend
_LINE, _LINES = 18, 4  # most characters of a line, and most lines, in the name of a group


@dataclass(frozen=True)
class Group:
    """Values that are drawn side by side: those of a workload, or of a machine.

    Attributes:
        name: its label at the axis.
        values: the value of each series that has one.
        limit: the value of its limit, if that is known.
        noise: the ratio by which the same code differs from itself, 1 if that is not known.
        fastest: the ratio of the fastest runs of each series; only `ratios` draws it.
    """

    name: str
    values: dict[str, Estimate]
    limit: float | None = None
    noise: float = 1.0
    fastest: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Plot:
    """A plot that has been drawn.

    Attributes:
        name: the name of its files, without the suffix.
        title: its heading.
        alt: its description, for readers who cannot see it.
        svg: follows light and dark if the page has DARK_CSS.
        png: light.
        series: the number of series in it.
        note: see Frame.
    """

    name: str
    title: str
    alt: str
    svg: str
    png: bytes
    series: int
    note: str

    @property
    def file(self) -> str:
        """The SVG as a file of its own, which follows light and dark by itself."""
        head, mark, rest = self.svg.partition(">")
        return f"{head}{mark}<style>{DARK_CSS}</style>{rest}\n"


@dataclass(frozen=True)
class Frame:
    """The text around a plot.

    Attributes:
        name: the name of its files, without the suffix.
        title: its heading, up to 50 characters.
        about: the line below the heading, up to 70 characters: the condition of all its values.
        axis: the quantity and its unit.
        note: a sentence or two below the plot, on the page only.
    """

    name: str
    title: str
    about: str
    axis: str
    note: str = ""


def bars(frame: Frame, groups: Sequence[Group], limit: str, digits: int = 1) -> Plot:
    """Draw the values as horizontal bars with their intervals, in groups.

    Args:
        frame: the text around it.
        groups: the groups from top to bottom.
        limit: the name of the groups' limits, for the legend.
        digits: decimal places of the values beside the bars.
    """

    def draw(axes: Axes, series: dict[str, Look]) -> None:
        for name, (at, values) in _places(groups).items():
            look = series[name]
            axes.barh(
                at,
                [each.value for each in values],
                xerr=_errors(values),
                height=0.84,
                color=look.colour,
                hatch=look.hatch,
                hatchcolor=look.hatched,
                edgecolor=_INK,
                linewidth=0.5,
                error_kw={"ecolor": _INK, "elinewidth": 0.8, "capsize": 1.8},
                label=name,
            )
            for y, each in zip(at, values, strict=True):
                _beside(axes, each.high, y, f"{each.value:.{digits}f}")
        for top, bottom, group in _spans(groups):
            if group.limit is not None:
                axes.vlines(group.limit, top, bottom, _INK, (0, (4, 2)), lw=1.3, label=limit)
        most = max(each.high for group in groups for each in group.values.values())
        axes.set_xlim(0, 1.14 * most)
        axes.grid(axis="y", visible=False)

    return _grouped(frame, groups, draw)


def ratios(frame: Frame, groups: Sequence[Group]) -> Plot:
    """Draw ratios as points with their intervals, in groups, against the line at 1.

    A stroke beside each point shows the ratio of the fastest runs.
    """

    def draw(axes: Axes, series: dict[str, Look]) -> None:
        for top, bottom, group in _spans(groups):
            low, high = 1 / group.noise, group.noise
            if high > 1:
                label = "same code"
                axes.fill_betweenx([top, bottom], low, high, color=_GRID, lw=0, label=label)
        axes.axvline(1, color=_INK, lw=1)
        for name, (at, values) in _places(groups).items():
            axes.errorbar(
                [each.value for each in values],
                at,
                xerr=_errors(values),
                fmt=series[name].marker,
                color=series[name].colour,
                **_POINTS,
                label=name,
            )
            fastest = [group.fastest[name] for group in groups if name in group.values]
            axes.plot(fastest, at, "|", ms=9, mew=1.4, color=_INK, label="fastest runs")
            for y, each, other in zip(at, values, fastest, strict=True):
                _beside(axes, max(each.high, other), y, f"{each.value:.2f}x, {other:.2f}x")
        all_values = [each for group in groups for each in group.values.values()]
        all_fastest = [each for group in groups for each in group.fastest.values()]
        low = min(1, *all_fastest, *(each.low for each in all_values))
        high = max(1, *all_fastest, *(each.high for each in all_values))
        wide = max(high - low, 0.1)
        axes.set_xlim(low - 0.06 * wide, high + 0.36 * wide)
        axes.grid(axis="y", visible=False)

    return _grouped(frame, groups, draw)


def deviations(frame: Frame, groups: Sequence[tuple[str, dict[str, list[float]]]]) -> Plot:
    """Draw all runs, each as the per cent by which it differs from the median of its series."""
    shown = [
        Group(name, {series: _about_zero(runs) for series, runs in members.items()})
        for name, members in groups
    ]

    def draw(axes: Axes, series: dict[str, Look]) -> None:
        axes.axvline(0, color=_INK, lw=0.8)
        places = _places(shown)
        taken: dict[str, list[list[float]]] = {}
        for _, members in groups:
            for name, runs in members.items():
                middle = statistics.median(runs)
                points = [100 * (run / middle - 1) for run in runs]
                taken.setdefault(name, []).append(points)
        thin = {"color": _FAINT, "lw": 0.7}
        for name, (at, _) in places.items():
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
                medianprops={"color": _INK, "lw": 1.4},
            )
            axes.plot(
                [point for points in taken[name] for point in points],
                [y for y, points in zip(at, taken[name], strict=True) for _ in points],
                look.marker,
                ms=3.6,
                mfc=look.colour,
                mec=_INK,
                mew=0.4,
                label=name,
            )
        axes.grid(axis="y", visible=False)

    return _grouped(frame, shown, draw)


def curves(
    frame: Frame,
    values: dict[str, dict[int, Estimate]],
    limit: tuple[str, dict[int, float]],
    sizes: str,
    *,
    as_bytes: bool,
) -> Plot:
    """Draw values against a size or a number, as lines with intervals.

    Args:
        frame: the text around it.
        values: for each series, the values by their place on the horizontal axis.
        limit: the name of the limit, and its values by their place on the horizontal axis.
        sizes: the quantity of the horizontal axis, and its unit.
        as_bytes: whether that quantity is bytes, which are drawn on a logarithmic axis.
    """
    series = _looks(values)

    def draw(axes: Axes) -> None:
        for name, points in values.items():
            look = series[name]
            at = sorted(points)
            axes.errorbar(
                at,
                [points[x].value for x in at],
                yerr=_errors([points[x] for x in at]),
                fmt=look.marker,
                ls=look.line,
                lw=1.6,
                color=look.colour,
                **_POINTS,
                label=name,
            )
        text, limits = limit
        if limits:
            at = sorted(limits)
            axes.plot(at, [limits[x] for x in at], color=_INK, ls=(0, (4, 2)), lw=1.3, label=text)
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

    with mpl.rc_context(_STYLE):
        figure, axes = _sheet(frame, 3.0)
        draw(axes)
        return _finished(frame, figure, axes)


def _grouped(
    frame: Frame,
    groups: Sequence[Group],
    draw: Callable[[Axes, dict[str, Look]], None],
) -> Plot:
    """Make a plot with its groups one below the other."""
    series = _looks(name for group in groups for name in group.values)
    count = sum(len(group.values) + _GAP for group in groups)
    with mpl.rc_context(_STYLE):
        figure, axes = _sheet(frame, count * _BAR + 0.55)
        draw(axes, series)
        spans = list(_spans(groups))
        axes.set_yticks(
            [(top + bottom) / 2 for top, bottom, _ in spans],
            [_folded(group.name) for _, _, group in spans],
        )
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(spans[-1][1] + _GAP / 2, spans[0][0] - _GAP / 2)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.set_xlabel(frame.axis, gid="unit")
        return _finished(frame, figure, axes)


def _sheet(frame: Frame, height: float) -> tuple[Figure, Axes]:
    """Return a figure with its heading, and with room for `height` inches of axes."""
    head, legend = 0.5, 0.5
    whole = head + height + legend
    figure = Figure(figsize=(_WIDTH, whole), layout="constrained")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(rect=(0.01, 0.01, 0.98, 1 - head / whole - 0.01))  # type: ignore[call-arg]
    figure.text(0.015, 1 - 0.08 / whole, frame.title, gid="title", size=11, weight="bold", va="top")
    figure.text(0.015, 1 - 0.29 / whole, frame.about, color=_FAINT, size=8.5, va="top")
    axes = figure.subplots()
    assert isinstance(axes, Axes)
    return figure, axes


def _finished(frame: Frame, figure: Figure, axes: Axes) -> Plot:
    """Add the legend, and render the figure."""
    handles, labels = axes.get_legend_handles_labels()
    first = {name: each for each, name in zip(handles, labels, strict=True)}
    # The legend ends with entries that are not series, such as a limit.
    order = sorted(first, key=lambda name: not isinstance(first[name], Container))
    if len(order) > 1:
        figure.legend(
            [first[name] for name in order],
            [_short(name) for name in order],
            loc="outside lower left",
            ncols=3 if max(map(len, order)) < 18 else 2,
        ).set_gid("legend")
    quiet = logging.getLogger("matplotlib")
    level = quiet.level
    svg, png = io.StringIO(), io.BytesIO()
    try:
        quiet.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            # A name may have characters that the font lacks.
            warnings.simplefilter("ignore")
            # savefig() would draw everything twice for the layout, which is done already.
            with mpl.rc_context({"svg.hashsalt": frame.name}):
                FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
            figure.set_layout_engine("none")
            figure.dpi = _DPI
            FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})  # type: ignore[no-untyped-call]
    finally:
        quiet.setLevel(level)
    alt = f"{frame.title}, {frame.about}: {frame.axis} of {', '.join(order)}"
    text = svg_text.tidied(svg.getvalue(), frame.name, alt)
    return Plot(frame.name, frame.title, alt, text, png.getvalue(), max(1, len(order)), frame.note)


def _errors(values: Sequence[Estimate]) -> list[list[float]]:
    """Return the reach of the intervals to both sides; NaN, which is not drawn, if one has none."""
    below = [each.value - each.low if each.known else math.nan for each in values]
    return [below, [each.high - each.value if each.known else math.nan for each in values]]


def _beside(axes: Axes, x: float, y: float, text: str) -> None:
    """Write a value to the right of its mark."""
    paper = {"fc": _PAPER, "ec": "none", "pad": 0.4}  # keeps a limit's line out of the text
    axes.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", size=8, bbox=paper)


def _places(groups: Iterable[Group]) -> dict[str, tuple[list[float], list[Estimate]]]:
    """Return the values of each series, and their places from the top."""
    found: dict[str, tuple[list[float], list[Estimate]]] = {}
    for top, _, group in _spans(groups):
        for number, (name, value) in enumerate(group.values.items()):
            at, values = found.setdefault(name, ([], []))
            at.append(top + 0.5 + number)
            values.append(value)
    return found


def _spans(groups: Iterable[Group]) -> Iterator[tuple[float, float, Group]]:
    """Yield the start and end of each group, and the group."""
    top = 0.0
    for group in groups:
        bottom = top + len(group.values)
        yield top, bottom, group
        top = bottom + _GAP


def _looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each series; unknown series take the looks of OTHERS in turn."""
    others = itertools.cycle(OTHERS)
    return {name: LOOKS.get(name) or next(others) for name in dict.fromkeys(names)}


def _about_zero(runs: Sequence[float]) -> Estimate:
    return Estimate(statistics.median(runs), min(runs), max(runs), len(runs))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _folded(text: str) -> str:
    """Return the name of a group, broken into lines that leave room for the plot."""
    folded = [part for line in text.split("\n") for part in textwrap.wrap(line, _LINE)]
    return "\n".join(folded if len(folded) <= _LINES else [*folded[: _LINES - 1], "…"])
