# SPDX-License-Identifier: GPL-2.0-only
"""Builds the kernels that guests boot, with their description in a result."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from pagemint.commands.options import GuestSource
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
        kernels: those that were wanted, base first; or a stock kernel alone.
        about: their description in a result.
        base: the base tree; None for a stock kernel.
    """

    kernels: list[Kernel]
    about: rows.Kernel
    base: Tree | None


def build(source: GuestSource, lab: Lab, wanted: Collection[str] = (BASE, PATCHED)) -> Built:
    """Return the kernels of a source, built if they are not in the cache.

    Args:
        source: the options that choose it.
        lab: the lab with their architecture and configuration.
        wanted: names of trees; a stock kernel has none.

    Raises:
        Failure: a tree or a stock kernel cannot be fetched, an edit does not apply, or a build
            fails.
    """
    if source.stock:
        kernel = stock.kernel(source.stock)
        about = rows.Kernel(kernel.release, kernel.built.name, "debian")
        return Built([kernel], about, None)
    linux = patches.source_for(source.kernel, source.ksrc)
    both = [replace(tree, arch=lab.arch) for tree in trees.pair(linux)]
    about = rows.Kernel(
        linux.version,
        both[0].key,
        "+".join(lab.fragments),
        series=edited.digest(linux.line),
    )
    booted = [tree for tree in both if tree.name in wanted]
    return Built([image.kernel(tree, lab.fragments) for tree in booted], about, both[0])
