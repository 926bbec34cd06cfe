# SPDX-License-Identifier: GPL-2.0-only
"""The report: one HTML page of what results say in words, tables and plots."""

import itertools
import re
import statistics
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pagemint import __version__
from pagemint.base import returns
from pagemint.base.sizes import format_size
from pagemint.report import plots
from pagemint.report.plots import Frame, Group, Plot
from pagemint.results import estimates, verdict
from pagemint.results.estimates import Estimate
from pagemint.results.reader import Case, Result
from pagemint.results.verdict import Comparison, Judged, Line, is_copy, title

_PUBLISHED_MS = {"fsdax": (262.12, 108.36), "devdax": (229.12, 100.17)}
_PUBLISHED_SIZES = range(98 * 10**9, 109 * 10**9)  # bytes: 100 GB or 100 GiB
_PUBLISHED_COPY = (18.65, 38.03)  # GB/s
_ELSEWHERE = "another machine"

# A hostile result may have thousands of what a true one has few of; the tables have all.
_MOST_GROUPS = 12
_MOST_SERIES = 10
_MOST_PLOTS = 6  # of one kind


@dataclass(frozen=True)
class Section:
    """What the page says of one result.

    Attributes:
        tag: a letter, if there are several.
        judged: the result.
        plots: in the order of the page.
    """

    tag: str
    judged: Judged
    plots: list[Plot]


