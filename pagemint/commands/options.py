# SPDX-License-Identifier: GPL-2.0-only
"""The options that several commands share, the check of a number, and the end of a run."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from pagemint.base import disk
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.base.request import option
from pagemint.report import tables, write
from pagemint.results import writer
from pagemint.results.rows import Result

_LONGEST = 1_000_000  # seconds of a guest


@dataclass(frozen=True, kw_only=True)
class Source:
    """The kernel source to take, as `patches.source_for` does."""

    kernel: str = option("7.3", "kernel line (7.3)", "LINE", only="tree")
    ksrc: Path | None = option(None, "a kernel tree of your own", "DIR", only="tree")


@dataclass(frozen=True, kw_only=True)
class GuestSource(Source):
    """The kernel source to take, or a stock kernel."""

    stock: str | None = option(
        None,
        "Debian's stock kernel of that line and the module for it, instead of both trees",
        "VERSION",
        only="tree",
    )


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The time that a guest may take."""

    limit: float = option(3600, "seconds that a guest may take in all (3600)", "S")

    @property
    def checked(self) -> float:
        """The seconds; Failure if they are not a time that a guest can take."""
        if not 0 < self.limit <= _LONGEST:
            raise Failure(f"--limit {self.limit:g}: not a valid time", f"give up to {_LONGEST} s")
        return self.limit


@dataclass(frozen=True, kw_only=True)
class Output:
    """The place of the result of a command, and of its report."""

    command: str
    json: str | None = option(None, "write the result there; - for standard output", "FILE")
    no_report: bool = option(False, "write no report at the end")

    @property
    def page(self) -> Path | None:
        """The directory of the report; None if there will be none."""
        if self.no_report or write.missing_module():
            return None
        return write.directory(self.command, self.json)

    @property
    def console(self) -> Console:
        """The terminal: stderr if standard output has the result."""
        return Console(stderr=self.json == "-")

    def check(self) -> None:
        """Check that the result and the report can be written, before the runs that could be lost.

        Raises:
            Failure: one of them cannot be written.
        """
        writer.check_file(self.json)
        if self.page:
            remedy = "give --no-report, or --json FILE in a directory of yours"
            disk.check_directory(self.page, f"the report to {self.page}", remedy)

    def finish(self, result: Result) -> None:
        """Write a result, show every row, and write its report.

        The tables come second: rich ends the program if nobody reads them.

        Raises:
            Failure: the file or the report cannot be written.
        """
        writer.write(self.json, result)
        tables.show_all(result, self.console)
        self.report(result)

    def report(self, result: Result) -> None:
        """Write the report of a result, or note why there is none, unless none is wanted.

        Raises:
            Failure: it cannot be written.
        """
        if self.page:
            write.write([result], self.page)
        elif not self.no_report:
            note(f"no page of plots: {write.missing_module()} is not installed; {write.REMEDY}")


def check_number(option: str, given: int, least: int, most: int) -> None:
    """Check the number that an option gives.

    Raises:
        Failure: it is less than `least` or more than `most`.
    """
    if given < least:
        raise Failure(f"{option} {given} is too few", f"give {least} or more")
    if given > most:
        raise Failure(f"{option} {given} is too many", f"give {most} or fewer")
