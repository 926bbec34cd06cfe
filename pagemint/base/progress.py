# SPDX-License-Identifier: GPL-2.0-only
"""Progress on stderr: a live line on a terminal, few and plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

_QUIET = 2.0  # seconds before the first plain line
_EVERY = 10.0  # seconds between the plain lines of a bar
_WORTH = 1.0  # seconds from which a finished step leaves a line


def note(text: str) -> None:
    """Print one line on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show that `text` is under way, with the seconds elapsed; leave a line if it took over 1 s."""
    with _finished(text):
        console = Console(stderr=True)
        if console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            with Progress(*columns, console=console, transient=True) as live:
                live.add_task(_plain(text), total=None)
                yield
        else:
            with _reports(lambda: f"{text} ...", once=True):
                yield


@contextmanager
def bar(text: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show how far `text` has come; yields a function that adds to what is done, out of `total`."""
    with _finished(text):
        console = Console(stderr=True)
        if console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
            )
            with Progress(*columns, console=console, transient=True) as live:
                task = live.add_task(_plain(text), total=total)
                yield lambda amount: live.advance(task, amount)
        else:
            done = 0.0

            def advance(amount: float) -> None:
                nonlocal done
                done += amount

            with _reports(lambda: f"{text}  {100 * done / max(total, 1e-9):.0f}%", once=False):
                yield advance


@contextmanager
def _finished(text: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    elapsed = time.monotonic() - begin
    if elapsed > _WORTH:
        note(f"{text}  {elapsed:.1f} s")


@contextmanager
def _reports(line: Callable[[], str], *, once: bool) -> Iterator[None]:
    """Print `line()` after a while, and then every ten seconds unless `once`."""
    over = threading.Event()

    def report() -> None:
        pause = _QUIET
        while not over.wait(pause):
            note(line())
            if once:
                return
            pause = _EVERY

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _plain(text: str) -> str:
    """Keep rich from reading brackets in `text` as markup."""
    return text.replace("[", "\\[")
