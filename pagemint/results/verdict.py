# SPDX-License-Identifier: GPL-2.0-only
"""Judges a result: its gains, limits and noise, and the sentences about them."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from pagemint.base.returns import PLAIN
from pagemint.results import cases, estimates
from pagemint.results.cases import Condition, condition, is_copy, title
from pagemint.results.estimates import Estimate, Gain
from pagemint.results.rows import COMPARISON, EVERYTHING, Case, Result, Row
from pagemint.words import AGAIN, MODES, PUBLISHED, PUBLISHED_WORKLOADS

# The first of these that a case has stands for its patched tree.
_DEFAULTS = ("streaming", "cached", "patched", "module")
# The other variants of a case are compared with the first of these that it has.
_BASES = ("base", "module-off")
_NOISY_SHARE = 1 / 4  # see Judged.noisy


@dataclass(frozen=True)
class Line:
    """A row with its verdict.

    Attributes:
        row: the row. If a case borrows it from another case, it has the case that borrows it.
        gain: the gain over the base of its case; None for base itself, if the case has no base,
            and if the result was emulated.
        verdict: estimates.judge() of the gain, or same for base's own code; "" without a gain.
        sentence: the verdict in words; "" without a gain.
        limit_ms: milliseconds that it would take at the limit; None if the limit is not known.
        limit_share: limit_ms over its own time; None if the limit is not known.
    """

    row: Row
    gain: Gain | None
    verdict: str
    sentence: str
    limit_ms: float | None
    limit_share: float | None

    @cached_property
    def time(self) -> Estimate:
        """The median and its interval, in ms."""
        return estimates.median(self.row.runs_ms)


def are_pairs(result: Result) -> bool:
    """Whether run i of every variant comes from one round."""
    trees = {row.tree for row in result.rows}
    # A stock kernel runs in one guest: without its module as base, and with it as stock.
    return not result.host.accel or len(trees) < 2 or trees == {"base", "stock"}


class Judged:
    """A result with a verdict on each row.

    Attributes:
        result: the result.
        paired: whether run i of every variant comes from one round. It does not if several
            kernels ran, each in a guest of its own.
        lines: the lines by case and variant, in the order of the file. Cases of more threads
            borrow the row of base from the case of one thread.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.paired = are_pairs(result)
        members = _members(result.rows)
        gains = {case: self._gains(rows) for case, rows in members.items()}
        self._floors: dict[tuple[Condition, bool], float] = {}
        for case, by_variant in gains.items():
            if same := by_variant.get(AGAIN):
                ratios = (same.paired.value, same.fastest)
                worst = max(estimates.apart(ratio) for ratio in ratios)
                self._floors[_kind(case)] = max(self.floor(case), worst)
        self.lines = {
            case: {name: self._line(row, gains[case].get(name)) for name, row in rows.items()}
            for case, rows in members.items()
        }

    def _gains(self, rows: dict[str, Row]) -> dict[str, Gain]:
        over = self._over(rows)
        if not over or not self.result.host.times_comparable:
            return {}
        gains = {}
        for name, row in rows.items():
            # The second base is always compared with the first one.
            other = "base" if name == AGAIN and "base" in rows else over
            if name != other:
                gains[name] = estimates.gain(rows[other].runs_ms, row.runs_ms, paired=self.paired)
        return gains

    def _over(self, rows: dict[str, Row]) -> str:
        """Return the name of the row that the others are compared with; "" if there is none."""
        against = self.result.against
        if against == "base":
            return next((name for name in _BASES if name in rows), "")
        return next((name for name, row in rows.items() if row.tree == against), "")

    def over(self, case: Case) -> Line | None:
        """Return the line that the others of a case are compared with."""
        lines = self.lines[case]
        return lines.get(self._over({name: line.row for name, line in lines.items()}))

    def expected(self, case: Case) -> Line | None:
        """Return the line that stands for Linux 7.4; None if the result has none.

        It is expected to have Li Zhe's series. Where that changes nothing, 7.3 stands for it.
        """
        if self.result.trees or not self.result.kernel.version.startswith("7.3"):
            return None
        if case.workload not in PUBLISHED_WORKLOADS:
            return self.over(case)
        # The published series shares no work among threads.
        lines = self.lines.get(replace(case, threads=1)) or self.lines[case]
        return lines.get(PUBLISHED)

    def over_expected(self, line: Line) -> str:
        """Return the headline gain of a line over Linux 7.4: "1.80x"; "equal" within the noise.

        It is "?" if the result has no line for Linux 7.4.
        """
        expected = self.expected(line.row.case)
        if expected is None or not line.gain:
            return "?"
        gain = estimates.gain(expected.row.runs_ms, line.row.runs_ms, paired=self.paired)
        noise = estimates.judge(gain, self.floor(line.row.case)) == "noise"
        return "equal" if noise else f"{gain.headline:.2f}x"

    def shown(self, case: Case) -> list[Line]:
        """Return the lines with the gains that matter most.

        That is one for the patched tree, in its default mode; or one for each tree that the user
        named and base, except for the tree that they are compared with.
        """
        lines = self.lines[case]
        if not self.result.trees:
            chosen = [lines[name] for name in _DEFAULTS if name in lines][:1]
        else:
            first: dict[str, Line] = {}
            for line in lines.values():
                first.setdefault(line.row.tree, line)
            left_out = (self.result.against, AGAIN)
            chosen = [line for tree, line in first.items() if tree not in left_out]
        return [line for line in chosen if line.gain]

    def largest(self, members: Iterable[Case]) -> list[Case]:
        """Return a case for each combination of the properties other than size and threads.

        It is one that has a gain to show, if there is any: with --threads 2, a case of one thread
        has rows of the unpatched tree alone. Of several, it is the one of the largest device, and
        of these the one with the fewest threads.
        """

        def rank(case: Case) -> tuple[bool, int, int]:
            return bool(self.shown(case)), case.device_bytes, -case.threads

        best: dict[Case, Case] = {}
        for case in members:
            key = replace(cases.of_any_size(case), threads=1)
            best[key] = max(best.get(key, case), case, key=rank)
        return list(best.values())

    def called(self, line: Line) -> str:
        """Return the name of one of the lines that `shown` returns: its tree, or its mode."""
        return line.row.tree if self.result.trees else line.row.variant

    def _line(self, row: Row, gain: Gain | None) -> Line:
        floor = self.floor(row.case)
        verdict = estimates.judge(gain, floor) if gain else ""
        sentence = estimates.sentence(gain, floor) if gain else ""
        if gain and row.variant == AGAIN:
            verdict = "same"
            sentence = (
                f"the same code as base, {gain.paired.value:.2f}x "
                f"(fastest runs: {gain.fastest:.2f}x)"
            )
        limit = cases.limit_of(row.case, self.result.limits)
        return Line(
            row,
            gain,
            verdict,
            sentence,
            estimates.limit_ms(limit, row.case.pages) if limit else None,
            estimates.share_of_limit(limit, row) if limit else None,
        )

    def floor(self, case: Case) -> float:
        """Return the largest ratio by which base's code differs from itself.

        It is taken over all workloads in the case's condition; 1 if it is not known.
        """
        return self._floors.get(_kind(case), 1.0)

    @property
    def worst_floor(self) -> float | None:
        """The largest of the floors; None if no code was timed twice."""
        return max(self._floors.values(), default=None)

    @cached_property
    def noisy_lines(self) -> list[Line]:
        """The lines whose two ratios differ by more than 5%, the worst first."""
        noisy = [line for line in self._compared if line.gain and line.gain.noisy]
        return sorted(noisy, key=_disagreement, reverse=True)

    @property
    def noisy(self) -> bool:
        """Whether the machine is called noisy: at least a quarter of its gains are noisy.

        Single noisy gains occur on quiet machines, too: 12 to 18% in the results kept so far, most
        of them with several threads or on copies. They are marked in their own rows.
        """
        noisy = self.noisy_lines
        return bool(noisy) and len(noisy) >= _NOISY_SHARE * len(self._compared)

    @property
    def few_runs(self) -> bool:
        """Whether no gain has enough runs for an interval."""
        return not any(line.gain.paired.known for line in self._compared if line.gain)

    @cached_property
    def _compared(self) -> list[Line]:
        """The lines with a gain."""
        return [line for lines in self.lines.values() for line in lines.values() if line.gain]

    def tables(self) -> dict[Condition, list[Case]]:
        """Return the cases of each condition."""
        members: dict[Condition, list[Case]] = {}
        for case in self.lines:
            members.setdefault(condition(case), []).append(case)
        return members

    def sentences(self) -> dict[str, list[str]]:
        """Return sentences by workload, on the largest device, with the fewest threads.

        Those on plain returns come first. A sentence about a copy is about the CPU class that
        gains least.
        """
        chosen: dict[tuple[object, ...], list[Line]] = {}
        for case in self.largest(self.lines):
            for line in self.shown(case):
                copy = (case.function, case.folio_bytes, case.returns)
                key = (self.called(line), *(copy if is_copy(case) else (case,)))
                chosen.setdefault(key, []).append(line)
        against = self.result.against
        over = "" if against == "base" else f"; compared with {against}"
        sentences: dict[str, list[str]] = {}
        for lines in sorted(chosen.values(), key=lambda lines: lines[0].row.case.returns != PLAIN):
            sentences.setdefault(lines[0].row.case.workload, []).append(_headline(lines, over))
        return sentences

    def noise(self) -> list[str]:
        """Return sentences on how small a difference this machine's times can show."""
        if not self.result.host.times_comparable:
            return ["The guests were emulated: their times mean nothing."]
        sentences = [self._noisy_sentence()]
        spreads = [estimates.spread(row.runs_ms) for row in self.result.rows if row.tree == "base"]
        if spreads:
            sentences.append(
                f"The runs of base spread over {statistics.median(spreads):.1%} of their median"
                + (f" (the worst series: {max(spreads):.1%})." if len(spreads) > 1 else ".")
            )
        if self.worst_floor:
            sentences.append(
                f"base and {AGAIN} are the same code in two places, and differ by up to "
                f"{self.worst_floor - 1:.1%}: in the same condition, no smaller difference counts."
            )
        sentences.append(
            "Every ratio was taken within its round."
            if self.paired
            else "The two kernels ran in different guests, so their runs are not pairs: "
            "each was resampled by itself."
        )
        return sentences

    def _noisy_sentence(self) -> str:
        if not self.noisy_lines:
            if self.few_runs:
                return "Too few runs to say whether this machine is quiet."
            return "This machine is quiet: the two ratios of every gain are within 5%."
        worst = self.noisy_lines[0]
        return (
            f"This machine is {'noisy' if self.noisy else 'quiet'}: in {len(self.noisy_lines)} of "
            f"{len(self._compared)} gains the median ratio and that of the fastest runs differ by "
            f"more than 5%, by up to {_disagreement(worst) - 1:.0%} ({title(worst.row.case)}, "
            f"{condition(worst.row.case)}, {worst.row.variant}). The headline is the smaller one."
        )

    def identity(self) -> list[str]:
        """Return sentences on the trees that the user named: their memmaps, and what they lack."""
        trees = self.result.trees
        groups = {
            "Memmap identical to base": [tree.name for tree in trees if tree.identical],
            "Memmap not compared with base (another version)": [
                tree.name
                for tree in trees
                if tree.identical is None and not {COMPARISON, EVERYTHING} & tree.left_out.keys()
            ],
        }
        sentences = [f"{text}: {', '.join(names)}." for text, names in groups.items() if names]
        differing = [tree for tree in trees if tree.identical is False]
        sentences += [f"Memmap of {tree.name} differs: {tree.difference}." for tree in differing]
        for tree in trees:
            for why in dict.fromkeys(tree.left_out.values()):
                names = ", ".join(name for name, each in tree.left_out.items() if each == why)
                sentences.append(f"Left out for {tree.name}: {names}: {why}.")
        return sentences

    def best_modes(self) -> list[str]:
        """Return the modes that are best over all workloads, best first; several if they tie.

        A mode is better than another one if both the paired gains and the gains of the fastest
        runs say so, beyond the noise. Both are geometric means over the cases that have all modes.
        """
        compared = [
            lines
            for case in self.largest(self.lines)
            if (lines := self.lines[case])
            and not is_copy(case)
            and all(mode in lines and lines[mode].gain for mode in MODES)
        ]
        if not compared:
            return []
        scores = {mode: _scores([lines[mode] for lines in compared]) for mode in MODES}
        best = max(MODES, key=lambda mode: min(scores[mode]))
        floor = self.worst_floor or 1.0
        ties = [
            mode
            for mode in MODES
            if mode != best
            and min(a / b for a, b in zip(scores[best], scores[mode], strict=True)) <= floor
        ]
        return [best, *ties]

    def same_hashes(self) -> bool | None:
        """Return whether all variants of every case left the same bytes; None if not recorded."""
        by_case = [{line.row.hash for line in lines.values()} for lines in self.lines.values()]
        if not any(hashes != {""} for hashes in by_case):
            return None
        return all(len(hashes) == 1 and " " not in next(iter(hashes)) for hashes in by_case)


