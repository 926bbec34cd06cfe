# SPDX-License-Identifier: GPL-2.0-only
"""The lines that end a bench: at most 25, of at most 80 columns except for long paths."""

from pathlib import Path

from pagemint.base.sizes import format_size
from pagemint.results import cases, estimates
from pagemint.results.cases import is_memmap
from pagemint.results.rows import Case
from pagemint.results.verdict import Judged, Line

MOST_LINES = 25
"""Most lines of the screen."""

WIDTH = 80
"""Most characters of a line."""

_FOLIOS = (2 << 20, 1 << 30)  # bytes: the sizes that have a line of their own
_MOST_SAID = 12  # lines about the limit, the noise and the memmaps
_LEAST_WORKLOADS = 5  # lines that are left for workloads, with their title and heading
_NAME = 16  # characters of the first column
_COLUMNS = " {:>8}   {} {:<11} gain (95%)          fastest  limit"
_STEPS = "Steps of operations, ns each   {:>8}       {} {:<11}   gain  fastest"


def lines(judged: Judged, json: str | None, report: Path | None) -> list[str]:
    """Return the lines: workloads, folio copies, fill limit, noise, best mode, files.

    Steps of whole operations come below the workloads if there is room for all of them.
    """
    said = [
        *_fill_limit(judged),
        *_noise(judged),
        *_best_mode(judged),
        *(_cut(text, WIDTH) for text in judged.identity()),
    ]
    end = [*_shortened(said, _MOST_SAID), *_files(json, report)]
    below = [*_shortened(_folios(judged), MOST_LINES - _LEAST_WORKLOADS - len(end)), *end]
    above = _workloads(judged, MOST_LINES - len(below))
    steps = _steps(judged)
    room = MOST_LINES - len(above) - len(below)
    return [*above, *(steps if len(steps) <= room else []), *below]


def _workloads(judged: Judged, room: int) -> list[str]:
    """Return a line for each workload under its kind of returns, on at most `room` lines."""
    memmaps = [case for case in judged.lines if is_memmap(case)]
    chosen = [case for case in judged.largest(memmaps) if judged.shown(case)]
    if not chosen:
        return []
    # The returns of the machine's own kernel come first.
    own = judged.result.kernel.returns
    kinds = sorted(dict.fromkeys(case.returns for case in chosen), key=lambda one: one != own)
    made = [_title(chosen[0], own)]
    size = chosen[0].device_bytes
    columns = _COLUMNS.format(*_heads(judged))
    for kind in kinds:
        made.append(f"{_cut(cases.returns_of(kind), _NAME):<{_NAME}}{columns}")
        for case in (case for case in chosen if case.returns == kind):
            made += [_workload(judged, line, size) for line in judged.shown(case)]
    if len(made) <= room:
        return made
    # Rows are left out from the end; a heading among them is not one.
    hidden = sum(not line.endswith(columns) for line in made[room - 1 :])
    return [*made[: room - 1], f"{hidden} more: --tables"]


def _title(case: Case, own: str) -> str:
    condition = f"{format_size(case.device_bytes)}, {cases.threads(case.threads)}"
    kernel = f"; this machine's kernel has {cases.returns_of(own)}" if own else ""
    return _cut(f"Medians in ms for {condition}{kernel}", WIDTH)


def _heads(judged: Judged) -> tuple[str, str, str]:
    """Return the heads of the columns that name what is compared with what."""
    if judged.result.trees:
        return _cut(judged.result.against, 8), "time", "tree"
    return "mainline", "ours", "mode"


def _workload(judged: Judged, ours: Line, size: int) -> str:
    """Return a line of a case, with its size if that is not the one in the title."""
    case, gain, base = ours.row.case, ours.gain, judged.over(ours.row.case)
    assert gain and base
    paired = gain.paired
    interval = f"({paired.low:.2f} to {paired.high:.2f})" if paired.known else "(few runs)"
    share = f"{ours.limit_share:.2f}" if ours.limit_share else "?"
    own_size = "" if case.device_bytes == size else f" {format_size(case.device_bytes)}"
    name = _cut(f"{cases.short_title(case)}{own_size}", _NAME)
    return (
        f"{name:<{_NAME}}{base.time.value:>9.1f}{ours.time.value:>7.1f} "
        f"{_cut(judged.called(ours), 10):<10}{paired.value:>5.2f}x {interval:<15}"
        f"{gain.fastest:>7.2f}x{'!' if gain.noisy else ' '}{share:>6}"
    )


