# SPDX-License-Identifier: GPL-2.0-only
"""Checks in guests: reads them from the records, and judges them on both kernels together."""

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

    A record can have a text for the kernel of base, which cannot do the check and was not booted.
    """
    found = []
    for r in records:
        if "check" in r:
            found.append(
                Check(r["scenario"], tree, r["check"], r["outcome"], r["said"], r["must_pass"])
            )
            if "base" in r:
                base = replace(found[-1], tree=words.BASE, outcome="skip", said=r["base"])
                found.insert(-1, base)
    return found


def alike(found: dict[str, list[Check]]) -> list[Check]:
    """Return the checks of a kernel, in which one fails that did not end alike in each mode.

    Args:
        found: the checks by the value of deferred_init= with which the kernel was booted.
    """
    each: dict[tuple[str, str, str], dict[str, Check]] = {}
    for mode, checks in found.items():
        for check in checks:
            each.setdefault((check.scenario, check.tree, check.name), {})[mode] = check
    judged = []
    for ends in each.values():
        check = next(iter(ends.values()))
        outcomes = {mode: ends[mode].outcome if mode in ends else "missing" for mode in found}
        if len(set(outcomes.values())) > 1:
            said = ", ".join(f"{mode}: {outcome}" for mode, outcome in outcomes.items())
            check = replace(check, outcome="fail", said=said, must_pass=True)
        judged.append(check)
    return judged


def judge(checks: list[Check]) -> int:
    """Note how the checks ended on both kernels, in a few lines; return the exit status."""
    found = pairs(checks)
    # The reasons for which tests of others fail on both kernels, by scenario and name.
    listed = tomllib.loads((files.GUESTS / "outside/known-failures.toml").read_text())
    reasons = listed.get("reason", ())
    known = {(one["scenario"], name): one["why"] for one in reasons for name in one["checks"]}
    ran = {pair.scenario for pair in found}
    both_fail = {one.key for one in found if one.outcome == "fail" and not one.must_pass}
    unexplained = {key for key in both_fail - known.keys() if key[0] not in lab.SUITES}
    gone = {key for key in known.keys() - both_fail if key[0] in ran}
    for pair in found:
        where = ": ".join(pair.key)
        if pair.wrong or pair.outcome == "fail":
            said = [f"{one.tree}: {one.outcome} {one.said}".strip() for one in pair.found.values()]
            if pair.key in unexplained:
                said.append("known-failures.toml has no reason for it")
            elif pair.key in both_fail & known.keys():
                said.append(f"known: {known[pair.key]}")
            note(f"pagemint: {where}: {'; '.join(said)}")
        elif pair.alone:
            note(f"{where}: {pair.alone.said}; base, not booted: {pair.found['base'].said}")
        elif pair.must_pass:
            note(f"{where}: {pair.found['patched'].said}, on both kernels")
    for scenario, told in others_tests(found).items():
        note(f"{scenario}: tests of others: {told}, on both kernels alike")
    for key in sorted(gone):
        note(f"pagemint: {': '.join(key)} is in known-failures.toml, but did not fail")
    return int(any(pair.wrong for pair in found) or bool(unexplained or gone))
