# SPDX-License-Identifier: GPL-2.0-only
"""The plots of one workload: its times, its runs, and its times against size and threads."""

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from pagemint.base.sizes import format_size
from pagemint.report.plots import curves
from pagemint.report.plots.groups import Group, draw_bars, draw_runs
from pagemint.report.plots.sheet import Frame, Plot
from pagemint.report.svg import Names
from pagemint.results import cases
from pagemint.results.cases import is_copy, is_memmap, is_step, units
from pagemint.results.estimates import Estimate
from pagemint.results.rows import Case
from pagemint.results.verdict import Judged, Line

_MOST_GROUPS = 12
"""Most groups of a plot: a hostile result may have thousands. The tables show all."""

_MOST_SERIES = 10
"""Most series of a group, likewise."""

_MOST_PLOTS = 6
"""Most plots of one kind, likewise."""


def draw(judged: Judged, members: Sequence[Case], tag: str, names: Names) -> list[Plot]:
    """Draw the plots for which the cases of a workload have data; `tag` is the result's letter."""
    of = _Drawer(judged, tag, members[0].workload, names)
    drawn: list[Plot] = []
    for size in list(dict.fromkeys(case.folio_bytes for case in members))[:_MOST_PLOTS]:
        drawn += of.times(judged.largest(case for case in members if case.folio_bytes == size))
    maps = [case for case in members if is_memmap(case)]
    return [*drawn, *of.against_size(maps), *of.against_threads(maps)]


class _Drawer:
    """Draws the plots of one workload of a result."""

    def __init__(self, judged: Judged, tag: str, workload: str, names: Names) -> None:
        self._judged = judged
        self._tag = tag
        self._workload = workload
        self._names = names

    def times(self, members: list[Case]) -> list[Plot]:
        """Draw the times, or the bandwidths of copies, and every run."""
        first = members[0]
        copy = is_copy(first)
        axis = "copied (GB/s)" if copy else "time (µs)" if is_step(first) else "time (ms)"
        name = _namer(members)
        groups = []
        for case in members[:_MOST_GROUPS]:
            lines = self._few(case)
            limits = [at for line in lines.values() if (at := line.limit_ms)]
            limit_ms = statistics.median(limits) if limits else None
            groups.append(
                Group(
                    name(case),
                    {key: _in_unit(case, line.time) for key, line in lines.items()},
                    limit_ms and _in_unit(case, Estimate(limit_ms, limit_ms, limit_ms, 1)).value,
                )
            )
        about = self._about(members)
        limit = "best plain loop" if copy else "fill limit"
        frame = self._frame("time", "speed" if copy else "time", about, axis)
        runs = [
            (name(case), {key: line.row.runs_ms for key, line in self._few(case).items()})
            for case in members[:_MOST_GROUPS]
        ]
        note = "The box holds the middle half of the runs."
        axis = "difference from the median (%)"
        return [
            draw_bars(frame, groups, limit, 2 if is_step(first) else 1),
            draw_runs(self._frame("runs", "every run", about, axis, note), runs),
        ]

    def against_size(self, members: Sequence[Case]) -> list[Plot]:
        """Draw the time of a page against the device's size, for cases of several sizes."""
        fewest = min((case.threads for case in members), default=1)
        alike = [case for case in members if case.threads == fewest]
        return [
            self._curves(
                family,
                self._frame(
                    "size",
                    "time per page by device size",
                    self._words(cases.threads(fewest), cases.returns_of(family[0].returns)),
                    "time per struct page (ns)",
                ),
                lambda case: case.device_bytes,
                lambda case: 1e6 / case.pages,
                "size of the device (logarithmic)",
                as_bytes=True,
            )
            for family in _families(alike, cases.of_any_size)
        ]

    def against_threads(self, members: Sequence[Case]) -> list[Plot]:
        """Draw the time against the number of threads, for cases of several numbers."""
        most = max((case.device_bytes for case in members), default=0)
        alike = [case for case in members if case.device_bytes == most]
        return [
            self._curves(
                family,
                self._frame(
                    "threads",
                    "time by threads",
                    self._words(_device(most), cases.returns_of(family[0].returns)),
                    "time (ms)",
                ),
                lambda case: case.threads,
                lambda case: 1,
                "threads (number)",
                as_bytes=False,
            )
            for family in _families(alike, lambda case: replace(case, threads=1))
        ]

    def _curves(
        self,
        family: list[Case],
        frame: Frame,
        at: Callable[[Case], int],
        scale: Callable[[Case], float],
        axis: str,
        *,
        as_bytes: bool,
    ) -> Plot:
        values: dict[str, dict[int, Estimate]] = {}
        limits = {}
        for case in family:
            for name, line in self._few(case).items():
                values.setdefault(name, {})[at(case)] = line.time.times(scale(case))
                if line.limit_ms:
                    limits[at(case)] = line.limit_ms * scale(case)
        return curves.draw(frame, values, limits, axis, as_bytes=as_bytes)

    def _few(self, case: Case) -> dict[str, Line]:
        return dict(itertools.islice(self._judged.lines[case].items(), _MOST_SERIES))

    def _about(self, members: list[Case]) -> str:
        """Return the properties that the cases have in common, in words."""
        first = members[0]
        sizes, threads, kinds = (
            {getattr(case, name) for case in members}
            for name in ("device_bytes", "threads", "returns")
        )
        size = format_size(first.device_bytes)
        return self._words(
            ("" if len(sizes) > 1 else f"{size} a run" if is_copy(first) else _device(*sizes)),
            cases.folios(first.folio_bytes) if first.folio_bytes else "",
            cases.threads(*threads) if len(threads) == 1 else "",
            cases.returns_of(*kinds) if len(kinds) == 1 else "",
            f"{_MOST_GROUPS} of {len(members)}" if len(members) > _MOST_GROUPS else "",
        )

    def _words(self, *parts: str) -> str:
        result = f"result {self._tag}" if self._tag else ""
        return ", ".join(part for part in (result, *parts) if part)

    def _frame(self, kind: str, heading: str, about: str, axis: str, note: str = "") -> Frame:
        name = self._names(kind, self._workload, self._tag)
        return Frame(name, f"{self._workload}: {heading}", about, axis, note)


def _namer(members: list[Case]) -> Callable[[Case], str]:
    """Return the function that names a case in a plot, without what _about() says of all."""
    sizes = {case.device_bytes for case in members}
    kinds = {case.returns for case in members}

    def name(case: Case) -> str:
        bare = cases.title(replace(case, folio_bytes=0))
        own = bare.removeprefix(f"{case.workload}, ") if bare != case.workload else ""
        parts = (
            own,
            format_size(case.device_bytes) if len(sizes) > 1 else "",
            cases.returns_of(case.returns) if len(kinds) > 1 else "",
        )
        return ", ".join(part for part in parts if part) or case.workload

    return name


def _families(members: list[Case], key: Callable[[Case], Case]) -> list[list[Case]]:
    """Return groups of two or more cases that differ only in the property that `key` drops."""
    groups: dict[Case, list[Case]] = {}
    for case in members:
        groups.setdefault(key(case), []).append(case)
    families = [family for family in groups.values() if len(family) > 1]
    return families[:_MOST_PLOTS]


def _device(size: int) -> str:
    return f"{format_size(size)} device"


def _in_unit(case: Case, ms: Estimate) -> Estimate:
    """Return the GB/s of a copy, the µs of a step of an operation, or the ms of anything else."""
    if is_copy(case):
        return ms.inverse().times(case.device_bytes / 1e6)
    return ms.times(1e3 / units(case)) if is_step(case) else ms