def _steps(judged: Judged) -> list[str]:
    """Return a line for each step of a whole operation, with this machine's returns."""
    own = judged.result.kernel.returns
    steps = [case for case in judged.lines if case.operation and case.returns == own]
    lines = [line for case in judged.largest(steps) for line in judged.shown(case)]
    heading = _STEPS.format(*_heads(judged))
    return [heading, *(_step(judged, line) for line in lines)] if lines else []


def _step(judged: Judged, ours: Line) -> str:
    case, gain, base = ours.row.case, ours.gain, judged.over(ours.row.case)
    assert gain and base
    scale = 1e6 / cases.units(case)
    return (
        f"{_cut(cases.title(case), 28):<28}{base.time.value * scale:>11,.0f}"
        f"{ours.time.value * scale:>11,.0f} {_cut(judged.called(ours), 10):<10}"
        f"{gain.paired.value:>7.2f}x{gain.fastest:>8.2f}x"
    )


def _folios(judged: Judged) -> list[str]:
    """Return a line for each size: the least and the best gain of the functions.

    The gains are those of this machine's CPU class, or of all classes if that is not known.
    """
    made = []
    own = judged.result.host.cpu_class
    for size in _FOLIOS:
        by_tree: dict[str, dict[Case, float]] = {}
        for case in (case for case in judged.lines if case.folio_bytes == size):
            for line in judged.shown(case):
                assert line.gain
                by_tree.setdefault(line.row.tree, {})[case] = line.gain.headline
        for tree, gains in by_tree.items():
            gains = {case: gain for case, gain in gains.items() if case.cpu_class == own} or gains
            least, best = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
            of = f", {tree}" if judged.result.trees else ""
            text = f"{cases.folios(size)}{of}: {gains[least]:.2f}x ({least.function})"
            if best != least:
                text += f" to {gains[best]:.2f}x ({best.function})"
            made.append(_cut(text, WIDTH))
    return made


def _fill_limit(judged: Judged) -> list[str]:
    """Return a line on the best loop of one thread, on the largest device."""
    alone = [one for one in judged.result.limits if one.kind == "fill" and one.threads == 1]
    if not alone:
        return []
    most = max(limit.device_bytes for limit in alone)
    best = max(
        (limit for limit in alone if limit.device_bytes == most),
        key=estimates.limit_bytes_per_s,
    )
    speed = estimates.limit_bytes_per_s(best) / 1e9
    return [
        _cut(f"Fill limit: {speed:.1f} GB/s, the best plain loop ({best.loop}), 1 thread", WIDTH)
    ]


def _noise(judged: Judged) -> list[str]:
    """Return how far the figures can be trusted, on one line or two."""
    floor = judged.worst_floor
    same = f"The same code twice differs by up to {floor - 1:.1%}." if floor else ""
    if not judged.noisy_lines:
        quiet = "Quiet machine: both ratios of each gain agree within 5%."
        if judged.few_runs:
            quiet = "Too few runs to say whether the machine is quiet."
        return [quiet, same] if same else [quiet]
    worst = judged.noisy_lines[0]
    assert worst.gain is not None
    case = worst.row.case
    where = f"{cases.short_title(case)} {worst.row.variant}, {cases.threads(case.threads)}"
    kind = "Noisy machine" if judged.noisy else "Quiet machine but for gains with !"
    apart = f"{worst.gain.disagreement - 1:.0%}"
    said = _cut(f"{kind}: ratios differ by up to {apart} ({where}", WIDTH - 2)
    return [f"{said}).", f"The headline is the smaller one. {same}".rstrip()]


def _best_mode(judged: Judged) -> list[str]:
    modes = judged.best_modes()
    if not modes:
        return []
    if len(modes) == 1:
        return [f"Best mode on this machine: {modes[0]}."]
    return [f"Best mode on this machine: {' and '.join(modes)} tie."]


def _files(json: str | None, report: Path | None) -> list[str]:
    where = {None: "not kept (--json FILE)", "-": "standard output"}.get(json, json)
    page = report / "index.html" if report else "left out (--no-report)"
    return [f"Every row: --tables. JSON: {where}", f"Report: {page}"]


def _shortened(lines: list[str], room: int) -> list[str]:
    """Return lines, or the first of them and how many more there are."""
    return lines if len(lines) <= room else [*lines[: room - 1], f"{len(lines) - room + 1} more"]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
