# SPDX-License-Identifier: GPL-2.0-only
"""The plots of one result: times, gains, runs, sizes, threads and copies."""

import itertools
import statistics
from collections.abc import Callable
from dataclasses import replace

from pagemint.base.sizes import format_size
from pagemint.report.plots import bars, curves, deviations, ratios
from pagemint.report.plots.groups import Group
from pagemint.report.plots.sheet import Frame, Plot
from pagemint.report.svg import Names
from pagemint.results import cases, estimates
from pagemint.results.cases import is_copy, is_memmap, title, units
from pagemint.results.estimates import Estimate
from pagemint.results.rows import Case
from pagemint.results.verdict import Judged, Line

_GAIN_NOTE = "Medians with 95% intervals; the stroke is the ratio of the fastest runs."
"""The note below a plot of gains."""

_MOST_GROUPS = 12
"""Most groups of a plot: a hostile result may have thousands. The tables show all."""

_MOST_SERIES = 10
"""Most series of a group, likewise."""

_MOST_PLOTS = 6
"""Most plots of one kind, likewise."""


def draw(judged: Judged, tag: str, names: Names) -> list[Plot]:
    """Draw the plots for which a result has data."""
    drawn: list[Plot] = []
    kinds = dict.fromkeys(case.returns for case in judged.lines)
    for how in list(kinds)[:_MOST_PLOTS]:
        mine = [case for case in judged.lines if case.returns == how]
        maps = [case for case in mine if is_memmap(case)]
        copies = [case for case in mine if is_copy(case)]
        steps = [case for case in mine if case.operation]
        of = _Drawer(judged, tag, how, names)
        if maps:
            drawn += of.bring_up(judged.largest(maps))
            drawn += of.against_size(maps)
            drawn += of.against_threads(maps)
        for size in dict.fromkeys(case.folio_bytes for case in copies):
            drawn += of.copy([one for one in judged.largest(copies) if one.folio_bytes == size])
        for workload in list(dict.fromkeys(case.workload for case in steps))[:_MOST_PLOTS]:
            drawn += of.steps([one for one in judged.largest(steps) if one.workload == workload])
    return drawn


