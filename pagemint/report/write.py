# SPDX-License-Identifier: GPL-2.0-only
"""Writes the report: the page of any results, and the one that ends a run.

What draws is imported only when it is time to: never before something is measured.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.results import reader
from pagemint.results.rows import SCHEMA

if TYPE_CHECKING:
    from pagemint.results.reader import Result


def after_run(args: argparse.Namespace, body: dict[str, Any]) -> None:
    """Write the report of a run that was just made, unless --no-report was given.

    Args:
        args: of the command, with `command`, `json` and `no_report`.
        body: the result as it was given to writer.write().
    """
    if args.no_report:
        return

    text = json.dumps({"schema": SCHEMA, **body}).encode()
    write([reader.parse(text, "this result")], directory(args.command, args.json))


def directory(command: str, file: str | None) -> Path:
    """Return where the report of a run goes: beside its --json file, out/vm.json: out/vm-report.

    Without one it is $XDG_STATE_HOME/pagemint/<command>-report, else in ~/.local/state: what is
    kept, but not for long.
    """
    if file and file != "-":
        return Path(file).with_name(f"{Path(file).stem}-report")
    base = os.environ.get("XDG_STATE_HOME", "")
    state = Path(base) if base.startswith("/") else Path.home() / ".local/state"
    return state / "pagemint" / f"{command}-report"


def write(results: "Sequence[Result]", target: Path) -> None:
    """Write the page of some results and its plots to a directory.

    Raises:
        Failure: it cannot be written.
    """
    with step("drawing the report"):
        from pagemint.report import page

        text, plots = page.make(results)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for plot in plots:
            (target / f"{plot.name}.svg").write_text(plot.file)
            (target / f"{plot.name}.png").write_bytes(plot.png)
        (target / "index.html").write_text(text)
    except OSError as error:
        raise Failure(
            f"cannot write the report to {target}: {error.strerror}", "name another directory"
        ) from error
    note(f"the report is in {target / 'index.html'}")
