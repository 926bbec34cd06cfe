# SPDX-License-Identifier: GPL-2.0-only
"""The memory that a bench may take, and the largest device for which it is enough."""

import bisect
from collections.abc import Collection

from pagemint.base import machine
from pagemint.bench.workload import Settings, Workload

SMALLEST = 2 << 20
"""Bytes of the smallest device: one compound."""

LARGEST = 16 * 10**12
"""Bytes of the largest device: pagemint/bench/glue/tree.c has no more sections."""

_MB = 10**6


def free() -> int:
    """Return the bytes that a bench may take: a little less than what is available."""
    return int(machine.free() * 0.95)


def needed(workloads: Collection[Workload], size: int) -> int:
    """Return the most bytes that one of the workloads takes, for a device of `size` bytes."""
    return max(workload.memory(Settings(size)) for workload in workloads)


def fitting(workloads: Collection[Workload], room: int) -> list[str]:
    """Return the names of the workloads for which `room` bytes are enough with some --size."""
    return [
        workload.name
        for workload in workloads
        if workload.sized or workload.memory(Settings(0)) <= room
    ]


def largest(workloads: Collection[Workload], room: int) -> str | None:
    """Return the largest --size for which `room` bytes are enough, or None if there is none.

    Workloads whose memory does not depend on it do not count.
    """
    sized = [workload for workload in workloads if workload.sized]
    first, last = -(-SMALLEST // _MB), LARGEST // _MB
    sizes = range(first, last + 1)
    fit = bisect.bisect_right(sizes, room, key=lambda size: needed(sized, size * _MB))
    if not fit:
        return None
    size = sizes[fit - 1]
    return f"{size // 1000}GB" if size >= 1000 else f"{size}MB"
