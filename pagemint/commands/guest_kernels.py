# SPDX-License-Identifier: GPL-2.0-only
"""Builds the kernels that guests boot, with their description in a result."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.guests.outside.lab import Lab
from pagemint.results import rows
from pagemint.trees import edited, image, patches, stock, trees
from pagemint.trees.image import Kernel
from pagemint.trees.trees import Tree
from pagemint.words import BASE, PATCHED


@dataclass(frozen=True)
class Built:
    """The kernels of a source.

    Attributes:
        kernels: those that were wanted, base first.
        about: their description in a result.
        base: the base tree.
    """

    kernels: list[Kernel]
    about: rows.Kernel
    base: Tree


def stock_kernel(line: str) -> tuple[list[Kernel], rows.Kernel]:
    """Return Debian's stock kernel of a line, and its description.

    Raises:
        Failure: there is none, or the module does not build.
    """
    kernel = stock.kernel(line)
    return [kernel], rows.Kernel(kernel.release, kernel.built.name, "debian")


def pair(
    line: str, ksrc: Path | None, lab: Lab, wanted: Collection[str] = (BASE, PATCHED)
) -> Built:
    """Return the kernels of a line or a tree of the user's, built if they are not in the cache.

    Args:
        line: the kernel line.
        ksrc: the tree; None takes Debian's source of the line.
        lab: the lab with their architecture and configuration.
        wanted: names of trees.

    Raises:
        Failure: a tree cannot be fetched, an edit does not apply, or a build fails.
    """
    found = patches.source_for(line, ksrc)
    both = [replace(tree, arch=lab.arch) for tree in trees.pair(found)]
    about = rows.Kernel(
        found.version,
        both[0].key,
        "+".join(lab.fragments),
        series=edited.digest(found.line),
    )
    booted = [tree for tree in both if tree.name in wanted]
    return Built([image.kernel(tree, lab.fragments) for tree in booted], about, both[0])
