# SPDX-License-Identifier: GPL-2.0-only
"""The texts of the newest series, and the figures in them, which tests/figures.tsv lists.

A row of the table has a text, a figure in it, the result that it comes from, and how it is read
there: the measure, the workload or operation, the tree or mode, and what else the case has. Without
`threads` and `returns` a case is that of one thread and of plain returns.
"""

import csv
import re
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pagemint.base import files
from pagemint.base.sizes import format_size
from pagemint.results import counted, estimates, reader
from pagemint.results.cases import limit_of
from pagemint.results.rows import Result, Row
from pagemint.results.verdict import are_pairs
from pagemint.trees import patches, sources
from pagemint.words import PAGE

_LINE = patches.lines()[-1]
_SERIES = files.KERNEL / "series" / _LINE
_TEXTS = sorted([*_SERIES.glob("*/*.patch"), *_SERIES.glob("*/cover.txt")])
_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.]| GiB)")
_TYPED = {"threads/0001": ["1.3"]}
"""Decimals that come from no result: the size of the code that padata keeps."""
_LINES = [sources.EXPECTED_FROM, sources.EXPECTED.partition("-")[0]]
"""The kernels that texts name."""

with (Path(__file__).parents[1] / "figures.tsv").open() as file:
    _FIGURES = list(csv.DictReader(file, delimiter="\t"))


def _name(path: Path) -> str:
    return f"{path.parent.name}/{'cover' if path.suffix == '.txt' else path.name[:4]}"


def _text(path: Path) -> str:
    """Return a message as it was written: its subject, an empty line, and the body."""
    text = path.read_text()
    if path.suffix == ".txt":
        return text
    head, _, rest = text.partition("\n\n")
    subject = re.sub(r".*^Subject: \[.*?\] ((?:.|\n )*)$.*", r"\1", head, flags=re.M | re.S)
    return subject.replace("\n ", " ") + "\n\n" + rest.partition("\n---\n")[0] + "\n"


_BY_NAME = {_name(path): " ".join(_text(path).split()) for path in _TEXTS}


@pytest.mark.parametrize("path", _TEXTS, ids=_name)
def test_a_text_has_a_subject_and_a_body_and_short_lines(path: Path) -> None:
    subject, blank, *body = _text(path).split("\n")
    assert re.fullmatch(r"\S+: [^A-Z].*[^.]", subject)
    assert blank == ""
    assert body[-1] == ""
    assert body[0] and body[-2]
    assert [line for line in (subject, *body) if len(line) > 75] == []  # as checkpatch demands
    assert "Signed-off-by" not in "".join(body)


@pytest.mark.parametrize("name", _BY_NAME)
def test_no_decimal_was_typed(name: str) -> None:
    known = [
        each for row in _FIGURES if row["text"] == name for each in _DECIMAL.findall(row["figure"])
    ]
    known += [*_TYPED.get(name, []), *_LINES]
    assert [figure for figure in _DECIMAL.findall(_BY_NAME[name]) if figure not in known] == []


@pytest.mark.parametrize("row", _FIGURES, ids=lambda row: f"{row['text']}: {row['figure']}")
def test_each_figure_is_that_of_the_result_it_names(row: dict[str, str]) -> None:
    assert row["figure"] in _BY_NAME[row["text"]]
    result = reader.read(str(files.RESULTS / row["result"]))
    value = _read(result, row)
    assert row["figure"] in (value, value.partition(" ")[0])


def test_a_result_that_moves_is_seen() -> None:
    row = next(row for row in _FIGURES if row["measure"] == "ms")
    result = reader.read(str(files.RESULTS / row["result"]))
    for each in result.rows:
        each.runs_ms[:] = [3 * ms for ms in each.runs_ms]
    assert _read(result, row) != row["figure"]


