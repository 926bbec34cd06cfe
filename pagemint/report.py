# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint report`: results as a page that people look at; and the one that ends a run.

What draws is imported only when it is time to: never before something is measured.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemint import result
from pagemint.errors import Failure
from pagemint.progress import note, step

if TYPE_CHECKING:
    from pagemint.reader import Result

_MOST = 8  # results on one page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint report`."""
    parser.add_argument("results", nargs="+", metavar="RESULT.json", help="what --json wrote")
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="where to write index.html and plots"
    )


def main(args: argparse.Namespace) -> int:
    """Run `pagemint report`."""
    from pagemint import reader

    if len(args.results) > _MOST:
        raise Failure(f"{len(args.results)} results are too many", f"give {_MOST} or fewer")
    _write([reader.read(file) for file in args.results], Path(args.output))
    return 0


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Declare what every command that ends with a report takes."""
    parser.add_argument("--no-report", action="store_true", help="write no report at the end")


def after_run(args: argparse.Namespace, body: dict[str, Any]) -> None:
    """Write the report of a run that was just made, unless --no-report was given.

    Args:
        args: of the command, with `command`, `json` and `no_report`.
        body: the result as it was given to result.write().
    """
    if args.no_report:
        return
    from pagemint import reader

    text = json.dumps({"schema": result.SCHEMA, **body}).encode()
    _write([reader.parse(text, "this result")], directory(args.command, args.json))


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


def _write(results: "Sequence[Result]", target: Path) -> None:
    with step("drawing the report"):
        from pagemint import page

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
