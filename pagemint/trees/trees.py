# SPDX-License-Identifier: GPL-2.0-only
"""Kernel trees to build from: the tree of a source, and the same with topics of the series."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint import words
from pagemint.base import cache, disk
from pagemint.base.errors import Failure, MachineFailure, TreeFailure
from pagemint.base.progress import step
from pagemint.base.run import run
from pagemint.trees import own, patches
from pagemint.trees.patches import Topic
from pagemint.trees.sources import Source

ROOM = 2_000_000_000
"""Bytes that a kernel tree may take."""


_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG")  # the variables that a kernel build can see


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
        name: its name in messages and results: base, patched, or one that the user chose.
        path: the directory, which nobody changes.
        key: identifies its contents, for cache keys.
        line: the kernel line of its edits and configuration.
        version: the version in its Makefile, such as 7.3.4.
        arch: the architecture that it is built for.
        applied: the subjects of the mails whose patches it has, in order.
        not_applied: the subjects of the other mails, each with the reason.
    """

    name: str
    path: Path
    key: str
    line: str
    version: str
    arch: Arch = X86
    applied: tuple[str, ...] = ()
    not_applied: tuple[str, ...] = ()

    @property
    def release(self) -> tuple[int, ...]:
        """The first two numbers of the version."""
        return tuple(int(number) for number in self.version.split(".")[:2])


def environment() -> dict[str, str]:
    """Return the environment of a kernel build, without the variables that change the build.

    Those variables are not in the cache key, so a build must not see them. Some of them name a
    directory outside the tree, such as KBUILD_OUTPUT, which `make mrproper` would clean.
    """
    return {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}


def pair(source: Source) -> tuple[Tree, Tree]:
    """Return the base tree of a source and the patched one, made if they are not in the cache.

    Raises:
        Failure: a patch of the series does not apply, or the disk is full.
    """
    base = unpatched(words.BASE, source)
    return base, with_topics(words.PATCHED, base, patches.topics())


def unpatched(name: str, source: Source) -> Tree:
    """Return the tree of a source; for a tree of the user's own, one in the cache like it.

    Raises:
        Failure: the disk is full, or the user's tree cannot be read.
    """
    if source.package_version:
        path, key = source.tree, source.package_version
    else:
        with step(f"looking at the files of {source.tree}"):
            names = own.files(source.tree)
            key = f"own-{own.listing(source.tree, names)}"

        def make(work: Path) -> None:
            disk.need_space(work, ROOM, "a copy of the kernel tree")
            with step(f"linking the files of {source.tree}"):
                own.link(source.tree, names, work / "linux", environment())

        path = cache.entry("trees", key, make) / "linux"
    return Tree(name, path, key, patches.nearest_line(source.line), source.version)


def with_topics(name: str, base: Tree, topics: Sequence[Topic]) -> Tree:
    """Return a base tree with some topics of the series.

    Raises:
        Failure: a patch of the series does not apply, or the disk is full.
    """
    digest = patches.digest(base.line, topics)
    return changed(
        name,
        base,
        cache.digest(base.key, digest),
        f"applying the series to Linux {base.version}",
        lambda work: patches.apply(work, base.line, topics),
    )


def changed(name: str, base: Tree, key: str, what: str, change: Callable[[Path], None]) -> Tree:
    """Return a base tree with a change, made if it is not in the cache.

    Args:
        name: the name of the new tree.
        base: the tree to change a copy of.
        key: identifies the contents of the new tree.
        what: the work, for the progress line.
        change: changes the copy. It must replace files, never write into them: the copy shares
            its files with the base tree.
    """

    def make(work: Path) -> None:
        disk.need_space(work, ROOM, "a patched kernel tree")
        with step(what):
            run(["cp", "-al", base.path, work / "linux"], what="copying the kernel tree")
            change(work / "linux")

    return replace(base, name=name, key=key, path=cache.entry("trees", key, make) / "linux")


@contextmanager
def blamed(name: str) -> Iterator[None]:
    """Turn a failure into one of the tree `name`, unless that is base or the machine is to blame.

    Raises:
        TreeFailure: for another tree.
    """
    try:
        yield
    except MachineFailure:
        raise
    except Failure as failure:
        if name in (words.BASE, words.AGAIN):
            raise
        raise TreeFailure(failure.message, failure.remedy, name) from failure
