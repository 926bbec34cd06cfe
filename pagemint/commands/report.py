# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint report`: turns results into a page of plots."""

import argparse
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.report.write import write

_MOST = 8  # results on one page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint report`."""
    parser.add_argument(
        "results", nargs="+", metavar="RESULT.json", help="a file that --json wrote"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="where to write index.html and plots"
    )


def main(args: argparse.Namespace) -> int:
    """Run `pagemint report`."""
    # Imported late so that building the parser does not load msgspec.
    from pagemint.results import reader

    if len(args.results) > _MOST:
        raise Failure(f"{len(args.results)} results are too many", f"give {_MOST} or fewer")
    write([reader.read(file) for file in args.results], Path(args.output))
    return 0
