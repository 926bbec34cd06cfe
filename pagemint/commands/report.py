# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint report`: turns results into a page of plots."""

from dataclasses import dataclass
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.request import option
from pagemint.report.write import write
from pagemint.results import reader

_MOST = 8  # results on one page


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of `pagemint report`."""

    results: tuple[str, ...] = option(
        (), "a file that --json wrote", "RESULT.json", flags=("results",), nargs="+"
    )
    output: Path = option(
        Path(),
        "where to write index.html and plots",
        "DIR",
        flags=("-o", "--output"),
        required=True,
    )


def main(request: Request) -> int:
    """Run `pagemint report`."""
    count = len(request.results)
    if count > _MOST:
        raise Failure(f"{count} results are too many", f"give {_MOST} or fewer")
    write([reader.read(file) for file in request.results], request.output)
    return 0
