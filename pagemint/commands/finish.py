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
    writer.check_writable(args.json)
    write.check_writable(args)


def finish(args: argparse.Namespace, result: Result) -> None:
    """Show every row of a result, write it to --json, and write its report.

    Raises:
        Failure: the file or the report cannot be written.
    """
    tables.show_all(result, Console(stderr=args.json == "-"))
    writer.write(args.json, result)
    write.after_run(args, result)
