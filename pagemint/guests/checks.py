# SPDX-License-Identifier: GPL-2.0-only
"""Checks in guests: reads them from the records, and judges them on both kernels together."""

from collections import Counter

from pagemint.base.progress import note
from pagemint.guests.scenarios import Record
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
    status = 0
    counts: dict[str, Counter[str]] = {}
    by_name: dict[tuple[str, str], dict[str, Check]] = {}
    for check in checks:
        by_name.setdefault((check.scenario, check.name), {})[check.tree] = check
    for (scenario, name), found in by_name.items():
        must_pass = any(check.must_pass for check in found.values())
        outcomes = {check.outcome for check in found.values()}
        alike = len(found) == 2 and len(outcomes) == 1
        wrong = not alike or (must_pass and outcomes != {"pass"})
        if wrong:
            status = 1
        if wrong or "fail" in outcomes:
            said = (f"{one.tree}: {one.outcome} {one.said}".strip() for one in found.values())
            note(f"pagemint: {scenario}: {name}: {'; '.join(said)}")
        elif must_pass:
            note(f"{scenario}: {name}: {found['patched'].said}, on both kernels")
        if alike and not must_pass:
            counts.setdefault(scenario, Counter()).update(outcomes)
    for scenario, count in counts.items():
        told = ", ".join(f"{number} {outcome}" for outcome, number in count.most_common())
        note(f"{scenario}: the kernel's own tests: {told}, on both kernels alike")
    return status
