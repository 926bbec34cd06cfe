# SPDX-License-Identifier: GPL-2.0-only
"""Kernel trees to build from: the base tree of a source, and the same with the series."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pagemint.base import cache
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.kernels import steps
from pagemint.kernels.sources import Source

_TREE_ROOM = 2_000_000_000  # bytes: a kernel tree


@dataclass(frozen=True)
class Arch:
    """An architecture that kernels are built for.

    Attributes:
        prefix: the start of the names of its compiler and binutils.
        image: the path of the kernel image in a build directory.
        variables: the variables that select it in the kernel's make.
    """

    prefix: str
    image: str
    variables: tuple[str, ...]


X86 = Arch("", "arch/x86/boot/bzImage", ())
"""The architecture of this machine, which is the default of the kernel's make."""

ARM64 = Arch(
    "aarch64-linux-gnu-",
    "arch/arm64/boot/Image",
    ("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"),
)


@dataclass(frozen=True)
class Tree:
    """A kernel tree to build from.

    Attributes:
        variant: base or patched.
        path: the directory, which nobody changes.
        key: identifies its contents, for cache keys.
        line: the kernel line of its edits and configuration.
        arch: the architecture that it is built for.
    """

    variant: str
    path: Path
    key: str
    line: str
    arch: Arch = X86


def pair(found: Source) -> tuple[Tree, Tree]:
    """Return the base tree of a source and the patched one, made if they are not in the cache.

    Raises:
        Failure: an edit of the series does not apply, or the disk is full.
    """
    if found.package_version:
        path, key = found.tree, found.package_version
    else:
        key = f"own-{_listing(found.tree)}"
        path = cache.entry("trees", key, lambda work: _copy_own(found, work)) / "linux"
    line = steps.nearest_line(found.line)
    base = Tree("base", path, key, line)

    def make(work: Path) -> None:
        cache.need_space(work, _TREE_ROOM, "a patched kernel tree")
        with step(f"applying the series to Linux {found.version}"):
            # Hard links: the two trees share the files that the series does not change.
            run(["cp", "-al", path, work / "linux"], what="copying the kernel tree")
            steps.patch(work / "linux", line)

    patched_key = cache.digest(key, steps.digest(found.line))
    patched = cache.entry("trees", patched_key, make) / "linux"
    return base, Tree("patched", patched, patched_key, line)


def _listing(tree: Path) -> str:
    """Return a digest of the names, sizes and times of a tree's files; quicker than contents."""
    lines = []
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(one for one in folders if one != ".git")
        for name in sorted(names):
            info = (Path(folder) / name).lstat()
            lines.append(f"{folder}/{name} {info.st_size} {info.st_mtime_ns}")
    return cache.digest(str(tree), "\n".join(lines))


def _copy_own(found: Source, work: Path) -> None:
    """Copy the user's tree, without built files. The original may be in use and change."""
    cache.need_space(work, _TREE_ROOM, "a copy of the kernel tree")
    with step(f"copying {found.tree}"):
        built = shutil.ignore_patterns(".git", "*.o", "*.ko")
        shutil.copytree(found.tree, work / "linux", symlinks=True, ignore=built)
        run(["make", "-s", "mrproper"], cwd=work / "linux", what="cleaning the copy")
