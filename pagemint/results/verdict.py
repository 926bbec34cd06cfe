# SPDX-License-Identifier: GPL-2.0-only
"""What results say, in numbers and in sentences: of one alone, and of two side by side."""

import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pagemint.base import returns
from pagemint.base.sizes import format_power, format_size
from pagemint.results import estimates
from pagemint.results.estimates import Estimate
from pagemint.results.reader import Case, Result, Row

# The first of these that a result has stands for its patched tree.
_DEFAULTS = ("streaming", "cached", "patched", "module")


@dataclass(frozen=True)
class Condition:
    """What rows have in common that stand in one table.

    Attributes:
        device_bytes: see Case.
        threads: see Case.
        returns: see Case.
    """

    device_bytes: int
    threads: int
    returns: str

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        how = returns.NAMES.get(self.returns, self.returns)
        return ", ".join(part for part in (format_size(self.device_bytes), threads, how) if part)


@dataclass(frozen=True)
class Line:
    """A row with what can be said of it.

    Attributes:
        row: as it was read.
        time: the median and its interval, in ms.
        speedup: against base; None for base, without it, and where times mean nothing.
        verdict: estimates.judge() of it, or same for mainline's own code; "" without a speed-up.
        sentence: estimates.sentence() of it; likewise.
    """

    row: Row
    time: Estimate
    speedup: Estimate | None
    verdict: str
    sentence: str


class Judged:
    """A result with all that can be said of it.

    Attributes:
        result: as it was read.
        lines: by case and variant, in the order of the file.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        cases: dict[Case, dict[str, Row]] = {}
        for row in result.rows:
            cases.setdefault(row.case, {})[row.variant] = row
        speedups = {case: self._speedups(members) for case, members in cases.items()}
        self._floors: dict[tuple[Condition, bool], float] = {}
        for case, found in speedups.items():
            same = found[result.same_as_base].value if result.same_as_base in found else 1.0
            self._floors[_kind(case)] = max(self.floor(case), same, 1 / same)
        self.lines = {
            case: {name: self._line(row, speedups[case].get(name)) for name, row in members.items()}
            for case, members in cases.items()
        }

    def _speedups(self, members: dict[str, Row]) -> dict[str, Estimate]:
        if "base" not in members or not self.result.host.times_comparable:
            return {}
        base = members["base"].runs_ms
        return {
            name: estimates.ratio(base, row.runs_ms, paired=self.result.paired)
            for name, row in members.items()
            if name != "base"
        }

    def _line(self, row: Row, speedup: Estimate | None) -> Line:
        floor = self.floor(row.case)
        verdict = estimates.judge(speedup, floor) if speedup else ""
        sentence = estimates.sentence(speedup, floor) if speedup else ""
        if speedup and row.variant == self.result.same_as_base:
            verdict, sentence = "same", f"the same code as base, {speedup.value:.2f}x"
        return Line(row, estimates.median(row.runs_ms), speedup, verdict, sentence)

    def floor(self, case: Case) -> float:
        """Return the largest ratio by which mainline's code in both trees differs from itself.

        That is in the case's condition, over all workloads; 1 where it is not known.
        """
        return self._floors.get(_kind(case), 1.0)

    def tables(self) -> dict[Condition, list[Case]]:
        """Return the cases of each condition."""
        found: dict[Condition, list[Case]] = {}
        for case in self.lines:
            found.setdefault(condition(case), []).append(case)
        return found

    def headlines(self) -> list[str]:
        """Return a sentence for each workload: on the largest device, with the fewest threads.

        Of a copy, it is about the CPU class that gains least.
        """
        chosen: dict[tuple[object, ...], list[Line]] = {}
        for case in largest(self.lines):
            name = default(self.lines[case])
            line = self.lines[case].get(name)
            if line and line.speedup:
                key = (case.function, case.returns) if is_copy(case) else tuple(case)
                chosen.setdefault(key, []).append(line)
        return [_headline(lines) for lines in chosen.values()]

    def noise(self) -> list[str]:
        """Return sentences on what this machine's times can tell apart."""
        if not self.result.host.times_comparable:
            return ["The guests were emulated: no time of theirs means anything."]
        base = [line.row for lines in self.lines.values() for line in lines.values()]
        spreads = [estimates.spread(row.runs_ms) for row in base if row.variant == "base"]
        said = []
        if spreads:
            said.append(
                f"From the fastest to the slowest run of base there is "
                f"{statistics.median(spreads):.1%} of its median"
                + (f" (the worst series: {max(spreads):.1%})." if len(spreads) > 1 else ".")
            )
        again = self.result.same_as_base
        if any(again in lines for lines in self.lines.values()):
            worst = max(self._floors.values()) - 1
            said.append(
                f"base and {again} are the same code in two places, and differ by {worst:.1%}: "
                "in the same condition, no smaller difference counts."
            )
        said.append(
            "Every ratio was taken within its round."
            if self.result.paired
            else "The two kernels ran in different guests, so their runs are no pairs: "
            "each was resampled by itself."
        )
        return said

    def same_hashes(self) -> bool | None:
        """Return whether all variants of every case left the same bytes; None: nobody looked."""
        found = [{line.row.hash for line in lines.values()} for lines in self.lines.values()]
        if not any(hashes != {""} for hashes in found):
            return None
        return all(len(hashes) == 1 and " " not in next(iter(hashes)) for hashes in found)


