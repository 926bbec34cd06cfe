# SPDX-License-Identifier: GPL-2.0-only
"""Prints every row of a result on the terminal, in tables."""

import statistics
from collections.abc import Callable, Iterable, Iterator

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pagemint.base.sizes import format_size
from pagemint.results import cases, counted, estimates
from pagemint.results.cases import Condition, is_boot, is_copy, is_memmap, is_ordinary, is_step
from pagemint.results.counted import MEASURES
from pagemint.results.estimates import Gain
from pagemint.results.rows import Case, Limit, Result, Row
from pagemint.results.verdict import Judged, Line

Columns = dict[str, Callable[[Line], str]]
"""The cells of a line, by the heads of their columns."""


def show_all(result: Result, console: Console) -> None:
    """Print every row of any result, in tables, and how to read them."""
    judged = Judged(result)
    for table in _tables(judged):
        console.print(table)
        console.print()
    for sentence in (*_legend(judged), *judged.noise()):
        console.print(sentence, markup=False, highlight=False)


def _tables(judged: Judged) -> Iterator[Table]:
    of = judged.lines
    for condition, members in judged.tables().items():
        maps = [case for case in members if is_memmap(case)]
        # Guests time the whole bind, too, which contains the initialisation.
        binds = [case for case in maps if any(line.row.bind_ms for line in of[case].values())]
        alone = [case for case in maps if case not in binds]
        devices = [case for case in alone if not is_ordinary(case)]
        ordinary = [case for case in alone if is_ordinary(case)]
        steps = [case for case in members if is_step(case)]
        boots = [case for case in members if is_boot(case)]
        about = _about(judged, condition)
        if devices:
            yield _bring_up(judged, f"Times for {about}", devices)
        if ordinary:
            yield _bring_up(judged, f"Memmap of ordinary memory, {about}", ordinary)
        if binds:
            columns = {
                **_times(lambda row: row.first_bind_ms, lambda row: row.bind_ms),
                **_gains_in(judged, lambda row: row.bind_ms),
            }
            yield _lines(judged, f"Binds, ms, {about}", "scenario", binds, columns)
            yield _memmaps(judged, f"Memmaps in these binds, ms, {about}", binds)
            whole = [
                case
                for case in binds
                if all(estimates.wholes(line.row) for line in of[case].values())
            ]
            if whole:
                yield _wholes(judged, f"Bind, first use and unbind, {about}", whole)
        if boots:
            columns = {
                "ms": lambda line: _digits(line.time.value),
                "min": lambda line: _digits(min(line.row.runs_ms)),
                **_gains(judged),
            }
            yield _lines(judged, f"Boots until init starts, {about}", "boot", boots, columns)
        if steps:
            columns = {
                "ns each": lambda line: (
                    f"{line.time.value * 1e6 / cases.units(line.row.case):,.0f}"
                ),
                **_gains(judged),
            }
            yield _lines(judged, f"Steps of whole operations, {about}", "step", steps, columns)
    copies = [case for case in judged.lines if is_copy(case)]
    for size in dict.fromkeys(case.folio_bytes for case in copies):
        yield _copies(judged, [case for case in copies if case.folio_bytes == size])
    if judged.result.limits:
        yield _limits(judged.result.limits)
    if judged.result.counts:
        yield _counts(judged.result)


def _table(title: str, words: Iterable[str], numbers: Iterable[str], gap: int = 1) -> Table:
    """Return an empty table; `gap` is the number of extra spaces between columns."""
    made = Table(
        title=escape(title),
        box=box.SIMPLE_HEAD,
        padding=(0, gap, 0, 0),
        show_edge=False,
        pad_edge=False,
        title_justify="left",
    )
    for name in words:
        made.add_column(name, no_wrap=True)
    for name in numbers:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def _lines(
    judged: Judged, title: str, kind: str, members: Iterable[Case], columns: Columns
) -> Table:
    """Return a table with the lines of some cases, and a rule below each case.

    `kind` is the head of the column with the names of the cases.
    """
    shown = _table(title, (kind, "variant"), columns)
    for case in members:
        name = cases.short_title(case)
        for variant, line in judged.lines[case].items():
            shown.add_row(*map(escape, (name, variant)), *_cells(columns, line))
            name = ""
        shown.add_section()
    return shown


