# SPDX-License-Identifier: GPL-2.0-only
"""Boots a kernel with deferred struct page init in every mode, and compares the memory."""

from dataclasses import replace

from pagemint.base.progress import step
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.scenarios import Record
from pagemint.results.rows import Check
from pagemint.trees.image import Kernel

SCENARIO = "boot"
"""The name of this scenario in inside/scenarios.py."""


def check(guest: Guest, kernel: Kernel) -> Check:
    """Boot a kernel once in each of its modes, and compare the memory that each boot left.

    Raises:
        Failure: a guest fails.
    """
    found = {}
    for mode in kernel.modes or ("base",):
        append = "" if mode == "base" else f"memmap_init={mode}"
        with step(f"boot: booting the {kernel.variant} kernel ({mode}, {guest.accel})"):
            booted = replace(guest, append=append)
            (found[mode],), _ = booted.run(kernel, SCENARIO, 2, guest.device)
    return judge(kernel.variant, found)


def judge(tree: str, found: dict[str, Record]) -> Check:
    """Return the check of a tree, from the record of each mode that was booted."""
    problem = _problem(found)
    if problem:
        return Check(SCENARIO, tree, "memory", "fail", problem, must_pass=True)
    first = next(iter(found.values()))
    memory, nodes = first["mem_total_kib"], first["deferred_nodes"]
    alike = f"{memory} KiB, {nodes} nodes with deferred init, {', '.join(found)} alike"
    return Check(SCENARIO, tree, "memory", "pass", alike, must_pass=True)


def _problem(found: dict[str, Record]) -> str:
    """Return how the boots differ, or "" if they do not."""
    first = next(iter(found))
    for mode, record in found.items():
        if not record["deferred_nodes"]:
            return f"{mode}: no memory was deferred"
        for fact in ("mem_total_kib", "zones"):
            if record[fact] != found[first][fact]:
                return f"{fact}: {record[fact]} ({mode}), not {found[first][fact]} ({first})"
    return ""