class _Names:
    """Gives each plot a name of its own, that is safe for a file."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, *parts: str) -> str:
        name = re.sub("[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")[:60]
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        own = next(each for each in names if each not in self._taken)
        self._taken.add(own)
        return own


def make(results: Sequence[Result]) -> tuple[str, list[Plot]]:
    """Return the page, and the plots that are on it."""
    several = len(results) > 1
    names = _Names()
    sections = []
    for letter, result in zip(string.ascii_uppercase, results, strict=False):
        tag = letter if several else ""
        judged = Judged(result)
        drawn = _plots(judged, tag, names) if result.host.times_comparable else []
        sections.append(Section(tag, judged, drawn))
    together = _side_by_side(sections, names) if several else []
    comparisons: list[tuple[str, Comparison]] = [
        (f"{a.tag} and {b.tag}", verdict.compare(a.judged, b.judged))
        for a, b in itertools.pairwise(sections)
    ]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": format_size,
        "median": statistics.median,
        "title": title,
        "bound": lambda case, judged: any(line.row.bind_ms for line in judged.lines[case].values()),
    }
    text = environment.get_template("page.html.j2").render(
        sections=sections,
        comparisons=comparisons,
        together=together,
        dark=Markup(plots.DARK_CSS),
        safe_svg=lambda plot: Markup(plot.svg),
        condition=verdict.condition,
        returns=returns.NAMES,
        fewest=estimates.FEWEST,
        version=__version__,
    )
    return text, [*together, *(plot for section in sections for plot in section.plots)]


def _plots(judged: Judged, tag: str, names: _Names) -> list[Plot]:
    """Draw what one result has data for."""
    drawn: list[Plot] = []
    cases = list(judged.lines)
    for how in list(dict.fromkeys(case.returns for case in cases))[:_MOST_PLOTS]:
        mine = [case for case in cases if case.returns == how]
        maps = [case for case in mine if not is_copy(case)]
        copies = [case for case in mine if is_copy(case)]
        of = _Drawer(judged, tag, how, names)
        if maps:
            drawn += of.bring_up(verdict.largest(maps))
            drawn += of.against_size(maps)
            drawn += of.against_threads(maps)
        for size in dict.fromkeys(case.folio_bytes for case in copies):
            drawn += of.copy([one for one in verdict.largest(copies) if one.folio_bytes == size])
    return drawn + _published(judged, tag, names)


def _published(judged: Judged, tag: str, names: _Names) -> list[Plot]:
    """Draw the published figures beside those of here: of the same size, or as a bandwidth."""
    result = f"result {tag}, " if tag else ""
    about = "published: another machine (VM on Ice Lake, Linux 7.1-rc6)"
    maps: list[Group] = []
    copies: list[Group] = []
    for case, lines in judged.lines.items():
        best = verdict.default(lines)
        if "base" not in lines or not best or case.threads > 1:
            continue
        here = {name: lines[name].time for name in ("base", best)}
        how = f" {returns.NAMES.get(case.returns, case.returns)}" if case.returns else ""
        if is_copy(case):
            name = ", ".join(word for word in (case.function, case.cpu_class) if word)
            values = {key: _bandwidth(time, case.device_bytes) for key, time in here.items()}
            copies.append(Group(f"{name}, here", values))
        elif case.workload in _PUBLISHED_MS and case.device_bytes in _PUBLISHED_SIZES:
            name = f"{case.workload}, {_ELSEWHERE}"
            before, after = (_exactly(value) for value in _PUBLISHED_MS[case.workload])
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
        drawn.append(plots.bars(frame, sorted(maps, key=_workload)[:_MOST_GROUPS], ""))
    if copies:
        before, after = (_exactly(value) for value in _PUBLISHED_COPY)
        theirs = Group(f"folio copy, {_ELSEWHERE}", {"base": before, "patched": after})
        heading = "Folio copy beside the published figures"
        frame = Frame(names("published copy", tag), heading, about, "copied (GB/s)", "")
        drawn.append(plots.bars(frame, [theirs, *copies[: _MOST_GROUPS - 1]], ""))
    return drawn


def _workload(group: Group) -> str:
    return group.name.partition(",")[0]


class _Drawer:
    """Draws the plots of one result under one kind of returns."""

    def __init__(self, judged: Judged, tag: str, how: str, names: _Names) -> None:
        self._judged = judged
        self._names = names
        self._how = returns.NAMES.get(how, how)
        self._tag = tag
        self._slug = (how, tag)

    def bring_up(self, cases: list[Case]) -> list[Plot]:
        """Draw times, speed-ups and samples of the memory map's bring-up."""
        about = self._about(cases)
        drawn = [
            plots.bars(
                self._frame("bring-up", "Bring-up time by mode", about, "time (ms)"),
                self._groups(cases, lambda line: line.time, lambda line: line.row.limit_ms),
                "fill limit",
            )
        ]
        return drawn + self._ratios_and_runs(cases, about, "", "Speed-up over mainline")

    def copy(self, cases: list[Case]) -> list[Plot]:
        """Draw bandwidths, speed-ups and samples of copies, by the CPU's string instructions."""
        about = self._about(cases)
        kind = f"copy {verdict.folios(cases[0])}" if cases[0].folio_bytes else "copy"

        def limit(line: Line) -> float | None:
            at = line.row.limit_ms
            return line.row.device_bytes / at / 1e6 if at else None

        groups = self._groups(
            cases, lambda line: _bandwidth(line.time, line.row.device_bytes), limit
        )
        frame = self._frame(kind, "Folio copy by CPU class", about, "copied (GB/s)")
        drawn = [plots.bars(frame, groups, "best plain loop")]
        return drawn + self._ratios_and_runs(cases, about, kind, "Folio copy: speed-up")

    def against_size(self, cases: list[Case]) -> list[Plot]:
        """Draw the time of a page against the device's size, for what has several sizes."""
        drawn = []
        fewest = min(case.threads for case in cases)
        alike = [case for case in cases if case.threads == fewest]
        for family in _families(alike, lambda case: case._replace(device_bytes=0)):
            first = family[0]
            frame = self._frame(
                f"size {first.workload}",
                f"{title(first)}: time per page by device size",
                self._words(f"{_threads(first.threads)}"),
                "time per struct page (ns)",
            )
            values: dict[str, dict[int, Estimate]] = {}
            limits = {}
            for case in family:
                for name, line in self._few(case).items():
                    scale = 1e6 / line.row.pages
                    values.setdefault(name, {})[case.device_bytes] = line.time.times(scale)
                    if line.row.limit_ms:
                        limits[case.device_bytes] = line.row.limit_ms * scale
            axis = "size of the device (logarithmic)"
            drawn.append(plots.curves(frame, values, ("fill limit", limits), axis, as_bytes=True))
        return drawn

    def against_threads(self, cases: list[Case]) -> list[Plot]:
        """Draw the time against the number of threads, for what has several."""
        drawn = []
        most = max(case.device_bytes for case in cases)
        alike = [case for case in cases if case.device_bytes == most]
        for family in _families(alike, lambda case: case._replace(threads=0)):
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
                    if line.row.limit_ms:
                        limits[case.threads] = line.row.limit_ms
            drawn.append(
                plots.curves(
                    frame, values, ("fill limit", limits), "threads (number)", as_bytes=False
                )
            )
        return drawn

    def _ratios_and_runs(
        self, cases: list[Case], about: str, kind: str, heading: str
    ) -> list[Plot]:
        drawn = []
        name = self._name_of(cases)
        groups = [group for group in self._groups(cases, lambda line: line.speedup) if group.values]
        if groups:
            frame = self._frame(
                f"speed-up {kind}",
                heading,
                about,
                "speed-up (x, base over this)",
                "Medians, 95% intervals. The grey band is what the same code differs by.",
            )
            drawn.append(plots.ratios(frame, groups))
        runs = [
            (name(case), {key: line.row.runs_ms for key, line in self._few(case).items()})
            for case in cases[:_MOST_GROUPS]
        ]
        of = "Folio copy: every" if kind else "Every"
        frame = self._frame(
            f"samples {kind}",
            f"{of} run, about its median",
            about,
            "difference from the median (%)",
            "The box holds the middle half of the runs.",
        )
        drawn.append(plots.deviations(frame, runs))
        return drawn

    def _groups(
        self,
        cases: list[Case],
        value: Callable[[Line], Estimate | None],
        limit: Callable[[Line], float | None] = lambda line: None,
    ) -> list[Group]:
        name = self._name_of(cases)
        groups = []
        for case in cases[:_MOST_GROUPS]:
            lines = self._few(case)
            values = {key: found for key, line in lines.items() if (found := value(line))}
            limits = [at for line in lines.values() if (at := limit(line))]
            groups.append(
                Group(
                    name(case),
                    values,
                    statistics.median(limits) if limits else None,
                    self._judged.floor(case),
                )
            )
        return groups

    def _few(self, case: Case) -> dict[str, Line]:
        return dict(itertools.islice(self._judged.lines[case].items(), _MOST_SERIES))

    def _name_of(self, cases: list[Case]) -> Callable[[Case], str]:
        """Return what gives a case its name in a plot, where _about() says what all share."""
        sizes = len({case.device_bytes for case in cases})
        folios = len({case.folio_bytes for case in cases})

        def name(case: Case) -> str:
            bare = title(case._replace(folio_bytes=0)) if folios == 1 else title(case)
            return bare if sizes == 1 else f"{bare}, {format_size(case.device_bytes)}"

        return name

    def _about(self, cases: list[Case]) -> str:
        """Return what the cases have in common."""
        parts = []
        sizes = {case.device_bytes for case in cases}
        if len(sizes) == 1:
            size = format_size(*sizes)
            parts.append(f"{size} a run" if is_copy(cases[0]) else f"{size} device")
        if is_copy(cases[0]) and len({case.folio_bytes for case in cases}) == 1:
            parts.append(verdict.folios(cases[0]))
        threads = {case.threads for case in cases}
        if len(threads) == 1:
            parts.append(_threads(*threads))
        if len(cases) > _MOST_GROUPS:
            parts.append(f"{_MOST_GROUPS} of {len(cases)}")
        return self._words(*parts)

    def _words(self, *parts: str) -> str:
        result = f"result {self._tag}" if self._tag else ""
        return ", ".join(part for part in (result, *parts, self._how) if part)

    def _frame(self, kind: str, heading: str, about: str, axis: str, note: str = "") -> Frame:
        return Frame(self._names(kind, *self._slug), heading, about, axis, note)


