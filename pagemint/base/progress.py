# SPDX-License-Identifier: GPL-2.0-only
"""Progress on stderr: a live line on a terminal, else a line while a stage lasts and at its end."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SHORT = 2.0  # seconds; a stage that takes no longer leaves no line
_details: list[Callable[[], str]] = []  # the callbacks of doing(), the innermost last


def drop_output(descriptor: int) -> None:
    """Discard buffered and further output to stdout (1) or stderr (2): nothing can read it.

    Python would otherwise fail at its exit, which flushes both.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def note(text: str) -> None:
    """Print one line on stderr."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        # Progress that cannot be written must not end the work.
        drop_output(2)


@contextmanager
def step(text: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """Show that `text` is under way; leave a line with the seconds if it took over 2 s.

    Args:
        text: the work.
        total: its amount, for a bar on a terminal; None if that is not known.

    Yields:
        a function that adds to the work done.
    """
    begin = time.monotonic()
    with _live(text, total) if sys.stderr.isatty() else _plain(text) as advance:
        yield advance
    elapsed = time.monotonic() - begin
    if elapsed > _SHORT:
        note(f"{text} ... {elapsed:.1f} s")


@contextmanager
def doing(detail: Callable[[], str]) -> Iterator[None]:
    """Call `detail` each second on a terminal, and show its text after that of a step()."""
    _details.append(detail)
    try:
        yield
    finally:
        _details.remove(detail)


class _Doing:
    """The part of a stage that is under way, which rich asks for as it draws."""

    def __rich__(self) -> str:
        return _details[-1]().replace("[", "\\[") if _details else ""


@contextmanager
def _live(text: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Show a stage, with a bar if its amount is known, until the block ends."""
    # Imported late: `make patches` has only the standard library.
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    name, elapsed = progress.TextColumn("{task.description}"), progress.TimeElapsedColumn()
    bar = (name, progress.BarColumn(), progress.TaskProgressColumn(), elapsed)
    part = progress.RenderableColumn(_Doing(), table_column=Column(no_wrap=True, max_width=40))
    columns = (progress.SpinnerColumn(), name, part, elapsed) if total is None else bar
    # Each redraw asks for the part under way: it is read from a file while a guest is timed.
    often = 1 if total is None else 10
    console = Console(stderr=True)
    with progress.Progress(
        *columns, console=console, refresh_per_second=often, transient=True
    ) as shown:
        # Rich would read brackets as markup.
        task = shown.add_task(text.replace("[", "\\["), total=total)
        yield lambda amount: shown.advance(task, amount)


@contextmanager
def _plain(text: str) -> Iterator[Callable[[float], None]]:
    """Print a line once the stage has lasted a while."""
    timer = threading.Timer(_SHORT, note, (f"{text} ...",))
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: None
    finally:
        timer.cancel()
        timer.join()
