# SPDX-License-Identifier: GPL-2.0-only
"""Compares two results: finds the differences that are more than drift of the machine."""

import statistics
from dataclasses import dataclass

from pagemint.results import estimates
from pagemint.results.estimates import Estimate, Gain
from pagemint.results.rows import Case, Machine, Result
from pagemint.results.verdict import Judged
from pagemint.words import AGAIN, BASE


@dataclass(frozen=True)
class Difference:
    """One variant of a case in two results.

    Attributes:
        case: the case.
        variant: the variant.
        before: milliseconds in the first result.
        after: milliseconds in the second result.
        change: the gain of the second result over the first.
        verdict: faster, slower, noise, few; "" if none is possible.
        sentence: the verdict in words.
    """

    case: Case
    variant: str
    before: Estimate
    after: Estimate
    change: Gain
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """Two results side by side.

    Attributes:
        heading: the conclusion from them, in sentences.
        differences: the differences of the rows that both have.
    """

    heading: str
    differences: list[Difference]


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
        estimates.gain(one.row.runs_ms, other.row.runs_ms, paired=False)
        for _, _, one, other in pairs
    ]
    if not pairs:
        return Comparison("They have no workload, size, variant and threads in common.", [])
    if not (a.host.times_comparable and b.host.times_comparable):
        return Comparison("At least one result was emulated: no times are compared.", [])
    alike = _identity(a.host) == _identity(b.host)
    unchanged = [alike and _same_code(a, b, case, name) for case, name, _, _ in pairs]
    moved = [
        estimates.apart(ratio)
        for change, same in zip(changes, unchanged, strict=True)
        if same
        for ratio in (change.paired.value, change.fastest)
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
            f"The code is the same, so every difference is noise: up to {drift - 1:.1%} "
            "from one run of pagemint to the next."
        )
    else:
        heading += (
            f"Code that is the same in both differs by up to {drift - 1:.1%}: that is noise, "
            "and so is any difference no larger."
        )
    return Comparison(heading, differences)


def _identity(host: Machine) -> tuple[object, ...]:
    """Return the properties that are equal in two results of the same machine."""
    memory = round(host.memory_bytes / 2**30)
    return (host.cpu, *host.family_model_stepping, host.virtual, host.cpus, memory, host.accel)


def _same_code(a: Result, b: Result, case: Case, variant: str) -> bool:
    """Whether a variant of a case is the same code in two results."""
    base = [(result.kernel.source, result.kernel.config, result.host.compiler) for result in (a, b)]
    if base[0] != base[1]:
        return False
    ours = [result.kernel.code.get(case.workload, result.kernel.series) for result in (a, b)]
    return variant in (BASE, AGAIN) or ours[0] == ours[1] != ""


def _moved_limits(a: Result, b: Result) -> list[float]:
    """Return the factors by which the plain loops that both results have differ."""
    medians: list[dict[tuple[object, ...], float]] = [{}, {}]
    for times, result in zip(medians, (a, b), strict=True):
        for limit in result.limits:
            case = (limit.returns, limit.threads, limit.device_bytes, limit.folio_bytes)
            times[limit.kind, limit.loop, limit.workload, *case] = statistics.median(limit.runs_ms)
    both = medians[0].keys() & medians[1].keys()
    return [estimates.apart(medians[0][key] / medians[1][key]) for key in both]
