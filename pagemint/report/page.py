# SPDX-License-Identifier: GPL-2.0-only
"""Makes the report: one HTML page with results in words, tables and plots."""

import itertools
import statistics
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pagemint import __version__
from pagemint.base import returns
from pagemint.base.sizes import format_size
from pagemint.report import count_plots, drawings
from pagemint.report.plots import style
from pagemint.report.plots.sheet import Plot
from pagemint.report.svg import Names
from pagemint.results import cases, checks, counted, estimates
from pagemint.results.compare import Comparison, compare
from pagemint.results.rows import Limit, Result
from pagemint.results.verdict import Judged


@dataclass(frozen=True)
class Section:
    """The part of the page on one result.

    Attributes:
        tag: a letter, if there are several.
        judged: the result.
        plots: in the order of the page.
    """

    tag: str
    judged: Judged
    plots: list[Plot]


def make(results: Sequence[Result]) -> tuple[str, list[Plot]]:
    """Return the page, and the plots that are on it."""
    several = len(results) > 1
    names = Names()
    sections = []
    for letter, result in zip(string.ascii_uppercase, results, strict=False):
        tag = letter if several else ""
        judged = Judged(result)
        drawn: list[Plot] = []
        if result.host.times_comparable:
            drawn = drawings.draw(judged, tag, names)
        drawn += count_plots.draw(result, tag, names)
        sections.append(Section(tag, judged, drawn))
    comparisons: list[tuple[str, Comparison]] = [
        (f"{a.tag} and {b.tag}", compare(a.judged, b.judged))
        for a, b in itertools.pairwise(sections)
    ]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": format_size,
        "median": statistics.median,
        "title": cases.title,
        "units": cases.units,
        "bound": lambda case, judged: any(line.row.bind_ms for line in judged.lines[case].values()),
    }
    text = environment.get_template("page.html.j2").render(
        sections=sections,
        comparisons=comparisons,
        dark=Markup(style.DARK_CSS),
        safe_svg=lambda plot: Markup(plot.svg),
        condition=cases.condition,
        counted=counted,
        returns=returns.NAMES,
        fewest=estimates.FEWEST,
        best_limit=_best_limit,
        pairs=checks.pairs,
        others_tests=checks.others_tests,
        version=__version__,
    )
    return text, [plot for section in sections for plot in section.plots]


def _best_limit(limits: Sequence[Limit], kind: str) -> float | None:
    """Return the GB/s of the fastest limit of a kind, or None without one."""
    speeds = [estimates.limit_bytes_per_s(limit) / 1e9 for limit in limits if limit.kind == kind]
    return max(speeds, default=None)
