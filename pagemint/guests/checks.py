# SPDX-License-Identifier: GPL-2.0-only
"""Checks in guests: reads them from the records, and judges them on both kernels together."""

from pagemint.base.progress import note
from pagemint.guests.scenarios import Record
from pagemint.results.checks import others_tests, pairs
from pagemint.results.rows import Check


def checks_of(tree: str, records: list[Record]) -> list[Check]:
    """Return the checks in the records of a guest; `tree` is the tree of its kernel."""
    return [
        Check(r["scenario"], tree, r["check"], r["outcome"], r["said"], r["must_pass"])
        for r in records
        if "check" in r
    ]


def judge(checks: list[Check]) -> int:
    """Note how the checks ended on both kernels, in a few lines; return the exit status."""
    found = pairs(checks)
    for pair in found:
        where = f"{pair.scenario}: {pair.name}"
        if pair.wrong or pair.outcome == "fail":
            said = (f"{one.tree}: {one.outcome} {one.said}".strip() for one in pair.found.values())
            note(f"pagemint: {where}: {'; '.join(said)}")
        elif pair.must_pass:
            note(f"{where}: {pair.found['patched'].said}, on both kernels")
    for scenario, told in others_tests(found).items():
        note(f"{scenario}: tests of others: {told}, on both kernels alike")
    return int(any(pair.wrong for pair in found))
