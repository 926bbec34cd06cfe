# SPDX-License-Identifier: GPL-2.0-only
"""Draws a result beside the published figures, which come from another machine."""

from pagemint.report.drawings import MOST_GROUPS, bandwidth
from pagemint.report.names import Names
from pagemint.report.plots import bars
from pagemint.report.plots.groups import Group
from pagemint.report.plots.sheet import Frame, Plot
from pagemint.results.cases import is_copy, returns_of
from pagemint.results.estimates import Estimate
from pagemint.results.verdict import Judged

_MS = {"fsdax": (262.12, 108.36), "devdax": (229.12, 100.17)}
_SIZES = range(98 * 10**9, 109 * 10**9)  # bytes: 100 GB or 100 GiB
_COPY = (18.65, 38.03)  # GB/s
_ELSEWHERE = "another machine"


def draw(judged: Judged, tag: str, names: Names) -> list[Plot]:
    """Draw the published figures beside the result's: times of the same size, and bandwidths.

    There are none beside a result of trees that the user named.
    """
    if judged.result.trees:
        return []
    result = f"result {tag}, " if tag else ""
    about = "published: another machine (VM on Ice Lake, Linux 7.1-rc6)"
    maps: list[Group] = []
    copies: list[Group] = []
    for case, lines in judged.lines.items():
        best = judged.shown(case)
        if "base" not in lines or not best or case.threads > 1:
            continue
        here = {line.row.variant: line.time for line in (lines["base"], *best)}
        how = f" {returns_of(case.returns)}" if case.returns else ""
        if is_copy(case):
            name = ", ".join(word for word in (case.function, case.cpu_class) if word)
            values = {key: bandwidth(time, case.device_bytes) for key, time in here.items()}
            copies.append(Group(f"{name}, here", values))
        elif case.workload in _MS and case.device_bytes in _SIZES:
            name = f"{case.workload}, {_ELSEWHERE}"
            before, after = (_exactly(value) for value in _MS[case.workload])
            if name not in {group.name for group in maps}:
                maps.append(Group(name, {"base": before, "published": after}))
            maps.append(Group(f"{case.workload}, here,{how}", here))
    drawn = []
    if maps:
        frame = Frame(
            names("published", tag),
            "Beside the published figures",
            about,
            "time (ms)",
            f"100 GB, 1 thread. Published: means of 30 rebinds. Here: {result}medians.",
        )
        drawn.append(bars.draw(frame, sorted(maps, key=_workload)[:MOST_GROUPS], ""))
    if copies:
        before, after = (_exactly(value) for value in _COPY)
        theirs = Group(f"folio copy, {_ELSEWHERE}", {"base": before, "patched": after})
        heading = "Folio copy beside the published figures"
        frame = Frame(names("published copy", tag), heading, about, "copied (GB/s)", "")
        drawn.append(bars.draw(frame, [theirs, *copies[: MOST_GROUPS - 1]], ""))
    return drawn


def _workload(group: Group) -> str:
    return group.name.partition(",")[0]


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 1)
