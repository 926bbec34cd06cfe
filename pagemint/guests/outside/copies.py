# SPDX-License-Identifier: GPL-2.0-only
"""Copies of folios in guests: by move_pages(2), and by the kernel's functions alone."""

from pagemint.guests.outside.scenarios import Record
from pagemint.results.rows import Case, Row
from pagemint.words import PAGE

FOLIO = 2 << 20
"""Bytes of each folio."""


def rows_of(records: dict[str, list[Record]]) -> list[Row]:
    """Return the rows of guests with the kernels base and patched.

    The function of a row is "" for a whole move_pages(2). A move that failed has no time, so a
    tree in which all moves failed has no row.
    """
    times: dict[tuple[Case, str], list[float]] = {}
    for kernel in ("base", "patched"):
        for record in records.get(kernel, []):
            if "workload" in record:
                case = Case(
                    record["workload"],
                    device_bytes=record["bytes"],
                    pages=record["bytes"] // PAGE,
                    function=record["function"],
                    folio_bytes=FOLIO,
                )
                times.setdefault((case, kernel), []).append(record["ns"] / 1e6)
    cases = list(dict.fromkeys(case for case, _ in times))
    return [
        Row(case, kernel, "", times[case, kernel])
        for case in cases
        for kernel in ("base", "patched")
        if (case, kernel) in times
    ]
