# SPDX-License-Identifier: GPL-2.0-only
"""A result as the terminal shows it."""

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pagemint.report import tables
from pagemint.report.first_screen import FirstScreen
from pagemint.results.rows import Result
from pagemint.results.verdict import Judged


def screen(
    result: Result,
    json: str | None = "out/bench.json",
    report: str = "out/r",
    *,
    steps: bool = False,
) -> list[str]:
    """The lines of the first screen."""
    lines: list[str] = []
    shown = FirstScreen(lines.append, steps=steps)
    # A bench adds each workload when it has timed it.
    for workload, returns in dict.fromkeys((r.case.workload, r.case.returns) for r in result.rows):
        rows = [r for r in result.rows if (r.case.workload, r.case.returns) == (workload, returns)]
        shown.add(Judged(replace(result, rows=rows)))
    shown.end(Judged(result), json, Path(report) if report else None)
    return lines


def everything(result: Result) -> str:
    """The text of all tables."""
    out = io.StringIO()
    tables.show_all(result, Console(file=out, width=80))
    return out.getvalue()
