# SPDX-License-Identifier: GPL-2.0-only
"""The result file: what every one says of the machine, and how it is written."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

SCHEMA = "pagemint/2"
"""The format of a result."""

Name = Annotated[str, Meta(min_length=1, max_length=80)]
"""What a workload, a variant or the like is called."""

Count = Annotated[int, Meta(ge=1, le=1 << 60)]
"""Bytes, pages, threads."""

Positive = Annotated[float, Meta(ge=1e-9, le=1e12)]
"""A time or a ratio; within these bounds no ratio of two overflows."""

Runs = Annotated[list[Positive], Meta(min_length=1, max_length=10_000)]
"""Milliseconds, one for each run."""


@dataclass(frozen=True)
class Row:
    """The runs of one variant of a workload; a field is what the result format says.

    Attributes:
        workload: its name.
        variant: base, or a mode of the patched tree.
        threads: how many of them could share the work; base and slow never do.
        device_bytes: size of the device.
        pages: struct pages that were asked for.
        runs_ms: memmap_init_zone_device() each time, in the order of the runs.
        median_ms: the median of them.
        ns_per_page: that, for each struct page.
        speedup: base over this.
        limit_ratio: the time at the fill limit over this; 1 is the limit, None is not known.
    """

    workload: Name
    variant: Name
    threads: Count
    device_bytes: Count
    pages: Count
    runs_ms: Runs
    median_ms: Positive
    ns_per_page: Positive
    speedup: Positive
    limit_ratio: Positive | None
