# SPDX-License-Identifier: GPL-2.0-only
"""The sheet of every plot: heading, axes, legend, and how it is rendered."""

import io
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.container import Container
from matplotlib.figure import Figure

from pagemint.report.plots import style
from pagemint.report.svg import tidied
from pagemint.results.estimates import Estimate

_WIDTH = 5.0  # inches, 360 units of the SVG: the width of a telephone's screen
_DPI = 160  # of the PNGs
_LONGEST = 34  # most characters of a name in a legend


@dataclass(frozen=True)
class Plot:
    """A plot that has been drawn.

    Attributes:
        name: the name of its files, without the suffix.
        title: its heading.
        svg: follows light and dark if the page has DARK_CSS.
        png: light.
        series: the number of series in it.
        note: see Frame.
    """

    name: str
    title: str
    svg: str
    png: bytes
    series: int
    note: str

    @property
    def file(self) -> str:
        """The SVG as a file of its own, which follows light and dark by itself."""
        head, mark, rest = self.svg.partition(">")
        return f"{head}{mark}<style>{style.DARK_CSS}</style>{rest}\n"


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


def draw(frame: Frame, height: float, paint: Callable[[Axes], None]) -> Plot:
    """Draw a figure with its heading, `height` inches of axes that `paint` fills, and a legend."""
    with mpl.rc_context(style.STYLE):
        figure, axes = _sheet(frame, height)
        paint(axes)
        return _finished(frame, figure, axes)


def bars(
    axes: Axes, at: Sequence[float], widths: Sequence[float], look: style.Look, **more: object
) -> None:
    """Draw horizontal bars, 1 apart; `more` are further arguments of barh()."""
    usual: dict[str, Any] = {
        "height": 0.84,
        "color": look.colour,
        "hatch": look.hatch,
        "hatchcolor": look.hatched,
        "edgecolor": style.INK,
        "linewidth": 0.5,
        "ecolor": style.INK,
        "capsize": 1.8,
        "error_kw": {"elinewidth": 0.8},
    }
    axes.barh(at, widths, **(usual | more))


def _sheet(frame: Frame, height: float) -> tuple[Figure, Axes]:
    """Return a figure with its heading, and with room for `height` inches of axes."""
    head, legend = 0.5, 0.5
    whole = head + height + legend
    figure = Figure(figsize=(_WIDTH, whole), layout="constrained")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(rect=(0.01, 0.01, 0.98, 1 - head / whole - 0.01))  # type: ignore[call-arg]
    figure.text(0.015, 1 - 0.08 / whole, frame.title, gid="title", size=11, weight="bold", va="top")
    figure.text(0.015, 1 - 0.29 / whole, frame.about, color=style.FAINT, size=8.5, va="top")
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
    text = tidied(svg.getvalue(), frame.name, alt)
    return Plot(frame.name, frame.title, text, png.getvalue(), max(1, len(order)), frame.note)


def errors(values: Sequence[Estimate]) -> list[list[float]]:
    """Return the reach of the intervals to both sides; NaN, which is not drawn, if one has none."""
    below = [each.value - each.low if each.known else math.nan for each in values]
    return [below, [each.high - each.value if each.known else math.nan for each in values]]


def beside(axes: Axes, x: float, y: float, text: str) -> None:
    """Write a value to the right of its mark."""
    paper = {"fc": style.PAPER, "ec": "none", "pad": 0.4}  # keeps a limit's line out of the text
    axes.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", size=8, bbox=paper)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
