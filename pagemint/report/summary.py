# SPDX-License-Identifier: GPL-2.0-only
"""The opening of the report, which tells what one gains: one picture, and the rows of one table."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagemint.report.plots import summary
from pagemint.report.plots.sheet import Frame, Plot
from pagemint.report.plots.summary import Bar
from pagemint.report.svg import Names
from pagemint.results import cases, counted, headlines
from pagemint.results.counted import MEASURES
from pagemint.results.estimates import Estimate
from pagemint.results.headlines import MOST, Headline
from pagemint.results.rows import Result
from pagemint.results.verdict import Judged

_MS = " ms"  # left out of the cells if all times have it


@dataclass(frozen=True)
class Table:
    """A table whose first column has names.

    Attributes:
        heads: the heads of all columns.
        rows: the cells of each row; behind a line break stands what matters less.
        picture: the same rows as a plot.
    """

    heads: list[str]
    rows: list[list[str]]
    picture: Plot


def of_times(results: Sequence[tuple[str, Judged]], names: Names) -> Table | None:
    """Return the opening of some results with times, each with its letter; None without gains."""
    several = len(results) > 1
    groups: dict[str, list[tuple[str, Headline]]] = {}
    for tag, judged in results:
        for headline in headlines.chosen(judged):
            groups.setdefault(headline.title, []).append((f"{tag}: " if several else "", headline))
    rows: list[tuple[str, Headline]] = []
    for group in groups.values():
        if several and rows and len(rows) + len(group) > MOST:
            break
        rows += group
    rows = rows[:MOST]
    if not rows:
        return None
    first = results[0][1].result
    versions = dict.fromkeys(_version(judged.result) for _, judged in results)
    before = f"Linux {' and '.join(versions)}" if first.against == "base" else first.against
    expected = any(headline.expected for _, headline in rows)
    heads = ["", before, "7.4's way*", "tree" if first.trees else "ours"]
    heads += ["gain (95%)", "over 7.4's way"]
    cells = [
        [
            f"{tag}{headline.title}",
            headline.time(headline.before),
            headline.time(headline.expected) if headline.expected else "-",
            headline.time(headline.ours),
            f"{headline.gain.headline:.2f}x\n{headline.interval}",
            headline.over_expected.replace("?", "-"),
        ]
        for tag, headline in rows
    ]
    if not expected:
        heads, *cells = ([*row[:2], *row[3:5]] for row in (heads, *cells))
    about = str(cases.condition(rows[0][1].ours.row.case))
    if all(row[1].endswith(_MS) for row in cells):
        heads[1] += ", ms"
        cells = [[cell.removesuffix(_MS) for cell in row] for row in cells]
    frame = Frame(names("summary"), "Time, before and now", about, f"time (% of {before}'s)")
    ours = "trees" if first.trees else "ours"
    bars = []
    for tag, headline in rows:
        scale = 100 / headline.before.time.value
        between = headline.expected.time.value * scale if headline.expected else None
        now, text = headline.ours.time.times(scale), f"{headline.gain.headline:.2f}x"
        bars.append(Bar(f"{tag}{headline.title}", now, between, text))
    return Table(heads, cells, summary.draw(frame, bars, (before, "7.4's way", ours)))


def of_counts(result: Result, names: Names) -> Table | None:
    """Return the opening of a result of counts: the operations that change most; None without."""
    chosen = counted.most_changed(result, MOST)
    if not chosen:
        return None
    measures = [f"{measure}, {when}" for measure in MEASURES for when in ("before", "now")]
    cells = [
        [
            pair.last.name,
            *(
                counted.in_words(of(tree.total), measure)
                for measure, of in MEASURES.items()
                for tree in pair.trees
            ),
        ]
        for pair in chosen
    ]
    about = ", ".join(filter(None, (f"Linux {_version(result)}", result.host.emulated)))
    frame = Frame(names("summary"), "Work of an operation, counted", about, "counts (% of before)")
    bars = []
    for pair in chosen:
        before, now = (tree.total for tree in pair.trees)
        instructions, stored = (100 * of(now) / (of(before) or 1) for of in MEASURES.values())
        exact = Estimate(instructions, instructions, instructions, 1)
        bars.append(Bar(pair.last.name, exact, stored, f"{instructions:.0f}%"))
    picture = summary.draw(frame, bars, ("before", "bytes stored now", "instructions now"))
    return Table(["operation", *measures], cells, picture)


def _version(result: Result) -> str:
    return ".".join(result.kernel.version.split(".")[:2])
