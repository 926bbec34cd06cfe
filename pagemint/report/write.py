# SPDX-License-Identifier: GPL-2.0-only
"""Writes reports: of any results, and at the end of a run."""

import argparse
import os
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pagemint.base import disk
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.results.rows import Result

_REMEDY = "pip install 'pagemint[report]', then: pagemint report RESULT.json -o DIR"
_PLOT_FILES = re.compile(r'<a href="([^"/]+)\.svg">SVG</a>')  # as the page links to them


def after_run(args: argparse.Namespace, result: Result) -> None:
    """Write the report of a run that was just made, unless --no-report was given.

    Args:
        args: the arguments of the command, with `command`, `json` and `no_report`.
        result: the result of the run.

    Raises:
        Failure: it cannot be written.
    """
    target = place(args)
    if target:
        write([result], target)
    elif not args.no_report:
        note(f"no page of plots: {_missing()} is not installed; {_REMEDY}")


def check_report(args: argparse.Namespace) -> None:
    """Check that `after_run` can write the report, before the runs.

    Raises:
        Failure: the directory cannot be written.
    """
    target = place(args)
    if target:
        remedy = "give --no-report, or --json FILE in a directory of yours"
        disk.check_directory(target, f"the report to {target}", remedy)


def place(args: argparse.Namespace) -> Path | None:
    """Return the directory of a run's report; None with --no-report or without what draws it."""
    return None if args.no_report or _missing() else directory(args.command, args.json)


def directory(command: str, json: str | None) -> Path:
    """Return the directory of a run's report: out/vm-report for --json out/vm.json.

    Without --json it is pagemint/<command>-report in $XDG_STATE_HOME, else in ~/.local/state, and
    the next run overwrites it.
    """
    if json and json != "-":
        return Path(json).with_name(f"{Path(json).stem}-report")
    base = os.environ.get("XDG_STATE_HOME", "")
    state = Path(base) if base.startswith("/") else Path.home() / ".local/state"
    return state / "pagemint" / f"{command}-report"


def write(results: Sequence[Result], target: Path) -> None:
    """Write the page of some results and its plots to a directory.

    Raises:
        Failure: it cannot be written.
    """
    if _missing():
        raise Failure(f"the report needs {_missing()}", _REMEDY)
    what, remedy = f"the report to {target}", "name another directory"
    disk.check_directory(target, what, remedy)
    with step("drawing the report"):
        # Imported late: matplotlib and Jinja2 must not be loaded before a measurement.
        from pagemint.report import page

        text, plots = page.make(results)
    try:
        target.mkdir(parents=True, exist_ok=True)
        _remove_earlier(target)
        for plot in plots:
            (target / f"{plot.name}.svg").write_text(plot.file, encoding="utf-8")
            (target / f"{plot.name}.png").write_bytes(plot.png)
        (target / "index.html").write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {what}: {error.strerror}", remedy) from error
    note(f"the report is in {target / 'index.html'}")


def _missing() -> str:
    """Return a module of the extra `report` that is not installed, or ""."""
    return next((name for name in ("jinja2", "matplotlib") if not find_spec(name)), "")


def _remove_earlier(target: Path) -> None:
    """Remove an earlier page with its plots, so that none of them stays beside a new page."""
    page = target / "index.html"
    if page.is_file():
        # A page of somebody else may be in another encoding. It names no plots of ours.
        for name in _PLOT_FILES.findall(page.read_text(encoding="utf-8", errors="replace")):
            (target / f"{name}.svg").unlink(missing_ok=True)
            (target / f"{name}.png").unlink(missing_ok=True)
        page.unlink()
