# SPDX-License-Identifier: GPL-2.0-only
"""Writes the figures in the messages and cover letters of the series again, from docs/results.

A text with figures has a file `figures` beside it: the names of the results that they come from,
and a line for each figure, in the order of the text: its value there, and a call of `_Times` or
`_Counts` that returns it. `make figures` writes both again. To take the figures from another
result, change its name first.
"""

import ast
import re
import statistics
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pagemint import cli
from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.base.sizes import format_size, parse_size
from pagemint.results import counted, estimates, reader
from pagemint.results.cases import limit_of
from pagemint.results.rows import Counts, Result, Row
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
    sources = [_Counts(result) if result.counts else _Times(result) for result in results]
    text, at, lines = text_of(listed).read_text(), 0, list(heads)
    for was, call in _figures(listed):
        words = r"\s+".join(map(re.escape, was.split()))
        place = re.compile(rf"(?<![\w.])( *)({words})(?!\w|\.\d)").search(text, at)
        if not place:
            where = text_of(listed).relative_to(files.KERNEL)
            raise Failure(f"{where} lacks the figure {was}", f"mend it or {listed.name} beside it")
        value = _value(call, sources, listed)
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
    """A result does not have a figure; the text names it."""


class _Times:
    """The figures of a bench; all are returned as text.

    A call names a row by its workload and variant, and by further fields of its case: threads,
    returns, function, cpu_class, folio_bytes, block_bytes, or block="128 MiB" for the last. The
    defaults are one thread, plain returns and the largest device.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def machine(self) -> str:
        """The machine: "a virtual machine with 2 CPUs (AMD EPYC, family 25, model 1)"."""
        host = self._result.host
        what = "a virtual machine" if host.virtual else "a machine"
        family, model, *_ = [*host.family_model_stepping, 0, 0]
        count = f"{host.cpus} {'CPU' if host.cpus == 1 else 'CPUs'}"
        return f"{what} with {count} ({host.cpu}, family {family}, model {model})"

    def linux(self) -> str:
        """The kernel version that was measured: "7.3.4"."""
        return self._result.kernel.version

    def runs(self) -> int:
        """The number of runs of fsdax on base, on the largest device."""
        return len(self._row("fsdax", "base", {}).runs_ms)

    def size(self) -> str:
        """The largest device: "100 GB"."""
        return format_size(self._row("fsdax", "base", {}).case.device_bytes)

    def pages(self) -> str:
        """The struct pages of that device: "24,414,062"."""
        return f"{self._row('fsdax', 'base', {}).case.pages:,}"

    def most_threads(self) -> int:
        """The most threads that shared work."""
        return max(row.case.threads for row in self._result.rows)

    def fill_limit(self) -> str:
        """The speed of the best plain loop of streaming stores in one thread: "25.0 GB/s"."""
        limit = limit_of(self._row("fsdax", "base", {}).case, self._result.limits)
        if limit is None:
            raise _MissingError("the fill limit")
        return f"{estimates.limit_bytes_per_s(limit) / 1e9:.1f} GB/s"

    def ms(self, workload: str, variant: str, **case: object) -> str:
        """Milliseconds."""
        return f"{_median(self._row(workload, variant, case)):.1f}"

    def ns(self, workload: str, variant: str, **case: object) -> str:
        """Nanoseconds a page."""
        row = self._row(workload, variant, case)
        return f"{_median(row) * 1e6 / row.case.pages:.1f}"

    def step_ns(self, workload: str, step: str, variant: str) -> str:
        """Nanoseconds of one step of an operation: "1,687"."""
        row = self._row(workload, variant, {"operation": step})
        return f"{_median(row) * 1e6 / row.case.times:,.0f}"

    def walk_ns(self, workload: str, variant: str, **case: object) -> str:
        """Nanoseconds a page of the walk that frees the pages."""
        row = self._row(workload, variant, case)
        if not row.walk_ms:
            raise _MissingError(f"the walk of {_named(workload, variant, case)}")
        return f"{statistics.median(row.walk_ms) * 1e6 / row.case.pages:.1f}"

    def gb_per_s(self, workload: str, variant: str, **case: object) -> str:
        """Gigabytes a second of a copy."""
        row = self._row(workload, variant, case)
        return f"{estimates.bytes_per_s(_median(row), PAGE * row.case.pages) / 1e9:.1f}"

    def fastest_ms(self, workload: str, variant: str, **case: object) -> str:
        """Milliseconds of the fastest run."""
        return f"{min(self._row(workload, variant, case).runs_ms):.1f}"

    def speedup(self, workload: str, variant: str, **case: object) -> str:
        """How many times as fast as base: "1.61".

        The smaller of two ratios: the median of the paired ratios, and that of the fastest runs.
        """
        # Base always runs in one thread.
        base = self._row(workload, "base", {**case, "threads": 1})
        mine = self._row(workload, variant, case)
        paired = are_pairs(self._result)
        return f"{estimates.gain(base.runs_ms, mine.runs_ms, paired=paired).headline:.2f}"

    def of_limit(self, workload: str, variant: str, **case: object) -> str:
        """The time at the limit over the time of the row, 1 at the limit itself: "0.99"."""
        row = self._row(workload, variant, case)
        limit = limit_of(row.case, self._result.limits)
        if limit is None:
            raise _MissingError(f"the limit beside {_named(workload, variant, case)}")
        return f"{estimates.share_of_limit(limit, row):.2f}"

    def _row(self, workload: str, variant: str, case: dict[str, object]) -> Row:
        wanted = {"workload": workload, "threads": 1, **case}
        if "block" in wanted:
            wanted["block_bytes"] = parse_size(str(wanted.pop("block")))
        # Copies and steps do not return for each page: they are timed with one kind of returns.
        if workload != "folio" and "operation" not in wanted:
            wanted.setdefault("returns", "plain")
        rows = [
            row
            for row in self._result.rows
            if row.variant == variant
            and all(getattr(row.case, name) == value for name, value in wanted.items())
        ]
        if not rows:
            raise _MissingError(_named(workload, variant, case))
        return max(rows, key=lambda row: row.case.device_bytes)


class _Counts:
    """The figures of counted operations; all are returned as text.

    A call names an operation, a tree (base or patched) and, for a part of the operation, a
    function.
    """

    def __init__(self, result: Result) -> None:
        self._operations = result.counts

    def instructions(self, operation: str, tree: str, function: str = "") -> str:
        """Instructions: "178 M"."""
        return self._measured("instructions", operation, tree, function)

    def stored(self, operation: str, tree: str, function: str = "") -> str:
        """Bytes stored: "64.2 MiB"."""
        return self._measured("bytes stored", operation, tree, function)

    def millions(self, operation: str, tree: str, function: str = "") -> str:
        """Instructions in millions: "178"."""
        return self.instructions(operation, tree, function).removesuffix(" M")

    def mib(self, operation: str, tree: str, function: str = "") -> str:
        """Bytes stored in MiB: "64.2"."""
        return self.stored(operation, tree, function).removesuffix(" MiB")

    def calls(self, operation: str, tree: str, function: str) -> str:
        """Calls of a function."""
        return str(self._counts(operation, tree, function).calls)

    def _measured(self, measure: str, operation: str, tree: str, function: str) -> str:
        counts = self._counts(operation, tree, function)
        return counted.in_words(counted.MEASURES[measure](counts), measure)

    def _counts(self, operation: str, tree: str, function: str) -> Counts:
        for entry in self._operations:
            if (entry.name, entry.tree) == (operation, tree) and function in ("", *entry.functions):
                return entry.functions[function] if function else entry.total
        raise _MissingError(f"the count of {' '.join(filter(None, (function, operation, tree)))}")


def _figures(listed: Path) -> Iterator[tuple[str, str]]:
    """Yield the value and the call of each figure in a list."""
    for line in listed.read_text().splitlines():
        value, equals, call = line.partition(" = ")
        if equals:
            yield value, call


def _value(call: str, sources: list[_Times | _Counts], listed: Path) -> str:
    """Return what a call of a list returns: literals are its only arguments."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name), call
    given = [ast.literal_eval(argument) for argument in tree.args]
    named = {word.arg or "": ast.literal_eval(word.value) for word in tree.keywords}
    able = [source for source in sources if hasattr(source, tree.func.id)]
    if not able:
        raise Failure(f"{listed}: no result has {tree.func.id}()", "name one above the figures")
    try:
        return str(getattr(able[0], tree.func.id)(*given, **named))
    except _MissingError as error:
        raise Failure(f"{listed} names results without {error}", "name others") from None


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


def _named(workload: str, variant: str, case: dict[str, object]) -> str:
    more = "".join(f", {name} {value}" for name, value in case.items())
    return f"the row {workload} {variant}{more}"


if __name__ == "__main__":
    sys.exit(cli.guarded(main))
