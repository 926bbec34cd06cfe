# SPDX-License-Identifier: GPL-2.0-only
"""Writes the figures in the messages and cover letters of the series again, from docs/results.

A text with figures has a file `figures` beside it: the names of the results that they come from,
and a line for each figure, in the order of the text: its value there, and a call that returns it.
`make figures` writes both again. To take the figures from another result, change its name first.

A call is a name of _OF_RESULT, without arguments; or a name of _OF_ROW or _OF_COUNTS, with the
arguments of _row() or _counts().
"""

import ast
import re
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pagemint import cli
from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.base.sizes import format_size, parse_size
from pagemint.results import counted, estimates, reader
from pagemint.results.cases import limit_of
from pagemint.results.rows import Counts, Limit, Result, Row
from pagemint.results.verdict import are_pairs
from pagemint.words import PAGE

WIDTH = 75
"""Most characters of a line, as checkpatch demands."""


def lists() -> list[Path]:
    """Return the lists of figures, one for each text that has some."""
    return sorted((files.KERNEL / "series").rglob("figures"))


def text_of(listed: Path) -> Path:
    """Return the text whose figures a list has."""
    cover = listed.with_name("cover")
    return cover if cover.exists() else listed.with_name("message")


def written_again(listed: Path) -> tuple[str, str]:
    """Return a text and its list as they are with the figures of the results.

    Raises:
        Failure: the text lacks a figure of the list, or a result lacks a row.
    """
    heads = [line for line in listed.read_text().splitlines() if line.endswith(".json")]
    results = [reader.read(str(files.RESULTS / name)) for name in heads]
    text, at, lines = text_of(listed).read_text(), 0, list(heads)
    for was, call in _figures(listed):
        words = r"\s+".join(map(re.escape, was.split()))
        place = re.compile(rf"(?<![\w.])( *)({words})(?!\w|\.\d)").search(text, at)
        if not place:
            where = text_of(listed).relative_to(files.KERNEL)
            raise Failure(f"{where} lacks the figure {was}", f"mend it or {listed.name} beside it")
        value = _value(call, results, listed)
        if value == was:
            at = place.end()
        else:
            # In a table the last digits stand in one column.
            spaces = place[1] if len(place[1]) > 1 else ""
            aligned = value.rjust(len(place[0])) if spaces else place[1] + value
            text = text[: place.start()] + aligned + text[place.end() :]
            at = place.start() + len(aligned)
        lines.append(f"{value} = {call}")
    return _wrapped(text), "\n".join([*lines, ""])


def main() -> int:
    """Write the texts and their lists again; return 0."""
    for listed in lists():
        text, figures = written_again(listed)
        text_of(listed).write_text(text)
        listed.write_text(figures)
    return 0


class _MissingError(Exception):
    """A result does not have a figure."""


def _machine(result: Result) -> str:
    host = result.host
    what = "a virtual machine" if host.virtual else "a machine"
    family, model, *_ = [*host.family_model_stepping, 0, 0]
    count = f"{host.cpus} {'CPU' if host.cpus == 1 else 'CPUs'}"
    return f"{what} with {count} ({host.cpu}, family {family}, model {model})"


def _fsdax(result: Result) -> Row:
    return _row(result, "fsdax", "base")


def _walk_ms(row: Row) -> float:
    if not row.walk_ms:
        raise _MissingError
    return statistics.median(row.walk_ms)


def _limit(row: Row, result: Result) -> Limit:
    limit = limit_of(row.case, result.limits)
    if limit is None:
        raise _MissingError
    return limit


def _speedup(row: Row, result: Result) -> float:
    """Return the smaller of two ratios: the median of the paired ones, that of the fastest runs."""
    # Base always runs in one thread.
    case = replace(row.case, threads=1)
    base = next((each for each in result.rows if (each.variant, each.case) == ("base", case)), None)
    if base is None:
        raise _MissingError
    return estimates.gain(base.runs_ms, row.runs_ms, paired=are_pairs(result)).headline


def _measured(measure: str, unit: str = "") -> Callable[[Counts], str]:
    """Return the function that words a measure; `unit` is left out of the words."""
    of = counted.MEASURES[measure]
    return lambda counts: counted.in_words(of(counts), measure).removesuffix(unit)


_OF_RESULT: dict[str, Callable[[Result], str]] = {
    "machine": _machine,  # "a virtual machine with 2 CPUs (AMD EPYC, family 25, model 1)"
    "linux": lambda result: result.kernel.version,
    "most_threads": lambda result: str(max(row.case.threads for row in result.rows)),
    # The next three are taken from fsdax on base, on the largest device.
    "runs": lambda result: str(len(_fsdax(result).runs_ms)),
    "size": lambda result: format_size(_fsdax(result).case.device_bytes),
    "pages": lambda result: f"{_fsdax(result).case.pages:,}",
    # The best plain loop of streaming stores in one thread: "25.0 GB/s"
    "fill_limit": lambda result: (
        f"{estimates.limit_bytes_per_s(_limit(_fsdax(result), result)) / 1e9:.1f} GB/s"
    ),
}

