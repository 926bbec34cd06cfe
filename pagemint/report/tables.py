# SPDX-License-Identifier: GPL-2.0-only
"""Prints every row of a result on the terminal, in tables."""

import statistics
from collections.abc import Callable, Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from pagemint.base.sizes import format_size
from pagemint.results import cases, counted, estimates
from pagemint.results.cases import Condition, is_copy, is_memmap, is_ordinary
from pagemint.results.counted import MEASURES
from pagemint.results.estimates import Gain
from pagemint.results.rows import Case, Limit, Result
from pagemint.results.verdict import Judged, Line


def show_all(result: Result, console: Console) -> None:
    """Print every row of any result, in tables, and how to read them."""
    judged = Judged(result)
    for table in _tables(judged):
        console.print(table)
        console.print()
    for sentence in (*_legend(judged), *judged.noise()):
        console.print(sentence, markup=False, highlight=False)


def _tables(judged: Judged) -> Iterator[Table]:
    for condition, members in judged.tables().items():
        maps = [case for case in members if is_memmap(case)]
        # Guests time the whole bind, too, which contains the initialisation.
        binds = [case for case in maps if _has_binds(judged, case)]
        alone = [case for case in maps if case not in binds]
        devices = [case for case in alone if not is_ordinary(case)]
        ordinary = [case for case in alone if is_ordinary(case)]
        steps = [case for case in members if case.operation]
        about = _about(judged, condition)
        if devices:
            yield _bring_up(judged, f"Times for {about}", devices)
        if ordinary:
            yield _bring_up(judged, f"Memmap of ordinary memory, {about}", ordinary)
        if binds:
            yield _binds(judged, f"Binds, ms, {about}", binds)
            yield _memmaps(judged, f"Memmaps in these binds, ms, {about}", binds)
            whole = [case for case in binds if _has_wholes(judged, case)]
            if whole:
                yield _wholes(judged, f"Bind, first use and unbind, {about}", whole)
        if steps:
            yield _steps(judged, f"Steps of whole operations, {about}", steps)
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
        title=_literal(title),
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


def _legend(judged: Judged) -> list[str]:
    if not judged.lines:
        return []
    if not judged.result.host.times_comparable:
        return ["Emulated: the times cannot be compared."]
    how = "of the ratios within rounds" if judged.paired else "runs of two guests, not pairs"
    said = [
        f"ms, gain: medians ({how}). 95%: interval of the gain.",
        "fastest: ratio of the fastest runs. ns: of a page, or of each step.",
    ]
    if judged.noisy_lines:
        said.append("!: a noisy gain, whose two ratios differ by more than 5%.")
    if judged.result.limits:
        said.append("limit: share of the fill limit, or of the best plain loop that copies.")
    if any(case.cpu_class for case in judged.lines):
        said.append("class: a CPU class, whose code ran on this machine's core.")
    return said


def _has_binds(judged: Judged, case: Case) -> bool:
    return any(line.row.bind_ms for line in judged.lines[case].values())


def _has_wholes(judged: Judged, case: Case) -> bool:
    return all(estimates.wholes(line.row) for line in judged.lines[case].values())


def _about(judged: Judged, condition: Condition) -> str:
    """Return a condition in words, and where it was timed."""
    host = judged.result.host
    own = condition.returns and condition.returns == judged.result.kernel.returns
    here = " (this machine's)" if own else ""
    guest = f", in a guest ({host.accel})" if host.accel else ""
    return f"{condition}{here}{guest}"


def _gain_columns(judged: Judged) -> tuple[str, ...]:
    return ("gain", "95%", "fastest") if judged.result.host.times_comparable else ()


def _gain_cells(judged: Judged, gain: Gain | None) -> list[str]:
    if not judged.result.host.times_comparable:
        return []
    if not gain:
        return ["", "", ""]
    paired = gain.paired
    interval = f"{paired.low:.2f}-{paired.high:.2f}" if paired.known else "?"
    return [f"{paired.value:.2f}x", interval, f"{gain.fastest:.2f}x{'!' if gain.noisy else ' '}"]


def _bring_up(judged: Judged, title: str, members: list[Case]) -> Table:
    walks = any(line.row.walk_ms for case in members for line in judged.lines[case].values())
    limited = _has_limits(judged, members)
    shown = _table(
        title,
        ("workload", "variant"),
        ("ms", "walk" if walks else "min", "ns", *_gain_columns(judged), *_limit_column(limited)),
    )

    def cells(line: Line) -> list[str]:
        row = line.row
        part = min(row.runs_ms)
        if walks:
            part = statistics.median(row.walk_ms) if row.walk_ms else 0
        return [
            _digits(line.time.value),
            _digits(part) if part else "",
            f"{line.time.value * 1e6 / row.case.pages:.2f}",
            *_gain_cells(judged, line.gain),
            *_limit_cell(limited, line),
        ]

    _fill(shown, judged, members, cells)
    return shown


def _steps(judged: Judged, title: str, members: list[Case]) -> Table:
    """Return the steps of whole operations."""
    shown = _table(title, ("step", "variant"), ("ns each", *_gain_columns(judged)))

    def cells(line: Line) -> list[str]:
        each = line.time.value * 1e6 / cases.units(line.row.case)
        return [f"{each:,.0f}", *_gain_cells(judged, line.gain)]

    _fill(shown, judged, members, cells)
    return shown


def _has_limits(judged: Judged, members: list[Case]) -> bool:
    return any(line.limit_share for case in members for line in judged.lines[case].values())


def _limit_column(limited: bool) -> tuple[str, ...]:
    return ("limit",) if limited else ()


