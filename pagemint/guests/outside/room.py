# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the size of an emulated device, so that its guest fits in this machine's memory."""

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.sizes import format_size, parse_size
from pagemint.words import SECTION_BYTES

_GUEST_RAM = 1_500_000_000  # bytes that a guest touches beside memmaps
_MOVED = 1_000_000_000  # bytes: migrate moves a quarter of the device at a time, but no more
_MIN_DEVICE = 1 << 29  # bytes: xfs needs that much
_MAX_PRIVATE = 64_000_000_000  # bytes of device-private memory
_DEFAULT = {"kvm": 100_000_000_000, "tcg": 4_000_000_000}  # bytes of a device


def parse(text: str) -> int:
    """Return the bytes of a device from the text of `--size`.

    Raises:
        Failure: it is not a size, too small, or more than this machine can hold.
    """
    size = parse_size(text)
    if size < _MIN_DEVICE:
        raise Failure(f"a device of {text} is too small", "give at least 512MiB")
    needed, free = _needed(size), machine.free()
    if needed > free:
        raise Failure(
            f"a device of {format_size(size)} takes {format_size(needed)} of this machine's "
            f"memory, of which {format_size(free)} are {machine.unused()}",
            f"give --size {_fitting(size) // 2**20}MiB or less",
        )
    return size


def check() -> None:
    """Check that this machine can hold a guest with the smallest device.

    Raises:
        Failure: it cannot.
    """
    _fitting(_MIN_DEVICE)


def default(accel: str) -> int:
    """Return the bytes of a device without --size: the default, or less if it does not fit.

    Raises:
        Failure: this machine cannot hold any device.
    """
    return _fitting(_DEFAULT[accel])


def whole_sections(size: int) -> tuple[int, int]:
    """Return `size` in whole sections, and the bytes of device-private memory that go with it."""
    device = size // SECTION_BYTES * SECTION_BYTES
    return device, min(device, _MAX_PRIVATE // SECTION_BYTES * SECTION_BYTES)


def _needed(size: int) -> int:
    """Return the bytes of host memory that a guest with such a device touches."""
    # The folios are moved through three nodes, and touch memory on each.
    moved = 3 * min(size // 4, _MOVED)
    return _GUEST_RAM + moved + size // 64 + min(size, _MAX_PRIVATE) // 64


def _fitting(size: int) -> int:
    """Return `size`, halved until this machine can hold it.

    Raises:
        Failure: this machine cannot hold the smallest device.
    """
    free = machine.free() * 0.9
    while _needed(size) > free and size > _MIN_DEVICE:
        size = max(size // 2, _MIN_DEVICE)
    if _needed(size) > free:
        raise Failure(
            f"a guest takes {format_size(_needed(_MIN_DEVICE))} of memory, "
            f"and {format_size(int(free))} are {machine.unused()}",
            "end some programs, or use a larger machine",
        )
    return size
