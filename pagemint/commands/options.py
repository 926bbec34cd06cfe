# SPDX-License-Identifier: GPL-2.0-only
"""Arguments that several subcommands share, the check of a number, and the end of a run."""

import argparse
from pathlib import Path

from rich.console import Console

from pagemint.base.errors import Failure
from pagemint.report import tables, write
from pagemint.results import writer
from pagemint.results.rows import Result

_LONGEST = 1_000_000  # seconds of a guest


def add_source_arguments(parser: argparse.ArgumentParser, *, stock: bool = False) -> None:
    """Declare --kernel and --ksrc, which `source_for` takes, and perhaps --stock instead."""
    tree = parser.add_mutually_exclusive_group()
    tree.add_argument("--kernel", default="7.3", metavar="LINE", help="kernel line (7.3)")
    tree.add_argument("--ksrc", type=Path, metavar="DIR", help="a kernel tree of your own")
    if stock:
        tree.add_argument(
            "--stock",
            metavar="VERSION",
            help="Debian's stock kernel of that line and the module for it, instead of both trees",
        )


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare --json and --no-report, which every command that ends with a result takes."""
    parser.add_argument(
        "--json", metavar="FILE", help="write the result there; - for standard output"
    )
    parser.add_argument("--no-report", action="store_true", help="write no report at the end")


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Declare --limit, which `check_limit` checks."""
    parser.add_argument(
        "--limit",
        type=float,
        default=3600,
        metavar="S",
        help="seconds that a guest may take in all (3600)",
    )


def check_limit(seconds: float) -> None:
    """Check the seconds of --limit.

    Raises:
        Failure: they are not a time that a guest can take.
    """
    if not 0 < seconds <= _LONGEST:
        raise Failure(f"--limit {seconds:g}: not a valid time", f"give up to {_LONGEST} s")


def check_number(option: str, given: int, least: int, most: int) -> None:
    """Check the number that an option gives.

    Raises:
        Failure: it is less than `least` or more than `most`.
    """
    if given < least:
        raise Failure(f"{option} {given} is too few", f"give {least} or more")
    if given > most:
        raise Failure(f"{option} {given} is too many", f"give {most} or fewer")


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
