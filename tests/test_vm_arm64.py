# SPDX-License-Identifier: GPL-2.0-only
"""arm64 under emulation: the KUnit suites, and the same memory maps. Part of `make check-vm`."""

import os
import re
from dataclasses import replace

import pytest
from kernel_lines import WHOLE
from test_vm import DEVICE, SUITES, check_memory_maps

from pagemint.commands import vm
from pagemint.guests.guest import Guest, Record
from pagemint.kernels import image, steps, trees

pytestmark = pytest.mark.skipif(
    not os.environ.get("PAGEMINT_VM"), reason="two more kernels to build: run make check-vm"
)

SCENARIOS = [name for names in vm.BIND_SCENARIOS.values() for name in names]


@pytest.fixture(scope="module", params=WHOLE)
def guests(request: pytest.FixtureRequest) -> dict[str, tuple[list[Record], str]]:
    """What guests with the two kernels recorded, and their consoles."""
    lab = vm.LABS["arm64"]
    base, patched = (
        replace(tree, arch=lab.arch) for tree in trees.pair(steps.source_for(request.param, None))
    )
    kernels = (
        image.kernel(base, lab.fragments),
        image.kernel(patched, (*lab.fragments, "kunit")),
    )
    guest = Guest("tcg", DEVICE, 900, None)
    return {kernel.variant: guest.run(kernel, ",".join(SCENARIOS), 2, DEVICE) for kernel in kernels}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_kernels_bring_up_the_same_memory_map(
    scenario: str, guests: dict[str, tuple[list[Record], str]]
) -> None:
    check_memory_maps(scenario, guests)


@pytest.mark.parametrize("suite", SUITES)
def test_the_kunit_suites_pass(suite: str, guests: dict[str, tuple[list[Record], str]]) -> None:
    assert re.search(rf"^ok \d+ {suite}\r?$", guests["patched"][1], re.MULTILINE)