def _headline(lines: list[Line]) -> str:
    """Return a sentence on the line that gains least; if there are others, it says so."""
    line = min(lines, key=lambda line: line.speedup.value if line.speedup else 0)
    case, name = line.row.case, line.row.variant
    told = line.verdict in ("faster", "slower")
    least = f" (least of {len(lines)} classes)" if len(lines) > 1 else ""
    limit = line.row.limit_ratio
    return (
        f"{title(case)}, {condition(case)}{least}: {name}{' is' if told else ':'} "
        f"{line.sentence}{f'; {limit:.2f} of the limit' if limit else ''}."
    )


@dataclass(frozen=True)
class Difference:
    """One variant of a case in two results.

    Attributes:
        case: of both.
        variant: of both.
        before: milliseconds in the first.
        after: in the second.
        change: before over after.
        verdict: faster, slower, noise, few; "" where no verdict is due.
        sentence: the same in words.
    """

    case: Case
    variant: str
    before: Estimate
    after: Estimate
    change: Estimate
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """Two results side by side.

    Attributes:
        heading: what can be told from them, in sentences.
        differences: of what both have.
    """

    heading: str
    differences: list[Difference]


def condition(case: Case) -> Condition:
    """Return the condition of a case."""
    return Condition(case.device_bytes, case.threads, case.returns)


def is_copy(case: Case) -> bool:
    """Whether pages are copied, so that it is bytes a second that are of interest."""
    return bool(case.function or case.folio_bytes)


def _kind(case: Case) -> tuple[Condition, bool]:
    return condition(case), is_copy(case)


def title(case: Case) -> str:
    """Return what a case is called beside others of its condition."""
    words = [case.function or case.workload, case.cpu_class]
    if case.folio_bytes:
        words.append(folios(case))
    return ", ".join(word for word in (*words, *case.more) if word)


def folios(case: Case) -> str:
    """Return the size of a case's folios, which are powers of two: 2 MiB folios."""
    return f"{format_power(case.folio_bytes)} folios"


def largest(cases: Iterable[Case]) -> list[Case]:
    """Return those of the largest device and the fewest threads, one for each other property."""
    best: dict[Case, Case] = {}
    for case in cases:
        key = case._replace(device_bytes=0, threads=0)
        held = best.get(key)
        if not held or (case.device_bytes, -case.threads) > (held.device_bytes, -held.threads):
            best[key] = case
    return list(best.values())


def default(names: Collection[str]) -> str:
    """Return the variant that stands for the patched tree: what it does unless told otherwise."""
    return next((name for name in _DEFAULTS if name in names), "")


def compare(before: Judged, after: Judged) -> Comparison:
    """Compare two results; differences count only on one machine, and beyond its drift."""
    a, b = before.result, after.result
    pairs = [
        (case, name, line, after.lines[case][name])
        for case, lines in before.lines.items()
        if case in after.lines
        for name, line in lines.items()
        if name in after.lines[case]
    ]
    changes = [
        estimates.ratio(one.row.runs_ms, other.row.runs_ms, paired=False)
        for _, _, one, other in pairs
    ]
    if not pairs:
        return Comparison("They have no workload, size, variant and threads in common.", [])
    if not (a.host.times_comparable and b.host.times_comparable):
        return Comparison("At least one was emulated: no times are compared.", [])
    alike = a.host.identity == b.host.identity
    unchanged = [alike and _same_code(a, b, name) for _, name, _, _ in pairs]
    moved = [
        max(change.value, 1 / change.value)
        for change, same in zip(changes, unchanged, strict=True)
        if same
    ]
    if alike:
        moved += _moved_limits(a, b)
    drift = max(moved, default=1.0)
    differences = []
    for (case, name, one, other), change, same in zip(pairs, changes, unchanged, strict=True):
        verdict, sentence = "", ""
        if same:
            verdict, sentence = "noise", "noise: the same code on the same machine"
        elif alike:
            verdict, sentence = estimates.judge(change, drift), estimates.sentence(change, drift)
        differences.append(Difference(case, name, one.time, other.time, change, verdict, sentence))
    if not alike:
        return Comparison("These are different machines: no difference is judged.", differences)
    heading = "It is the same machine, as far as results can tell. "
    if not moved:
        heading += "No code is the same in both, so its drift from one to the other is not known."
    elif all(unchanged):
        heading += (
            f"The code is the same, so whatever differs is noise: up to {drift - 1:.1%} "
            "from one run of pagemint to the next."
        )
    else:
        heading += (
            f"Code that is the same in both differs by up to {drift - 1:.1%}: that is noise, "
            "and so is any difference no larger."
        )
    return Comparison(heading, differences)


def _same_code(a: Result, b: Result, variant: str) -> bool:
    """Whether a variant is the same code in two results."""
    trees = [(one.kernel.source, one.kernel.config, one.host.compiler) for one in (a, b)]
    if trees[0] != trees[1]:
        return False
    patched_alike = a.kernel.series == b.kernel.series != ""
    return variant == "base" or patched_alike


def _moved_limits(a: Result, b: Result) -> Sequence[float]:
    """Return the ratios of the plain loops that both results have timed alike."""
    medians = [
        {
            (loop.loop, loop.returns, loop.threads, loop.device_bytes): statistics.median(
                loop.runs_ms
            )
            for loop in one.limit.fill_loops
        }
        for one in (a, b)
    ]
    both = medians[0].keys() & medians[1].keys()
    ratios = [medians[0][key] / medians[1][key] for key in both]
    return [max(ratio, 1 / ratio) for ratio in ratios]
