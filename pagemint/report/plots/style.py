# SPDX-License-Identifier: GPL-2.0-only
"""The look of all plots: colours, hatches, markers and lines, for light and for dark.

Readers can tell the series apart without colour: by hatch in bars, by marker and line elsewhere.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

INK, FAINT, GRID, PAPER = "#1f2328", "#626a73", "#e2e5e9", "#ffffff"


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
    "slow": Look("#d5d9de", "|||||", "s", ":", FAINT),
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
    INK: "#e4e7eb",
    FAINT: "#9aa4af",
    GRID: "#2c333b",
    PAPER: "#161a1f",
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

STYLE: Any = {
    "axes.edgecolor": FAINT,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.labelcolor": INK,
    "legend.borderpad": 0,
    "legend.columnspacing": 1.4,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}
POINTS: Any = {"ms": 5.5, "mec": INK, "mew": 0.6, "ecolor": INK, "elinewidth": 0.9, "capsize": 2}


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each series; unknown series take the looks of OTHERS in turn."""
    others = itertools.cycle(OTHERS)
    return {name: LOOKS.get(name) or next(others) for name in dict.fromkeys(names)}
