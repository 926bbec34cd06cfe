# SPDX-License-Identifier: GPL-2.0-only
"""The rows that tell what one gains: which cases they are of, their order, and their figures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pagemint.base import returns
from pagemint.results import cases
from pagemint.results.estimates import Gain
from pagemint.results.rows import Case
from pagemint.results.verdict import Judged, Line

MOST = 9
"""Most rows of a report's first table."""


@dataclass(frozen=True)
class Kind:
    """The cases of which a headline tells.

    Attributes:
        workload: their workload.
        title: their name in a table.
        bytes: the size of their blocks or folios; 0 if they have none.
        short: the name of their column in the README; "" if it has none.
    """

    workload: str
    title: str
    bytes: int = 0
    short: str = ""


KINDS = (
    Kind("hotplug", "hot-added, 2 GiB blocks", 2 << 30, "hot-added memory"),
    Kind("hotplug", "hot-added, 128 MiB blocks", 128 << 20),
    Kind("boot", "deferred to after boot", 0, "boot memory, deferred"),
    Kind("vmemmap", "device-private, with allocation", 0, "GPU (private), with allocation"),
    Kind("private", "device-private"),
    Kind("fsdax", "fsdax", 0, "pmem (fsdax)"),
    Kind("devdax", "devdax, 2 MiB compounds"),
    Kind("devdax-1g", "devdax, 1 GiB compounds"),
    Kind("folio", "1 GiB folios", 1 << 30),
)
"""The kinds, those that lead Linux 7.4 first."""


@dataclass(frozen=True)
class Headline:
    """The gain in a case, with what it is compared with.

    Attributes:
        title: the name of the case.
        before: mainline, or the tree that the others are compared with.
        expected: the stand-in for Linux 7.4; None if there is none.
        ours: the patched tree, or one that the user named.
        gain: the gain of ours over `before`.
        over_expected: the gain over Linux 7.4: "1.80x", "equal", or "?" if there is no stand-in.
    """

    title: str
    before: Line
    expected: Line | None
    ours: Line
    gain: Gain
    over_expected: str

    @property
    def interval(self) -> str:
        """The 95% interval of the gain: "1.33 to 1.35"; "few runs" if they are too few."""
        paired = self.gain.paired
        return f"{paired.low:.2f} to {paired.high:.2f}" if paired.known else "few runs"

    @property
    def share(self) -> str:
        """The share of the limit: "0.98"; "?" if the limit is not known."""
        return f"{self.ours.limit_share:.2f}" if self.ours.limit_share else "?"

    def time(self, line: Line) -> str:
        """Return a time with its unit: that of the whole case, or of a step of an operation."""
        case = self.ours.row.case
        if cases.is_step(case) and not kind_of(case):
            return f"{line.time.value * 1e6 / cases.units(case):,.0f} ns"
        return f"{line.time.value:.{2 if line.time.value < 10 else 1}f} ms"


def kind_of(case: Case) -> Kind | None:
    """Return the kind of a case; None if it is of none."""
    size = case.folio_bytes or case.block_bytes
    fitting = (kind for kind in KINDS if kind.workload == case.workload)
    return next((kind for kind in fitting if size in (kind.bytes, 0) or not kind.bytes), None)


def of(judged: Judged, case: Case) -> Iterator[Headline]:
    """Yield the headlines of a case: one, or one for each tree that the user named."""
    kind, before = kind_of(case), judged.over(case)
    for line in judged.shown(case):
        assert before and line.gain
        title = kind.title if kind else cases.title(case)
        if cases.is_copy(case) and kind:
            title += f": {case.function}"
        if judged.result.trees:
            title += f", {line.row.tree}"
        over = judged.over_expected(line)
        yield Headline(title, before, judged.expected(case), line, line.gain, over)


def chosen(judged: Judged, how: str = "") -> list[Headline]:
    """Return the headlines of a result: the kinds in their order, and others if all of them fit.

    Args:
        judged: the result.
        how: the kind of returns. "" stands for plain returns, or the first kind that there is.

    Returns:
        those of the largest device and the fewest threads; of copies of one size that which gains
        least with the string instructions of the machine.
    """
    shown = judged.largest(judged.lines)
    timed = [case.returns for case in shown]
    how = how or (returns.PLAIN if returns.PLAIN in timed else next(iter(timed), ""))
    own = judged.result.host.cpu_class
    groups: dict[object, list[Headline]] = {}
    for case in shown:
        # Some workloads are timed with one kind of returns alone.
        other = case.returns != how and replace(case, returns=how) in judged.lines
        if other or (case.cpu_class and own not in ("", case.cpu_class)):
            continue
        for headline in of(judged, case):
            key = (case.folio_bytes or case, headline.ours.row.tree)
            groups.setdefault(key, []).append(headline)
    least = [min(group, key=lambda headline: headline.gain.headline) for group in groups.values()]
    least.sort(key=lambda headline: rank(headline.ours.row.case))
    kinds = [headline for headline in least if kind_of(headline.ours.row.case)]
    return kinds if kinds and len(least) > MOST else least


def rank(case: Case) -> int:
    """Return the place of a case among others: that of its kind, or the last one."""
    kind = kind_of(case)
    return KINDS.index(kind) if kind else len(KINDS)
