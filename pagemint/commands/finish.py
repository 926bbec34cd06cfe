# SPDX-License-Identifier: GPL-2.0-only
"""The end of a run in guests or on this machine: its tables, its file, and its report."""

import argparse

from rich.console import Console

from pagemint.report import tables
from pagemint.report.write import after_run
from pagemint.results import writer
from pagemint.results.rows import Result


def finish(args: argparse.Namespace, result: Result) -> None:
    """Show every row of a result, write it to --json, and write its report.

    Raises:
        Failure: the file or the report cannot be written.
    """
    tables.show_all(result, Console(stderr=args.json == "-"))
    writer.write(args.json, result)
    after_run(args, result)
