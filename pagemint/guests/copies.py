# SPDX-License-Identifier: GPL-2.0-only
"""Copies of folios in guests: by move_pages(2), and by the kernel's functions alone."""

import statistics
from dataclasses import dataclass

from rich.table import Table

from pagemint.base.memmap import PAGE
from pagemint.guests.guest import Record
from pagemint.results.rows import Row

FOLIO = 2 << 20
"""Bytes of each folio."""


@dataclass(frozen=True)
class CopyRow(Row):
    """Copies in the guest with one kernel; the speed-up is that of the medians.

    Attributes:
        function: the kernel function that was timed; "" for a whole move_pages(2).
        folio_bytes: the size of each folio.
    """

    function: str
    folio_bytes: int


def rows(records: dict[str, list[Record]]) -> list[CopyRow]:
    """Return the rows of what guests with the kernels base and patched recorded."""
    found: list[CopyRow] = []
    said = [
        (record["workload"], record["function"], kernel, record)
        for kernel in ("base", "patched")
        for record in records[kernel]
        if "workload" in record
    ]
    for what in dict.fromkeys((workload, function) for workload, function, _, _ in said):
        medians: list[float] = []
        for kernel in ("base", "patched"):
            mine = [record for *which, record in said if which == [*what, kernel]]
            # A move that failed has no time.
            if not mine:
                continue
            times = [record["ns"] / 1e6 for record in mine]
            medians.append(statistics.median(times))
            pages = mine[0]["bytes"] // PAGE
            found.append(
                CopyRow(
                    workload=what[0],
                    variant=kernel,
                    threads=1,
                    device_bytes=mine[0]["bytes"],
                    pages=pages,
                    runs_ms=times,
                    median_ms=medians[-1],
                    ns_per_page=medians[-1] * 1e6 / pages,
                    speedup=medians[0] / medians[-1],
                    limit_ratio=None,
                    function=what[1],
                    folio_bytes=FOLIO,
                )
            )
    return found


def table(rows: list[CopyRow], accel: str) -> Table:
    """Return a table of rows for a terminal."""
    comparable = accel == "kvm"
    shown = Table(
        title=f"Copies of 2 MiB folios in a guest ({accel})",
        caption=None if comparable else "emulated: the times cannot be compared",
    )
    for name in ("what", "variant"):
        shown.add_column(name, no_wrap=True)
    for name in ("MB", "ms", "spread", "GB/s", *(["gain"] if comparable else [])):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        shown.add_row(
            row.function or row.workload,
            row.variant,
            f"{row.device_bytes / 1e6:.0f}",
            f"{row.median_ms:.1f}",
            f"{min(row.runs_ms):.1f}-{max(row.runs_ms):.1f}",
            f"{row.device_bytes / row.median_ms / 1e6:.2f}",
            *([f"{row.speedup:.2f}x"] if comparable else []),
            end_section=row.variant == "patched",
        )
    return shown
