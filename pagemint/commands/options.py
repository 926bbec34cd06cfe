# SPDX-License-Identifier: GPL-2.0-only
"""Arguments that several subcommands take, and the check of a number."""

import argparse
from pathlib import Path

from pagemint.base.errors import Failure


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


def check_number(option: str, given: int, least: int, most: int) -> None:
    """Check the number that an option gives.

    Raises:
        Failure: it is less than `least` or more than `most`.
    """
    if given < least:
        raise Failure(f"{option} {given} is too few", f"give {least} or more")
    if given > most:
        raise Failure(f"{option} {given} is too many", f"give {most} or fewer")
