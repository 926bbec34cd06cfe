# SPDX-License-Identifier: GPL-2.0-only
"""Root directories of Debian's packages, which are unpacked but not installed."""

from collections.abc import Iterable
from pathlib import Path

from pagemint.base import disk
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.trees.debian import apt

_MERGED = ("bin", "sbin", "lib", "lib64")


def unpack(
    work: Path,
    packages: Iterable[str],
    architecture: str,
    what: str,
    *,
    room: int,
    mounts: Iterable[str],
    suite: str | None = None,
) -> Path:
    """Unpack packages and all their dependencies into `work`/root, and return that.

    The directories and links that an installation of Debian makes are added.

    Args:
        work: an empty directory.
        packages: names of packages.
        architecture: their architecture.
        what: the root, for messages.
        room: bytes of the packages and their files.
        mounts: directories on which something will be mounted.
        suite: the suite to take them from; None for the machine's own.

    Raises:
        Failure: the mirror has no such packages or cannot be reached, or the disk is full.
    """
    disk.need_space(work, room, what)
    settings, root = work / "apt.conf", work / "root"
    settings.write_text(apt.reach())
    argv: list[str | Path] = ["mmdebstrap", "--quiet", "--mode=chrootless", "--variant=extract"]
    argv += [f"--architectures={architecture}", f"--include={','.join(packages)}"]
    argv += [f"--aptopt={settings}", suite or "", root, *apt.mirror(suite)]
    with step(f"fetching and unpacking {what}"):
        run(argv, what=f"fetching {what}")
    for name in mounts:
        (root / name).mkdir(exist_ok=True)
    for name in _MERGED:
        if not (root / name).exists() and (root / "usr" / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    return root
