# SPDX-License-Identifier: GPL-2.0-only
"""The variants of a bench: which trees run which workloads, and in which modes."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagemint.bench.left_out import LeftOut
from pagemint.bench.link import Program
from pagemint.bench.process import Host
from pagemint.bench.workload import Variant, Workload
from pagemint.trees.trees import Tree
from pagemint.words import AGAIN, BASE, MODES, PUBLISHED, PUBLISHED_WORKLOADS

# The first of these that a tree has is its default. A tree with the topic published is there to
# show that mode.
_DEFAULTS = ("published", "streaming")


@dataclass(frozen=True)
class Variants:
    """The variants of a bench, or of one workload.

    Attributes:
        modal: for workloads that write a memmap: one for each mode of each tree.
        plain: for workloads without modes: one for each tree.
    """

    modal: tuple[Variant, ...]
    plain: tuple[Variant, ...]


def choose(program: Program, trees: Sequence[Tree], returns: str, *, all_modes: bool) -> Variants:
    """Return the variants of all trees; base, the first one, takes part twice.

    With `all_modes` they have all modes of each tree, the default one first.

    Raises:
        TreeFailure: the code of a tree cannot be patched, or does not tell its modes.
    """
    modal = [Variant(BASE), Variant(AGAIN)]
    with Host(program) as host:
        host.patch(returns)
        for tree in trees[1:]:
            modes = modes_of(host, tree.name)
            default = [mode for mode in _DEFAULTS if mode in modes][:1]
            more = all_modes and tree.name != PUBLISHED
            others = [mode for mode in modes if mode not in default] if more else []
            modal += [Variant(tree.name, mode) for mode in [*default, *others] or [""]]
    return Variants(tuple(modal), tuple(Variant(tree.name) for tree in trees))


def modes_of(host: Host, tree: str) -> list[str]:
    """Return the modes that a tree has."""
    return [
        mode
        for mode in (*MODES, PUBLISHED)
        if host.ask("has_mode", tree=tree, name=mode)["has"] != "0"
    ]


def able(
    chosen: Variants,
    program: Program,
    trees: Sequence[Tree],
    workloads: Sequence[Workload],
    against: str,
    left_out: LeftOut,
) -> dict[Workload, Variants]:
    """Return the variants of each workload, without the trees that lack its code.

    A workload is left out if the tree `against` lacks its code, or all other trees do. A note names
    everything that is left out; `left_out` receives the trees.
    """
    variants = {}
    for workload in workloads:
        able_trees = [
            tree for tree in trees if tree.name != PUBLISHED or workload.name in PUBLISHED_WORKLOADS
        ]
        for tree in able_trees:
            reason = program.lacks.get((tree.name, workload.file))
            if tree.release < workload.since:
                reason = f"Linux {tree.version} does not have its code"
            if reason is not None:
                left_out.add(workload.name, tree.name, reason)
        names = [tree.name for tree in able_trees if not left_out.has(workload.name, tree.name)]
        if not left_out.comparable(workload.name, names, against):
            continue
        if BASE in names:
            names.append(AGAIN)
        variants[workload] = Variants(
            tuple(variant for variant in chosen.modal if variant.tree in names),
            tuple(variant for variant in chosen.plain if variant.tree in names),
        )
    return variants
