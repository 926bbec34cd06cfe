# SPDX-License-Identifier: GPL-2.0-only
"""Progress on stderr: a live line on a terminal, one plain line for each long stage elsewhere."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

_WORTH = 2.0  # seconds; a shorter stage leaves no line
_asked: list[Callable[[], str]] = []  # by doing(), the innermost last


def drop_output(descriptor: int) -> None:
    """Let what is still to be written to stdout (1) or stderr (2) vanish: nothing can read it.

    Python would otherwise fail at its exit, which flushes both.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def note(text: str) -> None:
    """Print one line on stderr."""
    _lines.write(text)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show that `text` is under way; leave a line with the seconds if it took over 2 s."""
    console = Console(stderr=True)
    if console.is_terminal:
        under_way = _Doing(Column(no_wrap=True, max_width=40))
        stage = (SpinnerColumn(), TextColumn("{task.description}"), under_way, TimeElapsedColumn())
        with _live(console, text, None, stage):
            yield
    else:
        with _plain(text):
            yield


@contextmanager
def doing(ask: Callable[[], str]) -> Iterator[None]:
    """Show what `ask` returns, each second, after the text of a step() on a terminal."""
    _asked.append(ask)
    try:
        yield
    finally:
        _asked.remove(ask)


class _Doing(ProgressColumn):
    """The part of a stage that is under way."""

    max_refresh = 1.0

    def render(self, task: Task) -> Text:
        """Return the answer of the innermost doing()."""
        return Text(_asked[-1]() if _asked else "")


@contextmanager
def bar(text: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; elsewhere, do the same as step().

    Yields:
        a function that adds to the work done, out of `total`.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        description = TextColumn("{task.description}")
        columns = (description, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with _live(console, text, total, columns) as advance:
            yield advance
    else:
        with _plain(text):
            yield lambda amount: None


@contextmanager
def _live(
    console: Console, text: str, total: float | None, columns: tuple[ProgressColumn, ...]
) -> Iterator[Callable[[float], None]]:
    begin = time.monotonic()
    with Progress(*columns, console=console, transient=True) as live:
        # Rich would read brackets as markup.
        task = live.add_task(text.replace("[", "\\["), total=total)
        yield lambda amount: live.advance(task, amount)
    elapsed = time.monotonic() - begin
    if elapsed > _WORTH:
        note(f"{text} ... {elapsed:.1f} s")


@contextmanager
def _plain(text: str) -> Iterator[None]:
    begin = time.monotonic()
    timer = threading.Timer(_WORTH, _lines.open, (text,))
    timer.daemon = True
    timer.start()
    seconds = None
    try:
        yield
        seconds = time.monotonic() - begin
    finally:
        timer.cancel()
        timer.join()
        _lines.close(text, seconds)


class _Lines:
    """The lines on stderr. The last one can be open: it names a stage that has not ended yet."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may write a line, too.
        self._lock = threading.RLock()
        self._begun: list[str] = []
        self._open = ""

    def write(self, text: str) -> None:
        """Write a whole line, after the end of an open one."""
        with self._lock:
            self._put(("\n" if self._open else "") + text + "\n")
            self._open = ""

    def open(self, stage: str) -> None:
        """Write the line of a stage without its end."""
        with self._lock:
            self._put(("\n" if self._open else "") + f"{stage} ...")
            self._begun.append(stage)
            self._open = stage

    def close(self, stage: str, seconds: float | None) -> None:
        """Complete the line of a stage, if it has one; `seconds` is None if the stage failed.

        If another line was written meanwhile, the stage gets a second line.
        """
        with self._lock:
            if stage not in self._begun:
                return
            self._begun.remove(stage)
            if self._open == stage:
                self._put("\n" if seconds is None else f" {seconds:.1f} s\n")
                self._open = ""
            elif seconds is not None:
                self.write(f"{stage} ... {seconds:.1f} s")

    def _put(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # Progress that cannot be written must not end the work.
            drop_output(2)


_lines = _Lines()