class _Drawer:
    """Draws the plots of one result under one kind of returns."""

    def __init__(self, judged: Judged, tag: str, how: str, names: Names) -> None:
        self._judged = judged
        self._names = names
        self._how = cases.returns_of(how)
        self._tag = tag
        self._slug = (how, tag)

    def bring_up(self, members: list[Case]) -> list[Plot]:
        """Draw times, gains and samples of memmaps."""
        about = self._about(members)
        drawn = [
            bars.draw(
                self._frame("bring-up", "Bring-up time by mode", about, "time (ms)"),
                self._groups(members, lambda line: line.time, lambda line: line.limit_ms),
                "fill limit",
            )
        ]
        against = self._judged.result.against
        over = "mainline" if against == "base" else against
        return drawn + self._ratios_and_runs(members, about, "", f"Gain over {over}")

    def copy(self, members: list[Case]) -> list[Plot]:
        """Draw bandwidths, gains and samples of copies, by the CPU's string instructions."""
        about = self._about(members)
        size = members[0].folio_bytes
        kind = f"copy {cases.folios(size)}" if size else "copy"

        def limit(line: Line) -> float | None:
            copied = line.row.case.device_bytes
            return estimates.bytes_per_s(line.limit_ms, copied) / 1e9 if line.limit_ms else None

        groups = self._groups(
            members, lambda line: _bandwidth(line.time, line.row.case.device_bytes), limit
        )
        frame = self._frame(kind, "Folio copy by CPU class", about, "copied (GB/s)")
        drawn = [bars.draw(frame, groups, "best plain loop")]
        return drawn + self._ratios_and_runs(members, about, kind, "Folio copy: gain")

    def steps(self, members: list[Case]) -> list[Plot]:
        """Draw times and gains of the steps of whole operations."""
        about = self._about(members)
        name = members[0].workload
        frame = self._frame(f"steps {name}", f"{name}: time of a step", about, "time (µs)")
        groups = self._groups(members, lambda line: line.time.times(1e3 / units(line.row.case)))
        drawn = [bars.draw(frame, groups, "", 2)]
        return drawn + self._ratios_and_runs(members, about, f"steps {name}", f"{name}: gain")

    def against_size(self, members: list[Case]) -> list[Plot]:
        """Draw the time of a page against the device's size, for workloads with several sizes."""
        drawn = []
        fewest = min(case.threads for case in members)
        alike = [case for case in members if case.threads == fewest]
        for family in _families(alike, cases.of_any_size):
            first = family[0]
            frame = self._frame(
                f"size {first.workload}",
                f"{title(first)}: time per page by device size",
                self._words(cases.threads(first.threads)),
                "time per struct page (ns)",
            )
            values: dict[str, dict[int, Estimate]] = {}
            limits = {}
            for case in family:
                for name, line in self._few(case).items():
                    scale = 1e6 / case.pages
                    values.setdefault(name, {})[case.device_bytes] = line.time.times(scale)
                    if line.limit_ms:
                        limits[case.device_bytes] = line.limit_ms * scale
            axis = "size of the device (logarithmic)"
            drawn.append(curves.draw(frame, values, ("fill limit", limits), axis, as_bytes=True))
        return drawn

    def against_threads(self, members: list[Case]) -> list[Plot]:
        """Draw the time against the number of threads, for workloads with several numbers."""
        drawn = []
        most = max(case.device_bytes for case in members)
        alike = [case for case in members if case.device_bytes == most]
        for family in _families(alike, lambda case: replace(case, threads=1)):
            first = family[0]
            frame = self._frame(
                f"threads {first.workload}",
                f"{title(first)}: bring-up time by threads",
                self._words(f"{format_size(first.device_bytes)} device"),
                "time (ms)",
            )
            values: dict[str, dict[int, Estimate]] = {}
            limits = {}
            for case in family:
                for name, line in self._few(case).items():
                    values.setdefault(name, {})[case.threads] = line.time
                    if line.limit_ms:
                        limits[case.threads] = line.limit_ms
            drawn.append(
                curves.draw(
                    frame, values, ("fill limit", limits), "threads (number)", as_bytes=False
                )
            )
        return drawn

    def _ratios_and_runs(
        self, members: list[Case], about: str, kind: str, heading: str
    ) -> list[Plot]:
        drawn = []
        name = self._name_of(members)
        groups = [group for group in self._groups(members, _paired) if group.values]
        if groups:
            frame = self._frame(
                f"gain {kind}",
                heading,
                about,
                f"gain (x, {self._judged.result.against} over this)",
                f"{_GAIN_NOTE} The grey band is the difference of the same code from itself.",
            )
            drawn.append(ratios.draw(frame, groups))
        runs = [
            (name(case), {key: line.row.runs_ms for key, line in self._few(case).items()})
            for case in members[:_MOST_GROUPS]
        ]
        of = f"{heading.partition(':')[0]}: every" if kind else "Every"
        frame = self._frame(
            f"samples {kind}",
            f"{of} run, about its median",
            about,
            "difference from the median (%)",
            "The box holds the middle half of the runs.",
        )
        drawn.append(deviations.draw(frame, runs))
        return drawn

    def _groups(
        self,
        members: list[Case],
        value: Callable[[Line], Estimate | None],
        limit: Callable[[Line], float | None] = lambda line: None,
    ) -> list[Group]:
        name = self._name_of(members)
        groups = []
        for case in members[:_MOST_GROUPS]:
            lines = self._few(case)
            values = {key: found for key, line in lines.items() if (found := value(line))}
            limits = [at for line in lines.values() if (at := limit(line))]
            groups.append(
                Group(
                    name(case),
                    values,
                    statistics.median(limits) if limits else None,
                    self._judged.floor(case),
                    _fastest_of(lines),
                )
            )
        return groups

    def _few(self, case: Case) -> dict[str, Line]:
        return dict(itertools.islice(self._judged.lines[case].items(), _MOST_SERIES))

    def _name_of(self, members: list[Case]) -> Callable[[Case], str]:
        """Return the function that names a case in a plot, without the parts in _about()."""
        sizes = len({case.device_bytes for case in members})
        folios = len({case.folio_bytes for case in members})

        def name(case: Case) -> str:
            bare = title(replace(case, folio_bytes=0)) if folios == 1 else title(case)
            return bare if sizes == 1 else f"{bare}, {format_size(case.device_bytes)}"

        return name

    def _about(self, members: list[Case]) -> str:
        """Return the properties that the cases have in common, in words."""
        parts = []
        sizes = {case.device_bytes for case in members}
        if len(sizes) == 1:
            size = format_size(*sizes)
            parts.append(f"{size} a run" if is_copy(members[0]) else f"{size} device")
        if is_copy(members[0]) and len({case.folio_bytes for case in members}) == 1:
            parts.append(cases.folios(members[0].folio_bytes))
        threads = {case.threads for case in members}
        if len(threads) == 1:
            parts.append(cases.threads(*threads))
        if len(members) > _MOST_GROUPS:
            parts.append(f"{_MOST_GROUPS} of {len(members)}")
        return self._words(*parts)

    def _words(self, *parts: str) -> str:
        result = f"result {self._tag}" if self._tag else ""
        return ", ".join(part for part in (result, *parts, self._how) if part)

    def _frame(self, kind: str, heading: str, about: str, axis: str, note: str = "") -> Frame:
        return Frame(self._names(kind, *self._slug), heading, about, axis, note)


def _families(members: list[Case], key: Callable[[Case], Case]) -> list[list[Case]]:
    """Return groups of two or more cases that differ only in the property that `key` drops."""
    found: dict[Case, list[Case]] = {}
    for case in members:
        found.setdefault(key(case), []).append(case)
    families = [family for family in found.values() if len(family) > 1]
    return families[:_MOST_PLOTS]


def _bandwidth(time: Estimate, size: int) -> Estimate:
    """Return GB/s from the milliseconds that `size` bytes take."""
    return time.inverse().times(size / 1e6)


def _fastest_of(lines: dict[str, Line]) -> dict[str, float]:
    """Return the gains of the fastest runs."""
    return {name: line.gain.fastest for name, line in lines.items() if line.gain}


def _paired(line: Line) -> Estimate | None:
    return line.gain.paired if line.gain else None
