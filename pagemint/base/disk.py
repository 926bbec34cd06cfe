# SPDX-License-Identifier: GPL-2.0-only
"""Checks that files can be written, before the work whose outcome could be lost."""

import shutil
import tempfile
from pathlib import Path

from pagemint.base.errors import Failure, MachineFailure


def existing(path: Path) -> Path:
    """Return a path, or the nearest directory above it that exists."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.exists())


def check_directory(path: Path, what: str, remedy: str) -> None:
    """Check that a directory can be written, or be made.

    Args:
        path: the directory.
        what: what is to be written, for the message.
        remedy: the action if it cannot.

    Raises:
        Failure: it cannot.
    """
    try:
        with tempfile.TemporaryFile(dir=existing(path)):
            pass
    except OSError as error:
        raise Failure(f"cannot write {what}: {error.strerror}", remedy) from error


def need_space(path: Path, size: int, what: str) -> None:
    """Check that the file system of `path`, which need not exist yet, has `size` bytes free.

    Raises:
        MachineFailure: it has less.
    """
    path = existing(path)
    free = shutil.disk_usage(path).free
    if free < size:
        raise MachineFailure(
            f"{what} needs {size / 1e9:.1f} GB on the disk of {path}, which has "
            f"{free / 1e9:.1f} GB free",
            "free some, or set XDG_CACHE_HOME to a directory on another disk",
        )
