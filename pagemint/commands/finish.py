# SPDX-License-Identifier: GPL-2.0-only
"""The end of a run in guests or on this machine: its tables, its file, and its report."""

import argparse

from rich.console import Console

from pagemint.report import tables, write
from pagemint.results import writer
from pagemint.results.rows import Result


def check_writable(args: argparse.Namespace) -> None:
    """Check that --json and the report can be written, before the runs that could be lost.

    Raises:
        Failure: one of them cannot be written.
    """
    writer.check_file(args.json)
    write.check_report(args)


def finish(args: argparse.Namespace, result: Result) -> None:
    """Write a result to --json, show every row, and write its report.

    The tables come second: rich ends the program if nobody reads them.

    Raises:
        Failure: the file or the report cannot be written.
    """
    writer.write(args.json, result)
    tables.show_all(result, Console(stderr=args.json == "-"))
    write.after_run(args, result)
