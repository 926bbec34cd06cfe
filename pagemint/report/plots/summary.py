# SPDX-License-Identifier: GPL-2.0-only
"""The summary: for each case one bar, whose full length is mainline's."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl

from pagemint.report.plots import style
from pagemint.report.plots.groups import BAR, folded
from pagemint.report.plots.sheet import Frame, Plot, beside, errors, filling, finished, sheet
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
    with mpl.rc_context(style.STYLE):
        named = [folded(bar.name, _LINE) for bar in bars]
        lines = max(name.count("\n") for name in named) + 1
        figure, axes = sheet(frame, len(bars) * max(2.1, 0.95 * lines) * BAR + 0.55)
        at = list(range(len(bars)))
        axes.barh(at, [100] * len(bars), **{**filling(_BEFORE), "height": 0.66}, label=before)
        values = [bar.now for bar in bars]
        axes.barh(
            at,
            [each.value for each in values],
            xerr=errors(values),
            **{**filling(_NOW), "height": 0.4},
            error_kw={"ecolor": style.FAINT, "elinewidth": 0.8, "capsize": 1.8},
            label=now,
        )
        marks = [(bar.between, y) for y, bar in enumerate(bars) if bar.between is not None]
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
        axes.set_yticks(at, named)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        most = max(100, *(each.high for each in values), *(x for x, _ in marks))
        axes.set_xlim(0, 1.2 * most)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(frame.axis, gid="unit")
        return finished(frame, figure, axes)
