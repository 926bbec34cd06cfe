# SPDX-License-Identifier: GPL-2.0-only
"""File systems on a bound fsdax device. They are small, since a large one takes longer to make."""

import mmap
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pagemint.guests.inside.devices import run, the_one

SMALL = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", str(mmap.PAGESIZE), "DEVICE", "256m"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K", "-m", "reflink=0", "-d", "size=400m", "DEVICE"),
}
"""The commands that make file systems on small devices."""

ALIGNED = {
    "ext4": (
        *("mkfs.ext4", "-q", "-F", "-b", str(mmap.PAGESIZE)),
        *("-E", "stride=512,stripe_width=512", "DEVICE", "400m"),
    ),
    "xfs": (
        *("mkfs.xfs", "-q", "-f", "-K", "-m", "reflink=0"),
        *("-d", "size=1g,su=2m,sw=1", "DEVICE"),
    ),
}
"""The same for file systems whose files lie in aligned blocks of 2 MiB. This xfs needs 1 GiB."""


def make(command: Sequence[str]) -> None:
    """Make a file system on the device, by one of the commands above."""
    block = the_one("pmem*")
    run(*(block if word == "DEVICE" else word for word in command))


@contextmanager
def mounted(kind: str) -> Iterator[Path]:
    """Mount the device with dax=always: mappings of its files are direct. Yield the directory."""
    with tempfile.TemporaryDirectory() as name:
        run("mount", "-t", kind, "-o", "dax=always", the_one("pmem*"), name)
        try:
            yield Path(name)
        finally:
            run("umount", name)
