# SPDX-License-Identifier: GPL-2.0-only
"""The compiler and libraries of a Debian release, unpacked in the cache and run from there.

Modules for a kernel are built by the compiler that built the kernel, and the programs in its
headers need the libraries of its release. This machine may have an older release.
"""

import shutil
from pathlib import Path

from pagemint.base import cache, packages
from pagemint.base.errors import Failure
from pagemint.trees.debian import roots

CODENAMES = {"deb13": "trixie"}
"""The codenames of releases, by the suffix in the names of their kernel packages."""

_PACKAGES = (
    *("coreutils", "dash", "gawk", "grep", "kmod", "make", "sed"),
    *("libelf1t64", "libssl3t64", "zlib1g"),
)
_MOUNTS = ("dev", "proc", "tmp", "build", "kernel")
_ROOM = 600_000_000  # bytes: the packages, and their files


def argv(root: Path, unpacked: Path, headers: Path, work: Path, folder: str) -> list[str | Path]:
    """Return the command that runs make in the headers of a kernel, for modules in a folder.

    Args:
        root: the directory that its programs see as /: see toolchain().
        unpacked: the packages of the kernel.
        headers: the headers, in `unpacked`.
        work: a directory with `folder`, which make writes to.
        folder: its name.
    """
    return [
        *("bwrap", "--die-with-parent", "--unshare-net", "--clearenv"),
        *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LC_ALL", "C.UTF-8"),
        *("--ro-bind", root, "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
        *("--ro-bind", unpacked, "/kernel", "--bind", work, "/build"),
        *("make", "-s", "-C", Path("/kernel", headers.relative_to(unpacked))),
        f"M=/build/{folder}",
    ]


def release_of(package: str) -> str | None:
    """Return the codename of the release that a kernel package is for; None if not known."""
    return next((name for word, name in CODENAMES.items() if f"+{word}-" in package), None)


def toolchain(codename: str, compiler: str) -> Path:
    """Return the root of a release's compiler and what it needs, made if it is not in the cache.

    Raises:
        Failure: bubblewrap is missing, the mirror lacks the packages or cannot be reached, or the
            disk is full.
    """
    if not shutil.which("bwrap"):
        raise Failure(
            f"{compiler} of Debian {codename} runs in bubblewrap, which is missing",
            packages.remedy(["bwrap"]),
        )

    def make(work: Path) -> None:
        what = f"{compiler} of Debian {codename}"
        names = (compiler, *_PACKAGES)
        made = roots.unpack(work, names, "amd64", what, room=_ROOM, mounts=_MOUNTS, suite=codename)
        (made / "usr/bin/awk").symlink_to("gawk")

    key = cache.digest(codename, compiler, *_PACKAGES, *_MOUNTS)
    return cache.entry("roots", key, make) / "root"