def _cells(columns: Columns, line: Line) -> Iterator[str]:
    return (cell(line) for cell in columns.values())


def _legend(judged: Judged) -> list[str]:
    if not judged.lines:
        return []
    if not judged.result.host.times_comparable:
        return ["Emulated: the times cannot be compared."]
    how = "of the ratios within rounds" if judged.paired else "runs of two guests, not pairs"
    legend = [
        f"ms, gain: medians ({how}). 95%: interval of the gain.",
        "fastest: ratio of the fastest runs. ns: of a page, or of each step.",
    ]
    if judged.noisy_lines:
        legend.append("!: a noisy gain, whose two ratios differ by more than 5%.")
    if judged.result.limits:
        legend.append("limit: share of the fill limit, or of the best plain loop that copies.")
    if any(case.cpu_class for case in judged.lines):
        legend.append("class: a CPU class, whose code ran on this machine's core.")
    return legend


def _about(judged: Judged, condition: Condition) -> str:
    """Return a condition in words, and where it was timed."""
    own = condition.returns and condition.returns == judged.result.kernel.returns
    here = " (this machine's)" if own else ""
    return f"{condition}{here}{_guest(judged.result)}"


def _guest(result: Result) -> str:
    """Return the end of a heading: the guest in which it was timed, if it was."""
    return f", in a guest ({result.host.accel})" if result.host.accel else ""


def _gains(judged: Judged, of: Callable[[Line], Gain | None] = lambda line: line.gain) -> Columns:
    """Return the columns of the gains that `of` returns; none if times cannot be compared."""

    def column(text: Callable[[Gain], str]) -> Callable[[Line], str]:
        return lambda line: text(gain) if (gain := of(line)) else ""

    def interval(gain: Gain) -> str:
        return f"{gain.paired.low:.2f}-{gain.paired.high:.2f}" if gain.paired.known else "?"

    if not judged.result.host.times_comparable:
        return {}
    return {
        "gain": column(lambda gain: f"{gain.paired.value:.2f}x"),
        "95%": column(interval),
        "fastest": column(lambda gain: f"{gain.fastest:.2f}x{'!' if gain.noisy else ' '}"),
    }


def _gains_in(judged: Judged, runs: Callable[[Row], list[float]]) -> Columns:
    """Return the columns of the gains in other runs of the rows."""

    def gain(line: Line) -> Gain | None:
        over = judged.over(line.row.case)
        if not over or line.row.variant == over.row.variant:
            return None
        before, now = runs(over.row), runs(line.row)
        return estimates.gain(before, now, paired=judged.paired) if before and now else None

    return _gains(judged, gain)


def _limit_shares(judged: Judged, members: list[Case]) -> Columns:
    """Return the column of the limit, if it is known for a line of the cases."""
    if not any(line.limit_share for case in members for line in judged.lines[case].values()):
        return {}
    return {"limit": lambda line: f"{line.limit_share:.2f}" if line.limit_share else ""}


def _times(first: Callable[[Row], float | None], rest: Callable[[Row], list[float]]) -> Columns:
    """Return the columns of a first run, and of the others."""

    def column(text: Callable[[list[float]], str]) -> Callable[[Line], str]:
        return lambda line: text(runs) if (runs := rest(line.row)) else ""

    return {
        "first": lambda line: "" if (ms := first(line.row)) is None else _digits(ms),
        "mean": column(lambda runs: _digits(statistics.mean(runs))),
        "ms": column(lambda runs: _digits(statistics.median(runs))),
        "spread": column(lambda runs: f"{_digits(min(runs))}-{_digits(max(runs))}"),
    }


def _bring_up(judged: Judged, title: str, members: list[Case]) -> Table:
    walks = any(line.row.walk_ms for case in members for line in judged.lines[case].values())

    def part(line: Line) -> str:
        if not walks:
            return _digits(min(line.row.runs_ms))
        return _digits(statistics.median(line.row.walk_ms)) if line.row.walk_ms else ""

    columns: Columns = {
        "ms": lambda line: _digits(line.time.value),
        "walk" if walks else "min": part,
        "ns": lambda line: f"{line.time.value * 1e6 / line.row.case.pages:.2f}",
        **_gains(judged),
        **_limit_shares(judged, members),
    }
    return _lines(judged, title, "workload", members, columns)


