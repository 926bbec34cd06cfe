# SPDX-License-Identifier: GPL-2.0-only
"""The trees that are left out of workloads, whatever the reason, so that the others go on."""

from collections.abc import Collection, Mapping

from pagemint.base.errors import TreeFailure
from pagemint.base.progress import note
from pagemint.results.rows import EVERYTHING
from pagemint.words import AGAIN, OWN


class LeftOut:
    """The trees that are left out, each noted on stderr in one line.

    The lab's own trees are never left out after a failure: it ends the bench.
    """

    def __init__(self) -> None:
        """Begin with no tree left out."""
        self._reasons: dict[str, dict[str, str]] = {}
        self._empty: set[str] = set()

    def add(self, workload: str, tree: str, why: str) -> None:
        """Leave a tree out of a workload."""
        self._reasons.setdefault(tree, {})[workload] = why
        note(f"pagemint: {workload} is left out for {tree}: {why}")

    def failed(self, workload: str, failure: TreeFailure) -> None:
        """Leave out the tree that failed.

        Raises:
            TreeFailure: it is one of the lab's own, or was left out before.
        """
        if failure.tree in OWN or self.has(workload, failure.tree):
            raise failure
        self.add(workload, failure.tree, failure.why)

    def has(self, workload: str, tree: str) -> bool:
        """Whether a tree is left out of a workload."""
        return bool({workload, EVERYTHING} & self._reasons.get(tree, {}).keys())

    def of(self, tree: str) -> Mapping[str, str]:
        """Return the workloads that a tree is left out of, and why."""
        return self._reasons.get(tree, {})

    def comparable(self, workload: str, trees: Collection[str], against: str) -> bool:
        """Whether a tree is left to compare with `against`; one note says so if there is none."""
        if against in trees and len({*trees} - {AGAIN}) > 1:
            return True
        if workload not in self._empty:
            note(f"pagemint: {workload} is left out: there is nothing to compare")
        self._empty.add(workload)
        return False
