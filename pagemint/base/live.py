# SPDX-License-Identifier: GPL-2.0-only
"""The live line of a long stage on a terminal."""

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


class _Doing(ProgressColumn):
    """The part of a stage that is under way."""

    max_refresh = 1.0

    def __init__(self, ask: Callable[[], str]) -> None:
        super().__init__(Column(no_wrap=True, max_width=40))
        self._ask = ask

    def render(self, task: Task) -> Text:
        """Return what is under way."""
        return Text(self._ask())


@contextmanager
def line(
    text: str, total: float | None, ask: Callable[[], str]
) -> Iterator[Callable[[float], None]]:
    """Show a stage on stderr until the block ends.

    Args:
        text: the stage.
        total: its work, shown as a bar; None stands for an unknown amount.
        ask: returns what is under way; asked each second without a bar.

    Yields:
        a function that adds to the work done.
    """
    columns: tuple[ProgressColumn, ...] = (SpinnerColumn(), TextColumn("{task.description}"))
    if total is None:
        columns += (_Doing(ask), TimeElapsedColumn())
    else:
        columns = (columns[1], BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        # Rich would read brackets as markup.
        task = shown.add_task(text.replace("[", "\\["), total=total)
        yield lambda amount: shown.advance(task, amount)