_OF_ROW: dict[str, Callable[[Row, Result], str]] = {
    "ms": lambda row, _: f"{_median(row):.1f}",
    "fastest_ms": lambda row, _: f"{min(row.runs_ms):.1f}",
    "ns": lambda row, _: f"{_median(row) * 1e6 / row.case.pages:.1f}",  # a page
    "walk_ns": lambda row, _: f"{_walk_ms(row) * 1e6 / row.case.pages:.1f}",  # freeing a page
    "step_ns": lambda row, _: f"{_median(row) * 1e6 / row.case.times:,.0f}",
    "gb_per_s": lambda row, _: (
        f"{estimates.bytes_per_s(_median(row), PAGE * row.case.pages) / 1e9:.1f}"
    ),
    "speedup": lambda row, result: f"{_speedup(row, result):.2f}",
    # The time at the limit over the time of the row, 1 at the limit itself.
    "of_limit": lambda row, result: f"{estimates.share_of_limit(_limit(row, result), row):.2f}",
}

_OF_COUNTS: dict[str, Callable[[Counts], str]] = {
    "instructions": _measured("instructions"),  # "178 M"
    "millions": _measured("instructions", " M"),
    "stored": _measured("bytes stored"),  # "64.2 MiB"
    "mib": _measured("bytes stored", " MiB"),
    "calls": lambda counts: str(counts.calls),
}


def _row(result: Result, workload: str, *names: str, **case: object) -> Row:
    """Return the row of the largest device.

    Args:
        result: a bench.
        workload: its workload.
        names: its variant; before it the step of an operation, if it is of one.
        case: further fields of its case: threads, returns, function, cpu_class, folio_bytes,
            block_bytes, or block="128 MiB" for the last. Without them it is that of one thread,
            and of plain returns.
    """
    *step, variant = names
    wanted = {"workload": workload, "threads": 1, **case}
    if step:
        wanted["operation"] = step[0]
    if "block" in wanted:
        wanted["block_bytes"] = parse_size(str(wanted.pop("block")))
    # Copies and steps do not return for each page: they are timed with one kind of returns.
    if workload != "folio" and "operation" not in wanted:
        wanted.setdefault("returns", "plain")
    rows = [
        row
        for row in result.rows
        if row.variant == variant
        and all(getattr(row.case, name) == value for name, value in wanted.items())
    ]
    if not rows:
        raise _MissingError
    return max(rows, key=lambda row: row.case.device_bytes)


def _counts(result: Result, operation: str, tree: str, function: str = "") -> Counts:
    """Return the counts of an operation, or of a function in it, on the tree base or patched."""
    for entry in result.counts:
        if (entry.name, entry.tree) == (operation, tree) and function in ("", *entry.functions):
            return entry.functions[function] if function else entry.total
    raise _MissingError


def _figures(listed: Path) -> Iterator[tuple[str, str]]:
    """Yield the value and the call of each figure in a list."""
    for line in listed.read_text().splitlines():
        value, equals, call = line.partition(" = ")
        if equals:
            yield value, call


def _value(call: str, results: list[Result], listed: Path) -> str:
    """Return what a call of a list returns: literals are its only arguments."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name), call
    given = [ast.literal_eval(argument) for argument in tree.args]
    named = {word.arg or "": ast.literal_eval(word.value) for word in tree.keywords}
    name = tree.func.id
    try:
        for result in results:
            if result.counts and name in _OF_COUNTS:
                return _OF_COUNTS[name](_counts(result, *given, **named))
            if not result.counts and name in _OF_RESULT:
                return _OF_RESULT[name](result)
            if not result.counts and name in _OF_ROW:
                return _OF_ROW[name](_row(result, *given, **named), result)
    except _MissingError:
        raise Failure(f"{listed} names results without {call}", "name others") from None
    raise Failure(f"{listed}: no result has {name}()", "name one above the figures")


def _median(row: Row) -> float:
    return statistics.median(row.runs_ms)


def _wrapped(text: str) -> str:
    """Return a message with its paragraphs wrapped; tables, which are indented, as they are."""
    subject, *paragraphs = text.rstrip("\n").split("\n\n")
    return "\n\n".join([subject, *map(_paragraph, paragraphs)]) + "\n"


def _paragraph(text: str) -> str:
    if any(line.startswith((" ", "\t")) for line in text.split("\n")):
        return text
    return textwrap.fill(
        " ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    sys.exit(cli.guarded(main))
