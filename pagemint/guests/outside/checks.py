# SPDX-License-Identifier: GPL-2.0-only
"""Reads the checks of guests from records, and judges those of both kernels together."""

import tomllib
from dataclasses import replace

from pagemint import words
from pagemint.base import files
from pagemint.base.progress import note
from pagemint.guests.outside import lab
from pagemint.guests.outside.scenarios import Record
from pagemint.results.checks import others_tests, pairs
from pagemint.results.rows import Check


def checks_of(tree: str, records: list[Record]) -> list[Check]:
    """Return the checks in the records of a guest; `tree` is the tree of its kernel.

    Where base cannot do a check, the record has a text for base, which was not booted.
    """
    checks: list[Check] = []
    for r in records:
        if "check" in r:
            check = Check(r["scenario"], tree, r["check"], r["outcome"], r["said"], r["must_pass"])
            if "base" in r:
                checks.append(replace(check, tree=words.BASE, outcome="skip", said=r["base"]))
            checks.append(check)
    return checks


def alike(by_mode: dict[str, list[Check]]) -> list[Check]:
    """Return the checks of a kernel; one that did not end alike in each mode is a failure.

    Args:
        by_mode: the checks by the value of deferred_init= with which the kernel was booted.
    """
    groups: dict[tuple[str, str, str], dict[str, Check]] = {}
    for mode, checks in by_mode.items():
        for check in checks:
            groups.setdefault((check.scenario, check.tree, check.name), {})[mode] = check
    judged = []
    for group in groups.values():
        check = next(iter(group.values()))
        outcomes = {mode: group[mode].outcome if mode in group else "missing" for mode in by_mode}
        if len(set(outcomes.values())) > 1:
            text = ", ".join(f"{mode}: {outcome}" for mode, outcome in outcomes.items())
            check = replace(check, outcome="fail", said=text, must_pass=True)
        judged.append(check)
    return judged


def judge(checks: list[Check]) -> int:
    """Note how the checks ended on both kernels, in a few lines; return the exit status."""
    all_pairs = pairs(checks)
    # The reasons for which other people's tests fail on both kernels, by scenario and name.
    file = tomllib.loads((files.GUESTS / "outside/known-failures.toml").read_text())
    reasons = {
        (r["scenario"], name): r["why"] for r in file.get("reason", ()) for name in r["checks"]
    }
    ran = {pair.scenario for pair in all_pairs}
    both_fail = {pair.key for pair in all_pairs if pair.outcome == "fail" and not pair.must_pass}
    unexplained = {key for key in both_fail - reasons.keys() if key[0] not in lab.SUITES}
    gone = {key for key in reasons.keys() - both_fail if key[0] in ran}
    for pair in all_pairs:
        title = ": ".join(pair.key)
        if pair.wrong or pair.outcome == "fail":
            parts = [f"{c.tree}: {c.outcome} {c.said}".strip() for c in pair.by_tree.values()]
            if pair.key in unexplained:
                parts.append("known-failures.toml has no reason for it")
            elif pair.key in both_fail & reasons.keys():
                parts.append(f"known: {reasons[pair.key]}")
            note(f"pagemint: {title}: {'; '.join(parts)}")
        elif pair.alone:
            note(f"{title}: {pair.alone.said}; base, not booted: {pair.by_tree['base'].said}")
        elif pair.must_pass:
            note(f"{title}: {pair.by_tree['patched'].said}, on both kernels")
    for scenario, outcomes in others_tests(all_pairs).items():
        note(f"{scenario}: tests of others: {outcomes}, on both kernels alike")
    for key in sorted(gone):
        note(f"pagemint: {': '.join(key)} is in known-failures.toml, but did not fail")
    return int(any(pair.wrong for pair in all_pairs) or bool(unexplained or gone))
