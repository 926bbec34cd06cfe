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
from pagemint.report import count_plots, drawings, summary
from pagemint.report.plots import style
from pagemint.report.plots.sheet import Plot
from pagemint.report.svg import Names
from pagemint.results import cases, checks, counted, estimates, headlines
from pagemint.results.compare import Comparison, compare
from pagemint.results.rows import Case, Result
from pagemint.results.verdict import Judged

_MOST_PARTS = 16  # workloads with plots: a hostile result may have thousands


@dataclass(frozen=True)
class Part:
    """The folded part of the page on one workload.

    Attributes:
        name: the workload.
        sentences: what was found; none if nothing was compared.
        cases: its cases.
        plots: its plots.
    """

    name: str
    sentences: list[str]
    cases: list[Case]
    plots: list[Plot]


@dataclass(frozen=True)
class Section:
    """The part of the page on one result.

    Attributes:
        tag: a letter, if there are several.
        judged: the result.
        parts: its workloads.
        counts: the plots of counted operations.
    """

    tag: str
    judged: Judged
    parts: list[Part]
    counts: list[Plot]


def make(results: Sequence[Result]) -> tuple[str, list[Plot]]:
    """Return the page, and the plots that are on it."""
    several = len(results) > 1
    names = Names()
    tags = [letter if several else "" for letter in string.ascii_uppercase[: len(results)]]
    sections = [
        _section(tag, Judged(result), names) for tag, result in zip(tags, results, strict=True)
    ]
    tagged = [(section.tag, section.judged) for section in sections]
    timed = [(tag, judged) for tag, judged in tagged if judged.result.host.times_comparable]
    first = summary.of_times(timed, names)
    if not first and not several:
        first = summary.of_counts(results[0], names)
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
        "condition": cases.condition,
        "bound": lambda case, judged: any(line.row.bind_ms for line in judged.lines[case].values()),
    }
    text = environment.get_template("page.html.j2").render(
        sections=sections,
        first=first,
        comparisons=comparisons,
        dark=Markup(style.DARK_CSS),
        safe_svg=lambda plot: Markup(plot.svg),
        counted=counted,
        returns=returns.NAMES,
        best_limit=lambda limits, kind: max(
            (estimates.limit_bytes_per_s(limit) / 1e9 for limit in limits if limit.kind == kind),
            default=None,
        ),
        pairs=checks.pairs,
        others_tests=checks.others_tests,
        version=__version__,
    )
    plots = [first.picture] if first else []
    for section in sections:
        plots += [plot for part in section.parts for plot in part.plots]
        plots += section.counts
    return text, plots


def _section(tag: str, judged: Judged, names: Names) -> Section:
    members: dict[str, list[Case]] = {}
    for case in sorted(judged.lines, key=headlines.rank):
        members.setdefault(case.workload, []).append(case)
    sentences = judged.sentences()
    comparable = judged.result.host.times_comparable
    parts = [
        Part(
            name,
            sentences.get(name, []),
            mine,
            drawings.draw(judged, mine, tag, names) if comparable and number < _MOST_PARTS else [],
        )
        for number, (name, mine) in enumerate(members.items())
    ]
    return Section(tag, judged, parts, count_plots.draw(judged.result, tag, names))