def _members(rows: Iterable[Row]) -> dict[Case, dict[str, Row]]:
    """Return the rows by case and variant; cases of more threads borrow base from one thread."""
    by_case: dict[Case, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.variant] = row
    for case, members in by_case.items():
        alone = by_case.get(replace(case, threads=1), {})
        borrowed = {
            name: replace(alone[name], case=case)
            for name in ("base", AGAIN)
            if name in alone and name not in members
        }
        by_case[case] = {**borrowed, **members}
    return by_case


def _kind(case: Case) -> tuple[Condition, bool]:
    return condition(case), is_copy(case)


def _disagreement(line: Line) -> float:
    return line.gain.disagreement if line.gain else 1.0


def _scores(lines: list[Line]) -> tuple[float, float]:
    """Return the geometric means of the paired gains, and of the gains of the fastest runs."""
    gains = [line.gain for line in lines if line.gain]
    paired = statistics.geometric_mean(gain.paired.value for gain in gains)
    return paired, statistics.geometric_mean(gain.fastest for gain in gains)


def _headline(lines: list[Line], over: str) -> str:
    """Return a sentence on the line that gains least; if there are others, it says so.

    `over` names the tree that it is compared with, unless that is base.
    """
    line = min(lines, key=lambda line: line.gain.headline if line.gain else 0)
    case, name = line.row.case, line.row.variant
    told = line.verdict in ("faster", "slower")
    least = f" (least of {len(lines)} classes)" if len(lines) > 1 else ""
    share = line.limit_share
    return (
        f"{title(case)}, {condition(case)}{least}: {name}{' is' if told else ':'} "
        f"{line.sentence}{f'; {share:.2f} of the limit' if share else ''}"
        f"{'; noisy' if line.gain and line.gain.noisy else ''}{over}."
    )
