# SPDX-License-Identifier: GPL-2.0-only
"""The screen of a bench, which grows while it runs; lines have at most 80 columns, paths apart."""

from collections.abc import Callable
from pathlib import Path

from pagemint.base.sizes import format_size
from pagemint.results import cases, estimates, headlines
from pagemint.results.cases import is_memmap
from pagemint.results.headlines import Headline
from pagemint.results.rows import Case
from pagemint.results.verdict import Judged, Line

WIDTH = 80
"""Most characters of a line."""

_FOLIOS = (2 << 20, 1 << 30)  # bytes: the sizes that have a line of their own
_MOST_SAID = 12  # lines about the limit, the noise and the memmaps
_NAME = 16  # characters of the first column
_COLUMNS = "{:>8}{:>8}{:>8}   gain (95%)             {:>8} limit"
_STAND_IN = "* Linux 7.4 is expected to have Li Zhe's series; this is a stand-in for it."
_STEPS = "Steps of operations, ns each   {:>8}       {} {:<11}   gain  fastest"


class FirstScreen:
    """Prints the figures of a bench as they come. A line that is printed does not change."""

    def __init__(self, print_line: Callable[[str], None], *, steps: bool) -> None:
        """Begin with an empty screen; `steps` is whether to print steps of operations, too."""
        self._print = print_line
        self._steps = steps
        self._size = 0  # bytes of the device in the title
        self._under = ""  # the last heading

    def add(self, judged: Judged) -> None:
        """Print the figures of one workload: a line for each case and tree with a gain."""
        trees = judged.result.trees
        before = _cut(judged.result.against, 8) if trees else "mainline"
        memmaps = [case for case in judged.lines if is_memmap(case)]
        for case in judged.largest(memmaps):
            for headline in headlines.of(judged, case):
                if not self._size:
                    self._size = case.device_bytes
                    own = cases.returns_of(judged.result.kernel.returns)
                    kernel = f"; this machine's kernel has {own}" if own else ""
                    size, threads = format_size(case.device_bytes), cases.threads(case.threads)
                    self._print(_cut(f"Medians in ms for {size}, {threads}{kernel}", WIDTH))
                rest = ("tree", "time", "fastest") if trees else ("7.4*", "ours", "over 7.4")
                columns = _COLUMNS.format(before, *rest)
                self._head(f"{_cut(cases.returns_of(case.returns), _NAME):<{_NAME}}{columns}")
                self._print(_workload(judged, headline, self._size))
        for case in judged.largest(case for case in judged.lines if case.operation):
            for line in judged.shown(case) if self._steps else ():
                self._head(
                    _STEPS.format(before, *(("time", "tree") if trees else ("ours", "mode")))
                )
                self._print(_step(judged, line))
        for text in _folios(judged):
            self._print(text)

    def end(self, judged: Judged, json: str | None, report: Path | None) -> None:
        """Print the lines about the whole bench: fill limit, noise, best mode, trees, files.

        `json` is as --json named it; `report` is None if the report was left out.
        """
        about = [
            *([_STAND_IN] if any(map(judged.expected, judged.lines)) else []),
            *_fill_limit(judged),
            *_noise(judged),
            *_best_mode(judged),
            *(_cut(text, WIDTH) for text in judged.identity()),
        ]
        if len(about) > _MOST_SAID:
            about[_MOST_SAID - 1 :] = [f"{len(about) - _MOST_SAID + 1} more"]
        # Figures of different configurations are not comparable.
        kernel = judged.result.kernel
        config = kernel.config.partition(" (")[0]
        about.append(_cut(f"Linux {kernel.version}, configuration: {config}", WIDTH))
        where = {None: "not kept (--json FILE)", "-": "standard output"}.get(json, json)
        page = report / "index.html" if report else "left out (--no-report)"
        for text in (*about, f"Every row: --tables. JSON: {where}", f"Report: {page}"):
            self._print(text)

    def _head(self, heading: str) -> None:
        """Print a heading unless the last line stands under it."""
        if heading != self._under:
            self._print(heading)
        self._under = heading


def _workload(judged: Judged, headline: Headline, size: int) -> str:
    """Return a line of a case, with its size if that is not the one in the title."""
    case, gain = headline.ours.row.case, headline.gain
    own_size = "" if case.device_bytes == size else f" {format_size(case.device_bytes)}"
    name = _cut(f"{cases.short_title(case)}{own_size}", _NAME)
    if judged.result.trees:
        between, last = _cut(headline.ours.row.tree, 7), f"{gain.fastest:.2f}x"
    else:
        between = f"{headline.expected.time.value:.1f}" if headline.expected else "?"
        last = headline.over_expected
    times = f"{headline.before.time.value:>8.1f}{between:>8}{headline.ours.time.value:>8.1f}"
    interval, mark = f"({headline.interval})", "!" if gain.noisy else " "
    return (
        f"{name:<{_NAME}}{times} {gain.paired.value:>6.2f}x {interval:<15}{mark}{last:>8}"
        f"{headline.share:>6}"
    )


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
    alone = [limit for limit in judged.result.limits if limit.kind == "fill" and limit.threads == 1]
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
    sentence = _cut(f"{kind}: ratios differ by up to {apart} ({where}", WIDTH - 2)
    return [f"{sentence}).", f"The headline is the smaller one. {same}".rstrip()]


def _best_mode(judged: Judged) -> list[str]:
    modes = judged.best_modes()
    tie = " tie" if len(modes) > 1 else ""
    return [f"Best mode on this machine: {' and '.join(modes)}{tie}."] if modes else []


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
