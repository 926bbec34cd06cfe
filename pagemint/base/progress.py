# SPDX-License-Identifier: GPL-2.0-only
"""Progress on stderr: a live line on a terminal, one plain line for each long stage elsewhere."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    with _live(text, None) if sys.stderr.isatty() else _plain(text):
        yield


@contextmanager
def doing(ask: Callable[[], str]) -> Iterator[None]:
    """Show what `ask` returns, each second, after the text of a step() on a terminal."""
    _asked.append(ask)
    try:
        yield
    finally:
        _asked.remove(ask)


@contextmanager
def bar(text: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on a terminal; elsewhere, do the same as step().

    Yields:
        a function that adds to the work done, out of `total`.
    """
    with _live(text, total) if sys.stderr.isatty() else _plain(text) as advance:
        yield advance


@contextmanager
def _live(text: str, total: float | None) -> Iterator[Callable[[float], None]]:
    # Imported late: make patches has the standard library alone.
    from pagemint.base import live

    begin = time.monotonic()
    with live.line(text, total, lambda: _asked[-1]() if _asked else "") as advance:
        yield advance
    elapsed = time.monotonic() - begin
    if elapsed > _WORTH:
        note(f"{text} ... {elapsed:.1f} s")


@contextmanager
def _plain(text: str) -> Iterator[Callable[[float], None]]:
    begin = time.monotonic()
    timer = threading.Timer(_WORTH, _lines.open, (text,))
    timer.daemon = True
    timer.start()
    seconds = None
    try:
        yield lambda amount: None
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
