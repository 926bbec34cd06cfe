# SPDX-License-Identifier: GPL-2.0-only
"""Draws several results side by side."""

import itertools
import statistics
from collections.abc import Sequence

from pagemint.report.drawings import GAIN_NOTE, MOST_PLOTS, MOST_SERIES, fastest_of
from pagemint.report.names import Names
from pagemint.report.plots import bars, ratios
from pagemint.report.plots.groups import Group
from pagemint.report.plots.sheet import Frame, Plot
from pagemint.results import cases
from pagemint.results.cases import title
from pagemint.results.rows import Case
from pagemint.results.verdict import Judged


def draw(results: Sequence[tuple[str, Judged]], names: Names) -> list[Plot]:
    """Draw each case that several results have, with a group for each result.

    Args:
        results: the results, each with the letter that stands for it.
        names: gives the plots their names.
    """
    drawn = []
    able = [(tag, judged) for tag, judged in results if judged.result.host.times_comparable]
    found = dict.fromkeys(case for _, judged in able for case in judged.lines)
    shared = [case for case in found if sum(case in judged.lines for _, judged in able) > 1]

    def first(case: Case) -> bool:
        return any(case in judged.lines and judged.shown(case) for _, judged in able)

    for case in cases.largest(shared, first)[:MOST_PLOTS]:
        times, gains = [], []
        for tag, judged in able:
            few = dict(itertools.islice(judged.lines.get(case, {}).items(), MOST_SERIES))
            if not few:
                continue
            result = judged.result
            kernel = f"Linux {result.kernel.version}, {result.host.date:%Y-%m-%d}"
            name = f"{tag}: {result.host.cpu}\n{kernel}"
            limits = [line.limit_ms for line in few.values() if line.limit_ms]
            limit = statistics.median(limits) if limits else None
            times.append(Group(name, {key: few[key].time for key in few}, limit))
            paired = {key: line.gain.paired for key, line in few.items() if line.gain}
            gains.append(Group(name, paired, None, judged.floor(case), fastest_of(few)))
        about = str(cases.condition(case))
        what = title(case)
        frame = Frame(names("side by side", what), f"{what} side by side", about, "time (ms)", "")
        drawn.append(bars.draw(frame, times, "limit"))
        gains = [group for group in gains if group.values]
        if gains:
            frame = Frame(
                names("gain side by side", what),
                f"{what}: gains side by side",
                about,
                "gain (x)",
                f"Each over {_against(able)} on its own machine. {GAIN_NOTE}",
            )
            drawn.append(ratios.draw(frame, gains))
    return drawn


def _against(results: Sequence[tuple[str, Judged]]) -> str:
    """Return the trees that the gains of the results are over."""
    return " or ".join(dict.fromkeys(judged.result.against for _, judged in results))