def _side_by_side(sections: Sequence[Section], names: _Names) -> list[Plot]:
    """Draw each case that several results have, one group a result."""
    drawn = []
    able = [section for section in sections if section.judged.result.host.times_comparable]
    cases = dict.fromkeys(case for section in able for case in section.judged.lines)
    shared = [case for case in cases if sum(case in section.judged.lines for section in able) > 1]
    for case in verdict.largest(shared)[:_MOST_PLOTS]:
        times, speedups = [], []
        for section in able:
            lines = section.judged.lines.get(case, {})
            few = dict(itertools.islice(lines.items(), _MOST_SERIES))
            if not few:
                continue
            result = section.judged.result
            kernel = f"Linux {result.kernel.version}, {result.host.date:%Y-%m-%d}"
            name = f"{section.tag}: {result.host.cpu}\n{kernel}"
            limits = [line.row.limit_ms for line in few.values() if line.row.limit_ms]
            limit = statistics.median(limits) if limits else None
            noise = section.judged.floor(case)
            times.append(Group(name, {key: few[key].time for key in few}, limit))
            ratios = {key: line.speedup for key, line in few.items() if line.speedup}
            speedups.append(Group(name, ratios, None, noise))
        about = str(verdict.condition(case))
        what = title(case)
        frame = Frame(names("side by side", what), f"{what} side by side", about, "time (ms)", "")
        drawn.append(plots.bars(frame, times, "limit"))
        speedups = [group for group in speedups if group.values]
        if speedups:
            frame = Frame(
                names("speed-up side by side", what),
                f"{what}: speed-ups side by side",
                about,
                "speed-up (x, base over this)",
                "Each against base on its own machine.",
            )
            drawn.append(plots.ratios(frame, speedups))
    return drawn


def _families(cases: list[Case], key: Callable[[Case], Case]) -> list[list[Case]]:
    """Return the cases that differ only in what `key` leaves out, where there are several."""
    found: dict[Case, list[Case]] = {}
    for case in cases:
        found.setdefault(key(case), []).append(case)
    families = [family for family in found.values() if len(family) > 1]
    return families[:_MOST_PLOTS]


def _bandwidth(time: Estimate, size: int) -> Estimate:
    """Return GB/s from milliseconds."""
    return time.inverse().times(size / 1e6)


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 1)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