def _limit_cell(limited: bool, line: Line) -> list[str]:
    if not limited:
        return []
    return [f"{line.limit_share:.2f}" if line.limit_share else ""]


def _binds(judged: Judged, title: str, members: list[Case]) -> Table:
    """Return the whole binds."""

    def cells(line: Line) -> list[str]:
        row = line.row
        over = judged.over(row.case)
        gain = None
        if over and row.variant != over.row.variant and over.row.bind_ms and row.bind_ms:
            gain = estimates.gain(over.row.bind_ms, row.bind_ms, paired=judged.paired)
        return [*_first_and_rest(row.first_bind_ms, row.bind_ms), *_gain_cells(judged, gain)]

    shown = _table(
        title,
        ("scenario", "variant"),
        ("first", "mean", "ms", "spread", *_gain_columns(judged)),
    )
    _fill(shown, judged, members, cells)
    return shown


def _memmaps(judged: Judged, title: str, members: list[Case]) -> Table:
    """Return the memmaps that were initialised in the binds.

    `MiB` is the ordinary memory that they took.
    """

    def cells(line: Line) -> list[str]:
        row = line.row
        return [
            *_first_and_rest(row.first_ms, row.runs_ms),
            *_gain_cells(judged, line.gain),
            "" if row.memmap_bytes is None else f"{row.memmap_bytes / (1 << 20):,.0f}",
        ]

    shown = _table(
        title,
        ("scenario", "variant"),
        ("first", "mean", "ms", "spread", *_gain_columns(judged), "MiB"),
    )
    _fill(shown, judged, members, cells)
    return shown


def _wholes(judged: Judged, title: str, members: list[Case]) -> Table:
    """Return the binds with their first use and unbind, and the share of each part.

    `bind` is the rest of the bind, without the memmap.
    """

    def cells(line: Line) -> list[str]:
        over = judged.over(line.row.case)
        whole = estimates.wholes(line.row)
        gain = None
        if over and line.row.variant != over.row.variant:
            gain = estimates.gain(estimates.wholes(over.row), whole, paired=judged.paired)
        return [
            _digits(statistics.median(whole)),
            *(f"{share:.0%}" if share else "" for share in estimates.shares(line.row)),
            *_gain_cells(judged, gain),
        ]

    shown = _table(
        title,
        ("scenario", "variant"),
        ("ms", "memmap", "bind", "use", "unbind", *_gain_columns(judged)),
    )
    _fill(shown, judged, members, cells)
    return shown


def _first_and_rest(first: float | None, rest: list[float]) -> list[str]:
    if not rest:
        return ["" if first is None else _digits(first), "", "", ""]
    return [
        "" if first is None else _digits(first),
        _digits(statistics.mean(rest)),
        _digits(statistics.median(rest)),
        f"{_digits(min(rest))}-{_digits(max(rest))}",
    ]


def _copies(judged: Judged, members: list[Case]) -> Table:
    """Return the copies of folios of one size."""
    limited = _has_limits(judged, members)
    host = judged.result.host
    guest = f", in a guest ({host.accel})" if host.accel else ""
    size = cases.folios(members[0].folio_bytes) if members[0].folio_bytes else "pages"
    shown = _table(
        f"Copies of {size}{guest}",
        ("function", "class", "variant"),
        ("GB/s", *_gain_columns(judged), *_limit_column(limited)),
        gap=0,
    )

    def cells(line: Line) -> list[str]:
        speed = estimates.bytes_per_s(line.time.value, line.row.case.device_bytes)
        return [
            f"{speed / 1e9:.1f}",
            *_gain_cells(judged, line.gain),
            *_limit_cell(limited, line),
        ]

    for case in members:
        for number, (name, line) in enumerate(judged.lines[case].items()):
            words = ("", "") if number else (case.function or case.workload, case.cpu_class)
            shown.add_row(*map(_literal, (*words, name)), *cells(line))
    return shown


def _limits(limits: list[Limit]) -> Table:
    shown = _table(
        "Limits: the best plain loops over the same memory",
        ("limit", "loop", "timed beside"),
        ("ms", "min", "GB/s"),
    )
    for limit in limits:
        beside = [cases.threads(limit.threads), cases.returns_of(limit.returns)]
        beside.insert(0, _limit_size(limit))
        median = statistics.median(limit.runs_ms)
        shown.add_row(
            limit.kind,
            _literal(limit.loop),
            _literal(", ".join(part for part in beside if part)),
            _digits(median),
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
        shown.add_row(*map(_literal, (pair.last.name, *totals, first)))
    return shown


def _limit_size(limit: Limit) -> str:
    folios = limit.kind == "copy" and limit.folio_bytes
    return cases.folios(limit.folio_bytes) if folios else format_size(limit.device_bytes)


def _fill(
    shown: Table, judged: Judged, members: list[Case], cells: Callable[[Line], list[str]]
) -> None:
    """Add the rows of the cases, with a line below each."""
    for case in members:
        lines = judged.lines[case]
        for number, (name, line) in enumerate(lines.items()):
            title = "" if number else cases.short_title(case)
            last = number + 1 == len(lines)
            shown.add_row(_literal(title), _literal(name), *cells(line), end_section=last)


def _literal(text: str) -> str:
    """Keep rich from reading brackets in `text` as markup."""
    return text.replace("[", "\\[")


def _digits(milliseconds: float) -> str:
    """Return a time with three digits or more."""
    return f"{milliseconds:.{2 if milliseconds < 10 else 1 if milliseconds < 100 else 0}f}"
