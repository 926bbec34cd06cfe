# SPDX-License-Identifier: GPL-2.0-only
"""Checks on both kernels together."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pagemint.results.rows import Check


@dataclass(frozen=True)
class Pair:
    """A check on both kernels.

    Attributes:
        scenario: the scenario in which it ran.
        name: its name.
        by_tree: the check by the tree of its kernel, without kernels in which it did not run.
    """

    scenario: str
    name: str
    by_tree: dict[str, Check]

    @property
    def key(self) -> tuple[str, str]:
        """Its scenario and its name, which identify it."""
        return self.scenario, self.name

    @property
    def must_pass(self) -> bool:
        """Whether it has to pass. If not, it has to end alike on both kernels."""
        return any(check.must_pass for check in self.by_tree.values())

    @property
    def alone(self) -> Check | None:
        """The check on the patched kernel, if it must pass there and base cannot do it."""
        if self.must_pass and "base" in self.by_tree and self.by_tree["base"].outcome == "skip":
            return self.by_tree.get("patched")
        return None

    @property
    def outcome(self) -> str:
        """The outcome of both: pass, fail or skip if they ended alike, else differs.

        If base cannot do a check, the outcome is that of the patched kernel.
        """
        if self.alone:
            return self.alone.outcome
        outcomes = {check.outcome for check in self.by_tree.values()}
        return outcomes.pop() if len(self.by_tree) == 2 and len(outcomes) == 1 else "differs"

    @property
    def wrong(self) -> bool:
        """Whether it makes the run fail."""
        return self.outcome == "differs" or (self.must_pass and self.outcome != "pass")

    @property
    def listed(self) -> bool:
        """Whether reports list it; the others are only counted."""
        return self.must_pass or self.outcome in ("differs", "fail")


def pairs(checks: Iterable[Check]) -> list[Pair]:
    """Return the checks in pairs, in the order of the first of each."""
    groups: dict[tuple[str, str], dict[str, Check]] = {}
    for check in checks:
        groups.setdefault((check.scenario, check.name), {})[check.tree] = check
    return [Pair(*key, by_tree) for key, by_tree in groups.items()]


def others_tests(pairs: Iterable[Pair]) -> dict[str, str]:
    """Return how other people's tests ended, of those that ended alike: "120 pass, 3 skip"."""
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        if not pair.must_pass and not pair.wrong:
            counts.setdefault(pair.scenario, Counter())[pair.outcome] += 1
    return {
        scenario: ", ".join(f"{number} {outcome}" for outcome, number in count.most_common())
        for scenario, count in counts.items()
    }
