# SPDX-License-Identifier: GPL-2.0-only
"""Compares the counts of an operation before and after: on base, and as pagemint changes it."""

from collections.abc import Callable
from dataclasses import dataclass

from pagemint.results.rows import Counts, Operation, Result

MEASURES: dict[str, Callable[[Counts], int]] = {
    "instructions": lambda counts: counts.instructions,
    "bytes stored": lambda counts: counts.stored,
}
"""The counts that tables and plots show, by their names."""

WAITS = {
    "synchronize_rcu": "RCU",
    "synchronize_rcu_expedited": "RCU, expedited",
    "__synchronize_srcu": "SRCU",
    "percpu_ref_kill_and_confirm": "`percpu_ref`",
}
"""Functions that wait for a grace period, or begin one that the caller waits for, and its kind."""

PERIOD = "rcu_gp_cleanup"
"""The function that ends each RCU grace period; the longer an operation runs, the more end."""

BOOT = "boot with "
"""How the names of boots begin; the memory and the mode follow."""

_UNITS = {"instructions": (1e6, "M"), "bytes stored": (1 << 20, "MiB")}
# How the names of some operations begin.
_LEFT_OUT = ("nothing", "rebind ", "second ", "unmap ", BOOT)
_SHARE = 0.1  # of a total: the least share of a function that dominates an operation


@dataclass(frozen=True)
class Pair:
    """An operation on both trees, or on a stock kernel without and with the module.

    Attributes:
        before: on the base tree, or without the module; None if that was not counted.
        now: on the patched tree, or with the module, likewise.
    """

    before: Operation | None
    now: Operation | None

    @property
    def last(self) -> Operation:
        """The operation as it is now, if that was counted."""
        operation = self.now or self.before
        assert operation
        return operation

    @property
    def trees(self) -> tuple[Operation, ...]:
        """The operation as it was counted, before and now."""
        return tuple(filter(None, (self.before, self.now)))

    def dominating(self) -> dict[str, str]:
        """Return the functions with the most instructions and bytes now, and their shares in words.

        For example {"clear_page": "50% of bytes stored"}.
        """
        phrases: dict[str, list[str]] = {}
        for measure in MEASURES:
            for name, share in largest(self.last, measure)[:1]:
                if share >= _SHARE:
                    phrases.setdefault(name, []).append(f"{share:.0%} of {measure}")
        return {name: " and ".join(shares) for name, shares in phrases.items()}


def pairs(result: Result) -> list[Pair]:
    """Return the operations of a result, in their order."""
    operations: dict[str, dict[str, Operation]] = {}
    for operation in result.counts:
        operations.setdefault(operation.name, {})[operation.tree] = operation
    return [
        Pair(trees.get("base"), trees.get("patched") or trees.get("module"))
        for trees in operations.values()
    ]


def telling(result: Result) -> list[Pair]:
    """Return the operations of a result but those that add nothing to others."""
    return [pair for pair in pairs(result) if not pair.last.name.startswith(_LEFT_OUT)]


def boots(result: Result) -> list[Operation]:
    """Return the boots of a result, by the size of the memory."""
    operations = [operation for operation in result.counts if operation.name.startswith(BOOT)]
    return sorted(operations, key=lambda operation: operation.bytes)


def most_changed(result: Result, most: int) -> list[Pair]:
    """Return the telling operations whose instructions changed most, in their order."""
    both = [pair for pair in telling(result) if len(pair.trees) == 2]

    def change(pair: Pair) -> int:
        before, now = (tree.total.instructions for tree in pair.trees)
        return abs(now - before)

    chosen = sorted(both, key=change, reverse=True)[:most]
    return [pair for pair in both if pair in chosen]


def largest(operation: Operation, measure: str) -> list[tuple[str, float]]:
    """Return the functions with the largest shares of a total, and these shares."""
    of = MEASURES[measure]
    total = of(operation.total)
    if not total:
        return []
    shares = {name: of(counts) / total for name, counts in operation.functions.items()}
    return sorted(shares.items(), key=lambda item: (-item[1], item[0]))


def in_words(amount: int, measure: str) -> str:
    """Return an amount of a measure, with three digits or more: "131 M", "64.0 MiB"."""
    scale, unit = _UNITS[measure]
    value = amount / scale
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"
