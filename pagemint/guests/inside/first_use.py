# SPDX-License-Identifier: GPL-2.0-only
"""Times the first use of a device after a bind: a fault for each 2 MiB of a short mapping."""

import mmap
import time
from collections.abc import Callable
from pathlib import Path

from pagemint.guests.inside.devices import ALIGN, MAPPED, PROBE, written
from pagemint.guests.inside.filesystems import ALIGNED, make, mounted

NAME = "data"

Use = Callable[[], int]
"""Uses a bound device; returns the nanoseconds."""


def mapping(name: str) -> Use:
    """Return the use of a devdax device: reading bytes of a mapping, which changes no data."""

    def use() -> int:
        with Path("/dev", name).open("rb+", buffering=0) as file:
            return _touch(file.fileno(), lambda memory, offset: memory[offset])

    return use


def folios() -> Use | None:
    """Return the use of device-private memory: taking folios of 2 MiB; None if there are none."""
    file = PROBE / "folios"
    if not file.exists():
        return None

    def use() -> int:
        taken = written(file, str(MAPPED // ALIGN))
        file.write_text("0")
        return taken

    return use


def file_on_device() -> Use | None:
    """Return the use of an fsdax device: writing to a file; None if the kernel has no ext4."""
    if "\text4\n" not in Path("/proc/filesystems").read_text():
        return None
    made = False

    def use() -> int:
        nonlocal made
        if not made:
            make(ALIGNED["ext4"])
            # The blocks of the file are written, so that no fault zeroes them.
            with mounted("ext4") as directory:
                (directory / NAME).write_bytes(bytes(MAPPED))
            made = True
        with mounted("ext4") as directory, (directory / NAME).open("rb+") as file:
            return _touch(file.fileno(), lambda memory, offset: memory.__setitem__(offset, 1))

    return use


def _touch(file: int, touch: Callable[[mmap.mmap, int], object]) -> int:
    """Touch each 2 MiB of a mapped file, which faults once for each; return the nanoseconds."""
    with mmap.mmap(file, MAPPED) as memory:
        start = time.monotonic_ns()
        for offset in range(0, MAPPED, ALIGN):
            touch(memory, offset)
        return time.monotonic_ns() - start
