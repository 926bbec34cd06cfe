# SPDX-License-Identifier: GPL-2.0-only
"""Memmaps that sections share: their size, the flushes, and their pages in bios."""

import pytest
from guest_records import LONG, guest_kernel, passed

from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import FRAGMENTS
from pagemint.trees.image import Kernel
from pagemint.words import SHARED

pytestmark = LONG

DEVICE = 1 << 29  # bytes


@pytest.fixture(scope="module")
def patched() -> Kernel:
    return guest_kernel("patched", *FRAGMENTS)


@pytest.mark.parametrize("cpus", [2, 8])
def test_each_section_costs_one_flush_on_every_cpu(patched: Kernel, cpus: int) -> None:
    guest = Guest("tcg", DEVICE, 3600, cpus=cpus)
    records, _ = guest.run(patched, "shared-flushes", 2, 1 << 27)
    (finding,) = passed(records).values()
    sections, flushes = (int(word) for word in finding.split()[::2])
    assert flushes == cpus * sections


def test_devdax_of_any_alignment_has_the_memmap_that_it_would_not_share(patched: Kernel) -> None:
    # Compounds of 1 GiB span sections. The first section on the device holds its memmap.
    blocks = {"devdax-4k": 2, "devdax-4k-mem": 1, "devdax-1g": None, "devdax-1g-mem": None}
    guest = Guest("tcg", 3 << 30, 3600)
    records, _ = guest.run(patched, ",".join(blocks), 2, DEVICE)
    for scenario, taken in blocks.items():
        rows = [row for row in records if row["scenario"] == scenario and "hash" in row]
        assert {row["mode"] for row in rows} == {SHARED, *patched.modes}
        assert len({row["hash"] for row in rows}) == 1, scenario
        sizes = {row["mode"]: row["memmap_bytes"] for row in rows}
        assert sizes[SHARED] == (taken * (2 << 20) if taken else sizes["slow"]), scenario


def test_the_pages_of_a_cache_can_be_put_into_bios(patched: Kernel) -> None:
    records, _ = Guest("tcg", DEVICE, 3600).run(patched, "shared-writecache", 2, 1 << 27)
    assert list(passed(records)) == ["dm-writecache"]