def _memmaps(judged: Judged, title: str, members: list[Case]) -> Table:
    """Return the memmaps that were initialised in the binds.

    `MiB` is the ordinary memory that they took.
    """

    def taken(line: Line) -> str:
        size = line.row.memmap_bytes
        return "" if size is None else f"{size / (1 << 20):,.0f}"

    columns = {
        **_times(lambda row: row.first_ms, lambda row: row.runs_ms),
        **_gains(judged),
        "MiB": taken,
    }
    return _lines(judged, title, "scenario", members, columns)


def _wholes(judged: Judged, title: str, members: list[Case]) -> Table:
    """Return the binds with their first use and unbind, and the share of each part.

    `bind` is the rest of the bind, without the memmap.
    """

    def share(number: int) -> Callable[[Line], str]:
        return lambda line: f"{part:.0%}" if (part := estimates.shares(line.row)[number]) else ""

    columns: Columns = {
        "ms": lambda line: _digits(statistics.median(estimates.wholes(line.row))),
        **{name: share(at) for at, name in enumerate(("memmap", "bind", "use", "unbind"))},
        **_gains_in(judged, estimates.wholes),
    }
    return _lines(judged, title, "scenario", members, columns)


def _copies(judged: Judged, members: list[Case]) -> Table:
    """Return the copies of folios of one size."""
    columns: Columns = {
        "GB/s": lambda line: (
            f"{estimates.bytes_per_s(line.time.value, line.row.case.device_bytes) / 1e9:.1f}"
        ),
        **_gains(judged),
        **_limit_shares(judged, members),
    }
    size = cases.folios(members[0].folio_bytes) if members[0].folio_bytes else "pages"
    shown = _table(
        f"Copies of {size}{_guest(judged.result)}", ("function", "class", "variant"), columns, gap=0
    )
    for case in members:
        words = (case.function or case.workload, case.cpu_class)
        for variant, line in judged.lines[case].items():
            shown.add_row(*map(escape, (*words, variant)), *_cells(columns, line))
            words = ("", "")
    return shown


def _limits(limits: list[Limit]) -> Table:
    shown = _table(
        "Limits: the best plain loops over the same memory",
        ("limit", "loop", "timed beside"),
        ("ms", "min", "GB/s"),
    )
    for limit in limits:
        folios = limit.kind == "copy" and limit.folio_bytes
        size = cases.folios(folios) if folios else format_size(limit.device_bytes)
        beside = (size, cases.threads(limit.threads), cases.returns_of(limit.returns))
        shown.add_row(
            limit.kind,
            escape(limit.loop),
            escape(", ".join(part for part in beside if part)),
            _digits(statistics.median(limit.runs_ms)),
            _digits(min(limit.runs_ms)),
            f"{estimates.limit_bytes_per_s(limit) / 1e9:.1f}",
        )
    return shown


def _counts(result: Result) -> Table:
    """Return the operations that were counted."""
    shown = _table(
        f"Operations in a guest ({result.host.accel}): M instructions, MiB stored, base and now",
        ("operation",),
        ("M", "now", "MiB", "now"),
        gap=0,
    )
    shown.add_column("mostly", no_wrap=True)
    for pair in counted.pairs(result):
        totals = [
            counted.in_words(of(tree.total), measure).split()[0] if tree else ""
            for measure, of in MEASURES.items()
            for tree in (pair.before, pair.now)
        ]
        first = next((name for name, _ in counted.largest(pair.last, "instructions")), "")
        shown.add_row(*map(escape, (pair.last.name, *totals, first)))
    return shown


def _digits(milliseconds: float) -> str:
    """Return a time with three digits or more, or to a microsecond below 1 ms."""
    limits = (1, 10, 100)
    return f"{milliseconds:.{sum(milliseconds < limit for limit in limits)}f}"
