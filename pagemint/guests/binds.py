# SPDX-License-Identifier: GPL-2.0-only
"""What guest/scenarios.py says of binds: rows of a result, tables, and whether all is as it was."""

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from pagemint.base.memmap import MODES
from pagemint.base.progress import note
from pagemint.guests.guest import Record
from pagemint.results.rows import Row

STOCK_MODES = ("module-off", "module")
"""What guest/scenarios.py calls the module for stock kernels, switched off and on."""


@dataclass(frozen=True)
class BindRow(Row):
    """A row of binds: runs_ms are the rebinds, the speed-up is that of the medians.

    Attributes:
        mean_ms: the mean of runs_ms.
        first_ms: the memory map of the first bind, on memory that nobody has touched; None if
            that bind was in another mode.
        bind_ms: the whole bind, each time.
        first_bind_ms: the whole first bind.
        hash: over the struct pages that were left.
    """

    mean_ms: float
    first_ms: float | None
    bind_ms: list[float]
    first_bind_ms: float | None
    hash: str


def rows_of(name: str, records: dict[str, list[Record]], device: int) -> list[BindRow]:
    """Return the rows of a scenario.

    Args:
        name: of the scenario.
        records: of guest/scenarios.py, by the variant of the kernel.
        device: bytes of it.
    """
    rows: list[BindRow] = []
    for kernel in records:
        mine = [r for r in records[kernel] if r["scenario"] == name and "mode" in r]
        for mode in ("base", *MODES, *STOCK_MODES):
            again = [r for r in mine if r["mode"] == mode and "first" not in r]
            if not again:
                continue
            first = [r for r in mine if r["mode"] == mode and "first" in r]
            init = [record["init_ns"] / 1e6 for record in again]
            hashes = {record["hash"] for record in again if "hash" in record}
            median = statistics.median(init)
            rows.append(
                BindRow(
                    workload=name,
                    variant=mode,
                    threads=1,
                    device_bytes=device,
                    pages=again[0]["pages"],
                    runs_ms=init,
                    median_ms=median,
                    ns_per_page=median * 1e6 / again[0]["pages"],
                    speedup=rows[0].median_ms / median if rows else 1.0,
                    limit_ratio=None,
                    mean_ms=statistics.mean(init),
                    first_ms=first[0]["init_ns"] / 1e6 if first else None,
                    bind_ms=[record["bind_ns"] / 1e6 for record in again],
                    first_bind_ms=first[0]["bind_ns"] / 1e6 if first else None,
                    hash=" ".join(sorted(hashes)),
                )
            )
    return rows


def judge_counts(records: list[Record]) -> int:
    """Say whether the module for stock kernels filled what it should alone; the exit status.

    Of pages of order 0 all but two of each pageblock and what is left over at both ends.
    """
    status = 0
    for record in records:
        if "pages_filled" not in record:
            continue
        scenario, mode, filled = record["scenario"], record["mode"], record["pages_filled"]
        fills = mode == "module" and not scenario.startswith("devdax")
        few = filled < record["pages"] * 9 // 10 if fills else filled != 0
        if few or record["mismatches"] or record["calls"] != 1:
            note(
                f"pagemint: {scenario} ({mode}): {filled} of {record['pages']} pages filled, "
                f"{record['mismatches']} mismatches, {record['calls']} calls"
            )
            status = 1
    return status


def same_hashes(rows: list[BindRow]) -> int:
    """Say whether every variant of a scenario left the same memory map; the exit status."""
    if not rows:
        return 0
    status = 0
    for name in dict.fromkeys(row.workload for row in rows):
        hashes = {row.hash for row in rows if row.workload == name}
        same = len(hashes) == 1 and re.fullmatch("[0-9a-f]+", next(iter(hashes)))
        if not same:
            note(f"pagemint: {name}: the memory maps differ; see the hashes in the result")
            status = 1
    if not status:
        note("every variant left the same memory map")
    return status


def print_tables(rows: list[BindRow], where: str, emulated: bool, console: Console) -> None:
    """Print the binds, and the memory maps in them; `where` they were made ends the titles."""
    _print_table(f"Binds {where}", rows, emulated, _binds, console)
    _print_table(f"Memory maps {where}", rows, emulated, _memory_maps, console)


def _binds(row: BindRow) -> tuple[float | None, list[float]]:
    return row.first_bind_ms, row.bind_ms


def _memory_maps(row: BindRow) -> tuple[float | None, list[float]]:
    return row.first_ms, row.runs_ms


def _print_table(
    what: str,
    rows: list[BindRow],
    emulated: bool,
    times: Callable[[BindRow], tuple[float | None, list[float]]],
    console: Console,
) -> None:
    table = Table(
        title=f"{what}, ms: the first and the rest",
        caption="emulated: the times cannot be compared" if emulated else None,
    )
    for name in ("scenario", "variant"):
        table.add_column(name, no_wrap=True)
    for name in ("first", "mean", "median", "spread", *([] if emulated else ["gain"])):
        table.add_column(name, justify="right", no_wrap=True)
    bases: dict[str, float] = {}
    for number, row in enumerate(rows):
        first, again = times(row)
        median = statistics.median(again)
        base = bases.setdefault(row.workload, median)
        table.add_row(
            row.workload,
            row.variant,
            "" if first is None else _digits(first),
            _digits(statistics.mean(again)),
            _digits(median),
            f"{_digits(min(again))}-{_digits(max(again))}",
            *([] if emulated else [f"{base / median:.2f}x"]),
            end_section=number + 1 == len(rows) or rows[number + 1].workload != row.workload,
        )
    console.print(table)


def _digits(milliseconds: float) -> str:
    """Return three digits of it or more."""
    return f"{milliseconds:.{2 if milliseconds < 10 else 1 if milliseconds < 100 else 0}f}"
