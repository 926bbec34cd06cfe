# SPDX-License-Identifier: GPL-2.0-only
"""Boots guests for several test files, and checks their records."""

import os
import re
from collections.abc import Iterable

import pytest
from kernel_lines import LINES

from pagemint.guests.outside import binds, checks
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.scenarios import Record
from pagemint.trees import image, patches, stock, trees
from pagemint.trees.image import Kernel

DEVICE = 1 << 28
"""Bytes of the emulated device."""

X86_SUITES = {"memmap_shared"}
"""The KUnit suites of the series that are for x86-64 only."""

LONG = pytest.mark.skipif(
    not os.environ.get("PAGEMINT_VM"), reason="minutes in a guest: run make check-vm"
)

Guests = dict[str, tuple[list[Record], str]]
"""The records and the console of a guest with each kernel, by the kernel's name."""


def from_stock_kernel(
    line: str, scenarios: list[str], rebinds: int, *, device: int = DEVICE, fault: bool = False
) -> list[Record]:
    """Boot a stock kernel in an emulated guest, and return its records."""
    # Debian's kernels zero what they allocate. That would hide bytes that the module leaves out.
    guest = Guest("tcg", device, 3600, append="init_on_alloc=0")
    kernel = stock.kernel(line, fault=fault)
    return guest.run(kernel, ",".join(scenarios), rebinds, DEVICE)[0]


def guest_kernel(name: str, *fragments: str) -> Kernel:
    """Return a kernel of the newest line, base or patched, with fragments of configuration."""
    pair = trees.pair(patches.source_for(LINES[-1], None))
    return next(image.kernel(tree, fragments) for tree in pair if tree.name == name)


def missing_suites(suites: Iterable[str], console: str) -> list[str]:
    """Return the KUnit suites that did not run, did not pass or skipped all of their tests."""
    return [name for name in suites if not re.search(rf"^ok \d+ {name}\r?$", console, re.MULTILINE)]


def passed(records: list[Record]) -> dict[str, str]:
    """Return what the checks among records found, by their names; all must have passed."""
    outcomes = checks.checks_of("any", records)
    assert [check for check in outcomes if check.outcome != "pass"] == []
    return {check.name: check.said for check in outcomes}


def check_memmaps(scenario: str, guests: Guests, modes: Iterable[str]) -> None:
    """Check that base, if it ran, and each mode of patched left the same, large memmap."""
    records = {tree: own for tree, (own, _) in guests.items()}
    rows = binds.rows_of(scenario, records, DEVICE)
    base = [("base", "")] if "base" in guests else []
    expected = [*base, *(("patched", mode) for mode in modes)]
    assert [(row.tree, row.mode) for row in rows] == expected
    assert all(row.hash and row.case.pages > 10_000 for row in rows)
    assert binds.same_hashes(rows) == 0
