# SPDX-License-Identifier: GPL-2.0-only
"""Names cases, and groups those that belong together."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pagemint.base import returns
from pagemint.base.sizes import format_power, format_size
from pagemint.results import estimates
from pagemint.results.rows import Case, Limit

BOOT = "boot-to-init"
"""The workload of a boot until the kernel starts init, which has deferred_init= as operation."""


@dataclass(frozen=True)
class Condition:
    """The properties that the rows of one table have in common.

    Attributes:
        device_bytes: see Case.
        threads: see Case.
        returns: see Case.
    """

    device_bytes: int
    threads: int
    returns: str

    def __str__(self) -> str:
        parts = (format_size(self.device_bytes), threads(self.threads), returns_of(self.returns))
        return ", ".join(part for part in parts if part)


def condition(case: Case) -> Condition:
    """Return the condition of a case."""
    return Condition(case.device_bytes, case.threads, case.returns)


def threads(count: int) -> str:
    """Return a number of threads in words: "2 threads"."""
    return "1 thread" if count == 1 else f"{count} threads"


def returns_of(key: str) -> str:
    """Return the name of a kind of returns: "Safe RET"."""
    return returns.NAMES.get(key, key)


def is_copy(case: Case) -> bool:
    """Whether pages are copied, so that results show bytes per second."""
    return bool(case.function or case.folio_bytes)


def is_memmap(case: Case) -> bool:
    """Whether a memmap is written, and nothing else."""
    return not is_copy(case) and not case.operation


def is_boot(case: Case) -> bool:
    """Whether a guest boots."""
    return case.workload == BOOT


def is_step(case: Case) -> bool:
    """Whether it is a step of an operation, which takes ns or µs, not ms."""
    return bool(case.operation) and not is_boot(case)


def is_ordinary(case: Case) -> bool:
    """Whether the memmap is that of ordinary memory."""
    return case.workload in ("hotplug", "boot")


def units(case: Case) -> int:
    """Return the number by which a time is divided: that of steps of an operation, or of pages."""
    return case.times if case.operation else case.pages


def title(case: Case) -> str:
    """Return a name that is unique under its condition: "hotplug, 128 MiB blocks"."""
    words = [case.function or case.workload, case.operation, case.cpu_class]
    if case.block_bytes:
        words.append(f"{size_of(case.block_bytes)} blocks")
    if case.folio_bytes:
        words.append(folios(case.folio_bytes))
    return ", ".join(word for word in words if word)


def short_title(case: Case) -> str:
    """Return the name of a case in 16 characters if possible: "hotplug 128 MiB"."""
    return f"{case.workload} {size_of(case.block_bytes)}" if case.block_bytes else title(case)


def folios(size: int) -> str:
    """Return folios of `size` bytes in words: "2 MiB folios"."""
    return f"{size_of(size)} folios"


def size_of(size: int) -> str:
    """Return a size in binary units if it is a power of two, else in decimal ones."""
    binary = size >= 1 << 10 and not size & (size - 1)
    return format_power(size) if binary else format_size(size)


def of_any_size(case: Case) -> Case:
    """Return the case without its size, to find cases that differ only in that."""
    return replace(case, device_bytes=1, pages=1, times=1)


def limit_of(case: Case, limits: Iterable[Limit]) -> Limit | None:
    """Return the limit of a case: the fastest limit timed in the same rounds, or None."""
    kind = "copy" if is_copy(case) else "fill"
    beside = (case.device_bytes, case.threads, case.returns, case.folio_bytes)
    fitting = [
        limit
        for limit in limits
        if limit.kind == kind
        and limit.workload in ("", case.workload)
        and (limit.device_bytes, limit.threads, limit.returns, limit.folio_bytes) == beside
    ]
    return min(fitting, key=lambda limit: estimates.limit_ms(limit, case.pages), default=None)
