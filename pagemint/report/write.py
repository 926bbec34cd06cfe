# SPDX-License-Identifier: GPL-2.0-only
"""Writes a report: the page of some results, and its plots."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pagemint.base import disk
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.results.rows import Result

REMEDY = "pip install 'pagemint[report]', then: pagemint report RESULT.json -o DIR"
"""The remedy if a module is missing that draws reports."""


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
    if missing_module():
        raise Failure(f"the report needs {missing_module()}", REMEDY)
    what, remedy = f"the report to {target}", "name another directory"
    disk.check_directory(target, what, remedy)
    with step("drawing the report"):
        # Imported late: matplotlib and Jinja2 must not be loaded before a measurement.
        from pagemint.report import page

        text, plots = page.make(results)
    try:
        target.mkdir(parents=True, exist_ok=True)
        page_file = target / "index.html"
        for plot in plots:
            (target / f"{plot.name}.svg").write_text(plot.file, encoding="utf-8")
            (target / f"{plot.name}.png").write_bytes(plot.png)
        page_file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {what}: {error.strerror}", remedy) from error
    note(f"the report is in {page_file}")


def missing_module() -> str:
    """Return a module of the extra `report` that is not installed, or ""."""
    return next((name for name in ("jinja2", "matplotlib") if not find_spec(name)), "")
