# SPDX-License-Identifier: GPL-2.0-only
"""An expected ratio of two trees, such as "fsdax: v5/base >= 1.5", and whether it holds."""

import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from pagemint.base.errors import Failure
from pagemint.results.cases import title
from pagemint.results.estimates import Estimate
from pagemint.results.rows import Case, Row

PLACEMENTS = 8
"""Number of placements of the code whose ratios are averaged."""

_T = 2.365  # Student's t, two-sided 95%, for PLACEMENTS - 1 degrees of freedom
_FORM = re.compile(
    r"\s*(?P<what>[^:]+?)\s*:\s*(?P<tree>[^\s/]+)\s*/\s*(?P<over>[^\s/]+)"
    r"\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[0-9]+(\.[0-9]+)?)\s*"
)


@dataclass(frozen=True)
class Expectation:
    """An expected ratio.

    Attributes:
        workload: the workload.
        words: parts of the title of its case, if it has several.
        tree: the first tree.
        over: the tree that it is compared with.
        most: whether the ratio must not be more than the bound; else it must not be less.
        bound: how many times as fast `tree` has to be as `over`.
    """

    workload: str
    words: tuple[str, ...]
    tree: str
    over: str
    most: bool
    bound: float

    def case(self, cases: Iterable[Case]) -> Case:
        """Return the case that is meant.

        Raises:
            Failure: none is, or several are.
        """
        known = list(dict.fromkeys(cases))
        fitting = [case for case in known if set(self.words) <= set(title(case).split(", "))]
        if len(fitting) == 1:
            return fitting[0]
        titles = "; ".join(title(case) for case in fitting or known)
        many = "several" if fitting else "no"
        raise Failure(
            f"--expect names {many} cases of {self.workload}",
            f"add words of one of these: {titles}",
        )

    def holds(self, ratio: Estimate) -> bool | None:
        """Return whether the ratio is as expected; None if its interval cannot decide."""
        if self.most:
            return True if ratio.high <= self.bound else False if ratio.low > self.bound else None
        return True if ratio.low >= self.bound else False if ratio.high < self.bound else None


def parse(text: str) -> Expectation:
    """Return the expectation in "WORKLOAD[, WORDS]: TREE/TREE >= NUMBER"; <=, > and < do as well.

    Raises:
        Failure: it has another form.
    """
    match = _FORM.fullmatch(text)
    if not match or not float(match["bound"]):
        raise Failure(
            f"--expect {text!r} cannot be read", "write, for example, 'fsdax: v5/base >= 1.5'"
        )
    workload, *words = (word.strip() for word in match["what"].split(","))
    if match["tree"] == match["over"]:
        raise Failure(f"--expect {text!r} compares {match['tree']} with itself", "name two trees")
    bound, most = float(match["bound"]), match["sign"].startswith("<")
    return Expectation(workload, tuple(words), match["tree"], match["over"], most, bound)


def ratio(over: Row, row: Row) -> Estimate:
    """Return how many times as fast one row is as another, with the spread of the placements.

    The runs of both rows come from PLACEMENTS hosts, one after the other, in equal parts. The
    ratio of a placement is the median of the ratios within its rounds. The result is their
    geometric mean, with the interval of Student's t over the placements.
    """
    both = [a / b for a, b in zip(over.runs_ms, row.runs_ms, strict=True)]
    rounds = len(both) // PLACEMENTS
    logs = [
        math.log(statistics.median(both[at : at + rounds])) for at in range(0, len(both), rounds)
    ]
    middle = statistics.mean(logs)
    half = _T * statistics.stdev(logs) / math.sqrt(len(logs))
    low, value, high = map(math.exp, (middle - half, middle, middle + half))
    return Estimate(value, low, high, len(logs), paired=True)


def sentence(expected: Expectation, case: Case, estimate: Estimate) -> str:
    """Return the verdict in words."""
    verdict = {True: "yes", False: "no", None: "undecided"}[expected.holds(estimate)]
    sign = "at most" if expected.most else "at least"
    return (
        f"{title(case)}: {expected.tree}/{expected.over} is {estimate.value:.3f} (95% interval "
        f"{estimate.low:.3f} to {estimate.high:.3f}, {estimate.count} placements); {sign} "
        f"{expected.bound:g}: {verdict}"
    )
