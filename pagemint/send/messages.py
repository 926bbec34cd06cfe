# SPDX-License-Identifier: GPL-2.0-only
"""Fills the commit messages and cover letters of the series with the figures of results.

The messages are templates of Jinja2, which can call the methods of `_Figures` and `_Counts`.
"""

import statistics
import textwrap
from collections.abc import Sequence
from functools import cached_property

from jinja2 import Environment, StrictUndefined

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.base.sizes import format_size, parse_size
from pagemint.results import counted, estimates, reader
from pagemint.results.cases import limit_of
from pagemint.results.rows import Counts, Operation, Result, Row
from pagemint.results.verdict import are_pairs
from pagemint.send import kept
from pagemint.trees import patches
from pagemint.trees.patches import Topic
from pagemint.words import PAGE

WIDTH = 75
"""Most characters of a line, as checkpatch demands."""


class _MissingError(Exception):
    """A result does not have a figure; the text names it."""


def filled(given: Sequence[str], chosen: Sequence[Topic] | None = None) -> dict[str, str]:
    """Return the message of each step by the step's path, and each cover letter: "device/cover".

    All figures of one text come from one result: the first file that has them. The text itself
    names the machine. A note says if a result was measured with another state of the series.

    Args:
        given: result files; none stands for those of docs/results, in the order of kept.benches().
        chosen: the topics; None stands for all.

    Raises:
        Failure: a file is not a result, it was emulated, or no file has a figure.
    """
    results = [reader.read(path) for path in given] or kept.benches()
    for one in results:
        if not one.host.times_comparable:
            raise Failure(
                f"{one.file} comes from an emulated guest, whose times mean nothing",
                "make one with: pagemint bench --json FILE",
            )
    chosen = patches.topics() if chosen is None else chosen
    texts = {one.path: one.message for line in patches.lines() for one in patches.of(line, chosen)}
    for topic in chosen:
        cover = f"{topic.name}/{patches.COVER}"
        texts[cover] = (files.KERNEL / "series" / cover).read_text()
    counts = _Counts()
    done = {name: _fill(name, text, results, counts) for name, text in texts.items()}
    for file, one in {one.file: one for _, one in done.values()}.items():
        if not kept.is_current(one):
            note(f"{file} was measured with another state of the series")
    return {name: text for name, (text, _) in done.items()}


class _Figures:
    """The figures of a result that a template can ask for; all are returned as text.

    A template names a row by its workload and variant, and by further fields of its case: threads,
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

    def has(self, workload: str, variant: str, **case: object) -> bool:
        """Whether there is such a row."""
        return bool(self._rows(workload, variant, case))

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
        row, walk = self._walk(workload, variant, case)
        return f"{walk * 1e6 / row.case.pages:.1f}"

    def init_ns(self, workload: str, variant: str, **case: object) -> str:
        """Nanoseconds a page without that walk."""
        row, walk = self._walk(workload, variant, case)
        return f"{(_median(row) - walk) * 1e6 / row.case.pages:.1f}"

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

    def _walk(self, workload: str, variant: str, case: dict[str, object]) -> tuple[Row, float]:
        row = self._row(workload, variant, case)
        if not row.walk_ms:
            raise _MissingError(f"the walk of {_named(workload, variant, case)}")
        return row, statistics.median(row.walk_ms)

    def _row(self, workload: str, variant: str, case: dict[str, object]) -> Row:
        rows = self._rows(workload, variant, case)
        if not rows:
            raise _MissingError(_named(workload, variant, case))
        return max(rows, key=lambda row: row.case.device_bytes)

    def _rows(self, workload: str, variant: str, case: dict[str, object]) -> list[Row]:
        wanted = {"workload": workload, "threads": 1, **case}
        if "block" in wanted:
            wanted["block_bytes"] = parse_size(str(wanted.pop("block")))
        # Copies and steps do not return for each page: they are timed with one kind of returns.
        if workload != "folio" and "operation" not in wanted:
            wanted.setdefault("returns", "plain")
        return [
            row
            for row in self._result.rows
            if row.variant == variant
            and all(getattr(row.case, name) == value for name, value in wanted.items())
        ]


class _Counts:
    """The counts of docs/operations.md that a template can ask for; all are returned as text.

    They do not depend on the machine, so no other result replaces them. A template names an
    operation, a tree (base or patched) and, for a part of the operation, a function.
    """

    @cached_property
    def _operations(self) -> list[Operation]:
        return kept.counts().counts

    def instructions(self, operation: str, tree: str, function: str = "") -> str:
        """Instructions: "178 M"."""
        return self._measured("instructions", operation, tree, function)

    def stored(self, operation: str, tree: str, function: str = "") -> str:
        """Bytes stored: "64.2 MiB"."""
        return self._measured("bytes stored", operation, tree, function)

    def calls(self, operation: str, tree: str, function: str) -> str:
        """Calls of a function."""
        return str(self._counts(operation, tree, function).calls)

    def _measured(self, measure: str, operation: str, tree: str, function: str) -> str:
        counts = self._counts(operation, tree, function)
        return counted.in_words(counted.MEASURES[measure](counts), measure)

    def _counts(self, operation: str, tree: str, function: str) -> Counts:
        for one in self._operations:
            if (one.name, one.tree) == (operation, tree) and function in ("", *one.functions):
                return one.functions[function] if function else one.total
        raise _MissingError(f"the count of {' '.join(filter(None, (function, operation, tree)))}")


def _median(row: Row) -> float:
    return statistics.median(row.runs_ms)


def _fill(name: str, text: str, results: Sequence[Result], counts: _Counts) -> tuple[str, Result]:
    """Return a text with its figures, and the result that has them."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.trim_blocks = environment.lstrip_blocks = True
    template = environment.from_string(text)
    missing = "a figure"
    for one in results:
        figures = {
            name: getattr(source, name)
            for source in (_Figures(one), counts)
            for name in dir(source)
            if not name.startswith("_")
        }
        try:
            filled_in = template.render(figures)
            return _wrapped(filled_in), one
        except _MissingError as error:
            missing = str(error)
    tried = ", ".join(one.file for one in results) or "docs/results"
    raise Failure(
        f"the message of {name} needs {missing}, which no result has ({tried})",
        "make one with: pagemint bench --json FILE",
    )


def _wrapped(text: str) -> str:
    """Return a message with its paragraphs wrapped; tables, which are indented, as they are."""
    subject, *paragraphs = text.rstrip("\n").split("\n\n")
    return "\n\n".join([subject, *(_paragraph(one) for one in paragraphs)]) + "\n"


def _paragraph(text: str) -> str:
    if any(line.startswith((" ", "\t")) for line in text.split("\n")):
        return text
    return textwrap.fill(
        " ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False
    )


def _named(workload: str, variant: str, case: dict[str, object]) -> str:
    more = "".join(f", {name} {value}" for name, value in case.items())
    return f"the row {workload} {variant}{more}"
