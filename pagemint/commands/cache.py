# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint cache`: shows the entries of the cache, and removes those that are no longer used."""

import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from pagemint.base import cache
from pagemint.base.cache import Entry
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.request import option
from pagemint.base.sizes import format_size, parse_size

_DAY = 86_400.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint cache`."""

    prune: bool = option(
        False, "remove entries that no process uses, the least recently used first"
    )
    age: float | None = option(None, "with --prune: remove what was not used for DAYS", "DAYS")
    size: str | None = option(None, "with --prune: remove until no more than SIZE is left", "SIZE")


def main(request: Request) -> int:
    """Run `pagemint cache`."""
    age = request.age
    if request.prune and age is None and request.size is None:
        raise Failure("--prune needs a bound", "give --age DAYS, --size SIZE or both")
    if not request.prune and (age is not None or request.size is not None):
        raise Failure("--age and --size are bounds of --prune", "give --prune too")
    if age is not None and not age >= 0:
        raise Failure(f"--age {age:g} is not a number of days", "give 0 or more")
    limit = parse_size(request.size) if request.size else None
    with step("measuring the cache"):
        entries = cache.entries()
    if request.prune:
        _prune(entries, age, limit)
    else:
        Console().print(_table(entries))
    return 0


def _prune(entries: list[Entry], age: float | None, limit: int | None) -> None:
    """Remove entries, which are sorted by their last use, from the first one on."""
    before, kept = _size(entries), list(entries)
    with step("removing entries"):
        for entry in entries:
            old = age is not None and time.time() - entry.used > age * _DAY
            if not old and (limit is None or _size(kept) <= limit):
                break
            if cache.remove(entry):
                kept.remove(entry)
            else:
                note(f"{entry.kind}/{entry.path.name} is in use and stays")
    after = _size(kept)
    note(
        f"removed {len(entries) - len(kept)} of {len(entries)} entries, "
        f"{format_size(before - after)}; {format_size(after)} are left"
    )
    if limit is not None and after > limit:
        note(f"that is more than {format_size(limit)}: other processes use the rest")


def _size(entries: list[Entry]) -> int:
    return sum(entry.size for entry in entries)


def _table(entries: list[Entry]) -> Table:
    table = Table(
        "kind",
        title=f"The cache in {cache.root()}",
        caption="how long ago; a file that entries share counts once",
    )
    for name in ("entries", "size", "newest use", "oldest use"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in sorted({entry.kind for entry in entries}):
        table.add_row(kind, *_cells([entry for entry in entries if entry.kind == kind]))
    table.add_section()
    table.add_row("all", *_cells(entries))
    return table


def _cells(entries: list[Entry]) -> list[str]:
    """Return the number of entries, their size, and how long ago the last and first use was."""
    ages = sorted(max(time.time() - entry.used, 0) for entry in entries)
    shown = [_age(ages[0]), _age(ages[-1])] if ages else ["", ""]
    return [str(len(entries)), format_size(_size(entries)), *shown]


def _age(seconds: float) -> str:
    """Return whole days, hours or minutes."""
    for unit, length in (("days", _DAY), ("hours", 3600.0)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds // 60:.0f} minutes"
