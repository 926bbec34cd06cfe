# SPDX-License-Identifier: GPL-2.0-only
"""The size of an emulated device, and the memory that its guest takes of this machine."""

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.sizes import format_size, parse_size
from pagemint.words import SECTION_BYTES

_GUEST_RAM = 1_500_000_000  # bytes that a guest touches beside memmaps
_MOVED = 1_000_000_000  # bytes: migrate moves a quarter of the device at a time, but no more
_SMALLEST = 1 << 29  # bytes of a device: xfs needs that much
_PRIVATE_MOST = 64_000_000_000  # bytes of device-private memory
_KVM, _TCG = 100_000_000_000, 4_000_000_000  # bytes of a device, without --size


def parse(text: str) -> int:
    """Return the bytes of a device that `--size` asks for.

    Raises:
        Failure: it is not a size, too small, or more than this machine can hold.
    """
    size = parse_size(text)
    if size < _SMALLEST:
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
    _fitting(_SMALLEST)


def default(accel: str) -> int:
    """Return the bytes of a device without --size; less if this machine cannot hold as much.

    Raises:
        Failure: this machine cannot hold any.
    """
    return _fitting(_KVM if accel == "kvm" else _TCG)


def whole_sections(size: int) -> tuple[int, int]:
    """Return `size` in whole sections, and the bytes of device-private memory that go with it."""
    device = size // SECTION_BYTES * SECTION_BYTES
    return device, min(device, _PRIVATE_MOST // SECTION_BYTES * SECTION_BYTES)


def _needed(size: int) -> int:
    """Return the bytes of host memory that a guest with such a device touches."""
    # The folios are moved through three nodes, and touch memory on each.
    moved = 3 * min(size // 4, _MOVED)
    return _GUEST_RAM + moved + size // 64 + min(size, _PRIVATE_MOST) // 64


def _fitting(wanted: int) -> int:
    """Return the largest size up to `wanted` that this machine can hold."""
    free = machine.free() * 0.9
    while _needed(wanted) > free and wanted > _SMALLEST:
        wanted = max(wanted // 2, _SMALLEST)
    if _needed(wanted) > free:
        raise Failure(
            f"a guest takes {format_size(_needed(_SMALLEST))} of memory, "
            f"and {format_size(int(free))} are {machine.unused()}",
            "end some programs, or use a larger machine",
        )
    return wanted
