# SPDX-License-Identifier: GPL-2.0-only
"""arm64 under emulation: the KUnit suites, and the same memmaps. Part of `make check-vm`."""

from dataclasses import replace

import pytest
from guest_records import DEVICE, LONG, X86_SUITES, Guests, check_memmaps, missing_suites
from kernel_lines import LINES

from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import BIND_SCENARIOS, LABS
from pagemint.trees import image, patches, trees
from pagemint.words import MODES

pytestmark = LONG

PARTS = [part for scenario in BIND_SCENARIOS.values() for part in scenario.parts]


@pytest.fixture(scope="module", params=LINES)
def line(request: pytest.FixtureRequest) -> str:
    """The kernel line of the guests."""
    return str(request.param)


@pytest.fixture(scope="module")
def guests(line: str) -> Guests:
    """The records of guests with the two kernels, and their consoles."""
    lab = LABS["arm64"]
    base, patched = (
        replace(tree, arch=lab.arch) for tree in trees.pair(patches.source_for(line, None))
    )
    kernels = (image.kernel(base, lab.fragments), image.kernel(patched, (*lab.fragments, "kunit")))
    guest = Guest("tcg", DEVICE, 900)
    return {kernel.variant: guest.run(kernel, ",".join(PARTS), 2, DEVICE) for kernel in kernels}


@pytest.mark.parametrize("part", PARTS)
def test_both_kernels_leave_the_same_memmap(part: str, line: str, guests: Guests) -> None:
    check_memmaps(part, guests, MODES)


def test_the_kunit_suites_pass(line: str, guests: Guests) -> None:
    assert missing_suites(patches.suites(line) - X86_SUITES, guests["patched"][1]) == []
