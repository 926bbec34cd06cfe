# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a result: one definition, which the writer, the reader and the report share."""

import datetime
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

SCHEMA = "pagemint/2"
"""The format of a result."""

Name = Annotated[str, Meta(min_length=1, max_length=80)]
"""The name of a workload, a tree or the like."""

Word = Annotated[str, Meta(max_length=80)]
"""A name, or "" where there is none."""

Count = Annotated[int, Meta(ge=1, le=1 << 60)]
"""Bytes, pages, threads."""

Size = Annotated[int, Meta(ge=0, le=1 << 60)]
"""Bytes, or 0 where they do not matter."""

Positive = Annotated[float, Meta(ge=1e-9, le=1e12)]
"""A time or a ratio; within these bounds no ratio of two overflows."""

Runs = Annotated[list[Positive], Meta(min_length=1, max_length=10_000)]
"""Milliseconds, one for each run."""

Parts = Annotated[list[Positive], Meta(max_length=10_000)]
"""Milliseconds of a part of each run, or none where it is not known."""


@dataclass(frozen=True)
class Case:
    """A condition under which trees and modes are compared.

    Attributes:
        workload: its name.
        device_bytes: size of the device, or of the memory that a run brings up or copies.
        pages: struct pages of it that a run covers.
        threads: how many of them may share the work.
        returns: how the kernel code returns, a key of returns.NAMES; "" is not known.
        block_bytes: size of a memory block; 0 where there is none.
        function: the kernel function, where the workload alone does not tell.
        cpu_class: the string instructions that the kernel was told of; "" does not matter.
        folio_bytes: size of a folio; 0 where there is none.
    """

    workload: Name
    device_bytes: Count
    pages: Count
    threads: Count = 1
    returns: Word = ""
    block_bytes: Size = 0
    function: Word = ""
    cpu_class: Word = ""
    folio_bytes: Size = 0


@dataclass(frozen=True)
class Row:
    """The runs of one tree, in one of its modes, under one condition.

    Attributes:
        case: the condition.
        tree: base, base2 (the same code, linked a second time), patched or stock.
        mode: of the tree; "" where it has none.
        runs_ms: each run, in the order of the rounds.
        walk_ms: the part of each run that frees the pages, where it is known.
        bind_ms: the whole bind around each run, where there was one.
        first_ms: the first run, on memory that nobody had touched; None if that was another mode.
        first_bind_ms: the whole bind around it.
        hash: over the struct pages that were left, where they were looked at.
    """

    case: Case
    tree: Name
    mode: Word
    runs_ms: Runs
    walk_ms: Parts = field(default_factory=list)
    bind_ms: Parts = field(default_factory=list)
    first_ms: Positive | None = None
    first_bind_ms: Positive | None = None
    hash: Word = ""

    @property
    def variant(self) -> str:
        """The name beside others of the same case: the mode, or the tree if it has none."""
        return self.mode or self.tree


@dataclass(frozen=True)
class Limit:
    """The fastest of some plain loops over the same memory, in the same rounds.

    Attributes:
        kind: whether it fills memory with non-temporal stores, or copies through the cache.
        loop: its name.
        device_bytes: of the rows beside which it was timed.
        pages: pages that a run stands for: it fills their memmap, or copies them.
        runs_ms: each run.
        threads: how many of them shared the work.
        returns: of the rows beside which it was timed.
        folio_bytes: size of a folio; 0 where there is none.
        workload: the one in whose rounds it was timed; "" is not known.
    """

    kind: Literal["fill", "copy"]
    loop: Name
    device_bytes: Count
    pages: Count
    runs_ms: Runs
    threads: Count = 1
    returns: Word = ""
    folio_bytes: Size = 0
    workload: Word = ""


@dataclass(frozen=True)
class Check:
    """A test in a guest.

    Attributes:
        scenario: where it ran.
        tree: base or patched.
        name: what was checked.
        outcome: pass, fail or skip.
        said: how it went.
        must_pass: whether it has to pass; else it has to end on both trees alike.
    """

    scenario: Name
    tree: Name
    name: Name
    outcome: Literal["pass", "fail", "skip"]
    said: str
    must_pass: bool


@dataclass(frozen=True)
class Machine:
    """The machine of a result, as base.machine.about() describes it.

    Attributes:
        cpu: its model name.
        cpus: how many.
        memory_bytes: all of it.
        kernel: the version of the running one.
        date: of the result.
        family_model_stepping: of the CPU.
        cpu_class: the string instructions that its kernel is told of, as in Case; "" is not known.
        virtual: whether it is a virtual machine.
        load_average: of the last minute before the result was written.
        compiler: that built the kernel code.
        pagemint: its version.
        huge_bytes: how much of the memmap lay in huge pages.
        accel: of a guest, kvm or tcg; "" for no guest.
        times_comparable: false where everything was emulated.
    """

    cpu: str
    cpus: Count
    memory_bytes: Count
    kernel: str
    date: datetime.datetime
    family_model_stepping: Annotated[list[int], Meta(max_length=3)] = field(default_factory=list)
    cpu_class: Word = ""
    virtual: bool = False
    load_average: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    compiler: str = ""
    pagemint: str = ""
    huge_bytes: Size = 0
    accel: Word = ""
    times_comparable: bool = True


@dataclass(frozen=True)
class Kernel:
    """The kernel code that was measured.

    Attributes:
        version: such as 7.3.4.
        source: the package version or a digest of the tree.
        config: the name of the configuration, with a digest.
        series: digest of the patches' code; "" where none are applied.
        returns: how the kernel of the machine returns from functions.
    """

    version: str
    source: str
    config: str
    series: str = ""
    returns: Word = ""


@dataclass(frozen=True)
class Result:
    """One run of the lab.

    Attributes:
        host: the machine.
        kernel: what was measured.
        rows: no two of the same case, tree and mode.
        limits: what bounds the rows.
        checks: of guests.
        schema: the format of the file.
        file: where it was read; "" for one that was just made.
    """

    host: Machine
    kernel: Kernel
    rows: list[Row]
    limits: list[Limit] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    schema: str = SCHEMA
    file: str = ""
