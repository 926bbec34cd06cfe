# SPDX-License-Identifier: GPL-2.0-only
"""Makes rows of binds, copies and boots from records of inside/scenarios.py; compares memmaps."""

import re
import statistics

from pagemint.base.progress import note
from pagemint.guests.outside.scenarios import Record
from pagemint.results.cases import BOOT
from pagemint.results.rows import Case, Row
from pagemint.words import BASE, DEFERRED_INIT, MODES, PAGE, SHARED, STOCK_MODES

FOLIO = 2 << 20
"""Bytes of each folio that is copied."""

_PMD = 512  # pages
_EAGER = "streaming"  # the default of memmap_init=, with which the other modes are compared
_HASHES = 4  # a row names at most so many different hashes


def rows_of(scenario: str, by_kernel: dict[str, list[Record]], device: int) -> list[Row]:
    """Return the rows of a scenario; their runs are the rebinds.

    Args:
        scenario: the name of the scenario.
        by_kernel: the records of inside/scenarios.py, by the kernel: base, patched or stock.
        device: bytes of the device.
    """
    rows = []
    for kernel, records in by_kernel.items():
        for mode in ("base", *MODES, SHARED, *STOCK_MODES):
            mine = [r for r in records if r["scenario"] == scenario and r.get("mode") == mode]
            first = [record for record in mine if "first" in record]
            again = [record for record in mine if "first" not in record]
            if again:
                case = Case(scenario, device, again[0]["pages"])
                rows.append(_row(case, kernel, mode, first, again))
    return rows


def _row(case: Case, kernel: str, mode: str, first: list[Record], again: list[Record]) -> Row:
    """Return the row of a kernel in a mode; `first` has the first bind, if it was in that mode."""
    # The runs with the module are compared with those of the stock kernel without it.
    tree = "base" if (kernel, mode) == ("stock", "base") else kernel
    hashes = sorted({record["hash"] for record in again if "hash" in record})
    return Row(
        case,
        tree,
        "" if mode == "base" else mode,
        runs_ms=[record["init_ns"] / 1e6 for record in again],
        bind_ms=[record["bind_ns"] / 1e6 for record in again],
        use_ms=[record["use_ns"] / 1e6 for record in again if "use_ns" in record],
        unbind_ms=[record["unbind_ns"] / 1e6 for record in again],
        first_ms=_median_ms(first, "init_ns"),
        first_bind_ms=_median_ms(first, "bind_ns"),
        memmap_bytes=max(
            (record["memmap_bytes"] for record in again if "memmap_bytes" in record), default=None
        ),
        hash=" ".join(hashes[:_HASHES]),
    )


def _median_ms(records: list[Record], name: str) -> float | None:
    """Return the median of a time over the records; None if there are none."""
    return statistics.median(record[name] for record in records) / 1e6 if records else None


def copy_rows(by_kernel: dict[str, list[Record]]) -> list[Row]:
    """Return the rows of copies of folios, by move_pages(2) and by the kernel's functions alone.

    The function of a row is "" for a whole move_pages(2). A move that failed has no time, so a
    tree in which all moves failed has no row.
    """
    times: dict[tuple[Case, str], list[float]] = {}
    for kernel in ("base", "patched"):
        for record in by_kernel.get(kernel, []):
            if "workload" in record:
                case = Case(
                    record["workload"],
                    device_bytes=record["bytes"],
                    pages=record["bytes"] // PAGE,
                    function=record["function"],
                    folio_bytes=FOLIO,
                )
                times.setdefault((case, kernel), []).append(record["ns"] / 1e6)
    order = list(dict.fromkeys(case for case, _ in times))
    rows = [Row(case, kernel, "", ms) for (case, kernel), ms in times.items()]
    return sorted(rows, key=lambda row: order.index(row.case))


def boot_rows(turns: list[dict[str, dict[str, Record]]], memory: int) -> list[Row]:
    """Return the rows of boots, until the kernel starts init: one case for each deferred_init=.

    Args:
        turns: the records of each turn, by kernel and mode.
        memory: bytes of the guest's memory above 4 GiB.
    """
    rows = []
    for name in DEFERRED_INIT:
        case = Case(BOOT, memory, memory // PAGE, operation=name)
        patched = _EAGER if name == DEFERRED_INIT[0] else name
        modes = {tree: BASE if tree == BASE else patched for tree in turns[0]}
        # A line without the topic background has no such modes.
        if all(mode in turns[0][tree] for tree, mode in modes.items()):
            rows += [
                Row(case, tree, "", [turn[tree][mode]["init_ms"] for turn in turns])
                for tree, mode in modes.items()
            ]
    return rows


def same_hashes(rows: list[Row]) -> int:
    """Note whether all trees and modes of a scenario left the same memmap; return exit status."""
    if not rows:
        return 0
    status = 0
    for name in dict.fromkeys(row.case.workload for row in rows):
        hashes = {row.hash for row in rows if row.case.workload == name}
        if not (len(hashes) == 1 and re.fullmatch("[0-9a-f]+", hashes.pop())):
            note(f"pagemint: {name}: the memmaps differ; see the hashes in the result")
            status = 1
    if not status:
        note("every tree and mode left the same memmap")
    return status


def judge_counts(records: list[Record]) -> int:
    """Note the records in which the module filled other pages than it should; return exit status.

    The module for stock kernels fills all but the first two pages, or the first two compounds and
    the last. It leaves out memmaps with less, and compounds above 2 MiB that are deduplicated.
    """
    status = 0
    for record in records:
        if "pages_filled" not in record:
            continue
        scenario, mode, filled = record["scenario"], record["mode"], record["pages_filled"]
        expected = {0}
        if mode == "module":
            left = 3 * record["compound"] if record["compound"] > 1 else 2
            expected = {max(0, record["pages"] - left)}
            if record["compound"] > _PMD:
                expected.add(0)
        wrong = filled not in expected
        if wrong or record["mismatches"] or record["calls"] != 1:
            note(
                f"pagemint: {scenario} ({mode}): {filled} of {record['pages']} pages filled, "
                f"{record['mismatches']} mismatches, {record['calls']} calls"
            )
            status = 1
    return status