def _read(result: Result, row: dict[str, str]) -> str:
    """Return the figure that a row of the table describes."""
    measure, of, which = row["measure"], row["of"], row["tree or mode"]
    where = dict(pair.split("=") for pair in row["where"].split("; ") if pair)
    if measure in _OF_RESULT:
        return _OF_RESULT[measure](result)
    if measure in _OF_ROW:
        return _OF_ROW[measure](_row(result, of, which, where), result)
    (entry,) = (each for each in result.counts if (each.name, each.tree) == (of, which))
    counts = entry.functions[where["function"]] if where else entry.total
    if measure == "calls":
        return str(counts.calls)
    measure = {"stored": "bytes stored"}.get(measure, measure)
    return counted.in_words(counted.MEASURES[measure](counts), measure)


def _row(result: Result, workload: str, variant: str, where: dict[str, str]) -> Row:
    """Return the row of the largest device."""
    wanted = {"workload": workload, "threads": "1", **where}
    # Copies and steps do not return for each page: they are timed with one kind of returns.
    if workload != "folio" and "operation" not in where:
        wanted.setdefault("returns", "plain")
    rows = (row for row in result.rows if row.variant == variant)
    fitting = (
        row for row in rows if all(str(getattr(row.case, k)) == v for k, v in wanted.items())
    )
    return max(fitting, key=lambda row: row.case.device_bytes)


def _machine(result: Result) -> str:
    host = result.host
    what = "a virtual machine" if host.virtual else "a machine"
    family, model, *_ = host.family_model_stepping
    return f"{what} with {host.cpus} CPUs ({host.cpu}, family {family}, model {model})"


def _fsdax(result: Result) -> Row:
    return _row(result, "fsdax", "base", {})


def _limit(row: Row, result: Result) -> float:
    limit = limit_of(row.case, result.limits)
    assert limit
    return estimates.limit_bytes_per_s(limit)


def _speedup(row: Row, result: Result) -> str:
    """Return the smaller of two ratios: the median of the paired ones, that of the fastest runs."""
    case = replace(row.case, threads=1)  # base always runs in one thread
    base = next(each for each in result.rows if (each.variant, each.case) == ("base", case))
    gain = estimates.gain(base.runs_ms, row.runs_ms, paired=are_pairs(result))
    return f"{gain.headline:.2f}"


def _of_limit(row: Row, result: Result) -> str:
    limit = limit_of(row.case, result.limits)
    assert limit
    return f"{estimates.share_of_limit(limit, row):.2f}"


_OF_RESULT: dict[str, Callable[[Result], str]] = {
    "machine": _machine,  # "a virtual machine with 2 CPUs (AMD EPYC, family 25, model 1)"
    "linux": lambda result: result.kernel.version,
    "most_threads": lambda result: str(max(row.case.threads for row in result.rows)),
    "runs": lambda result: str(len(_fsdax(result).runs_ms)),
    "size": lambda result: format_size(_fsdax(result).case.device_bytes),
    "pages": lambda result: f"{_fsdax(result).case.pages:,}",
    "fill_limit": lambda result: f"{_limit(_fsdax(result), result) / 1e9:.1f} GB/s",
}

_OF_ROW: dict[str, Callable[[Row, Result], str]] = {
    "ms": lambda row, _: f"{statistics.median(row.runs_ms):.1f}",
    "fastest_ms": lambda row, _: f"{min(row.runs_ms):.1f}",
    "ns": lambda row, _: f"{statistics.median(row.runs_ms) * 1e6 / row.case.pages:.1f}",  # a page
    # Freeing a page.
    "walk_ns": lambda row, _: f"{statistics.median(row.walk_ms) * 1e6 / row.case.pages:.1f}",
    "step_ns": lambda row, _: f"{statistics.median(row.runs_ms) * 1e6 / row.case.times:,.0f}",
    "gb_per_s": lambda row, _: (
        f"{estimates.bytes_per_s(statistics.median(row.runs_ms), PAGE * row.case.pages) / 1e9:.1f}"
    ),
    "speedup": _speedup,
    "of_limit": _of_limit,  # the time at the limit over the time of the row, 1 at the limit itself
}
