# SPDX-License-Identifier: GPL-2.0-only
"""The root directory of an arm64 guest: Debian's packages, unpacked but not installed."""

from pathlib import Path

from pagemint.base import cache
from pagemint.trees.debian import roots

HOST = Path("/host")
"""The directory in which a guest sees the files of this machine."""

OPTIONS = "trans=virtio,version=9p2000.L,msize=524288"
"""Mount options of the file systems that a guest shares with this machine."""

SHARED = "pagemint_shared"
"""The word of the kernel's command line that names the shared directory, which is writable."""

_PACKAGES = ("busybox-static", "kmod", "ndctl", "python3")
_APPLETS = ("sh", "mount", "dmesg")
_MOUNTS = ("dev", "proc", "sys", "tmp", "run", HOST.name)
_ROOM = 400_000_000  # bytes: the packages, and their files
_INIT = f"""\
#!/bin/sh
# Mounts the file systems of a guest, runs its command, and powers it off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t 9p -o ro,{OPTIONS} host {HOST}
mount -t 9p -o {OPTIONS} shared "{HOST}${SHARED}"
sh "{HOST}${SHARED}/command"
exec busybox poweroff -f
"""


def root() -> Path:
    """Return the root directory, made if it is not in the cache.

    Raises:
        Failure: the mirror has no such packages or cannot be reached, or the disk is full.
    """

    def make(work: Path) -> None:
        what = "the root of an arm64 guest"
        made = roots.unpack(work, _PACKAGES, "arm64", what, room=_ROOM, mounts=_MOUNTS)
        for name in _APPLETS:
            (made / "bin" / name).symlink_to("busybox")
        (made / "init").write_text(_INIT)
        (made / "init").chmod(0o755)

    return cache.entry("roots", cache.digest("arm64", *_PACKAGES, *_APPLETS, _INIT), make) / "root"
