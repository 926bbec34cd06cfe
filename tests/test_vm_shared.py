# SPDX-License-Identifier: GPL-2.0-only
"""Device-private memory far larger than a guest, with a memmap that its sections share."""

import pytest
from guest_records import LONG, check_leaks

from pagemint.guests.guest import Guest
from pagemint.guests.lab import FRAGMENTS
from pagemint.kernels import image, steps, trees
from pagemint.kernels.image import Kernel

pytestmark = LONG

TIB = 1 << 40
BLOCK = 2 << 20  # bytes of the memmap that all sections share


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    _, patched = trees.pair(steps.source_for("7.3", None))
    return image.kernel(patched, FRAGMENTS)


@pytest.mark.parametrize(("size", "binds"), [(TIB, 100), (16 * TIB, 2)])
def test_a_bind_takes_one_block_and_leaks_nothing(kernel: Kernel, size: int, binds: int) -> None:
    # The guest has 6 GB. The memmap of 1 TiB would take 16.
    guest = Guest("tcg", 1 << 28, 3600, options="-cpu qemu64,phys-bits=46")
    before, after = guest.run(kernel, "shared-leaks", binds, size)[0]
    assert before["memmap_bytes"] == after["memmap_bytes"] == BLOCK
    check_leaks(before, after)
