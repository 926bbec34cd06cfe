# SPDX-License-Identifier: GPL-2.0-only
"""The summary: for each case one bar, whose full length is mainline's."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from pagemint.report.plots import sheet, style
from pagemint.report.plots.groups import draw_rows, folded
from pagemint.report.plots.sheet import Frame, Plot, beside, errors
from pagemint.results.estimates import Estimate

_LINE = 22  # most characters of a line in the name of a case
_BEFORE, _NOW, _EXPECTED = (style.LOOKS[name] for name in ("base", "streaming", "published"))


@dataclass(frozen=True)
class Bar:
    """The bar of a case, in per cent of mainline's.

    Attributes:
        name: the name of the case.
        now: ours.
        between: a value that is compared with both, drawn as a mark; None if there is none.
        text: the gain, in words.
    """

    name: str
    now: Estimate
    between: float | None
    text: str


def draw(frame: Frame, bars: Sequence[Bar], names: tuple[str, str, str]) -> Plot:
    """Draw the bars; `names` are those of mainline, of the marks, and of ours."""
    before, between, now = names
    names_of = [folded(bar.name, _LINE) for bar in bars]
    lines = max(name.count("\n") for name in names_of) + 1
    values = [bar.now for bar in bars]
    marks = [(bar.between, y) for y, bar in enumerate(bars) if bar.between is not None]

    def paint(axes: Axes) -> None:
        at = range(len(bars))
        sheet.bars(axes, at, [100] * len(bars), _BEFORE, label=before, height=0.66)
        widths, ink = [each.value for each in values], style.FAINT
        sheet.bars(axes, at, widths, _NOW, label=now, height=0.4, xerr=errors(values), ecolor=ink)
        if marks:
            axes.plot(
                [x for x, _ in marks],
                [y for _, y in marks],
                _EXPECTED.marker,
                ms=6.5,
                mfc=_EXPECTED.colour,
                mec=style.INK,
                mew=0.8,
                label=between,
            )
        for y, bar in enumerate(bars):
            beside(axes, max(100, bar.now.high, (bar.between or 0) + 2), y, bar.text)
        most = max(100, *(each.high for each in values), *(x for x, _ in marks))
        axes.set_xlim(0, 1.2 * most)

    height = len(bars) * max(2.1, 0.95 * lines)
    return draw_rows(frame, height, dict(enumerate(names_of)), (-0.6, len(bars) - 0.4), paint)
