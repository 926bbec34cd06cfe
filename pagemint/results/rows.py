# SPDX-License-Identifier: GPL-2.0-only
"""The parts of a result, defined once for the writer, the reader and the report."""

import datetime
import operator
from dataclasses import astuple, dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from pagemint import words

SCHEMA = "pagemint/2"
"""The format of a result."""

Name = Annotated[str, Meta(min_length=1, max_length=80)]
"""The name of a workload, a tree or the like."""

Word = Annotated[str, Meta(max_length=80)]
"""A name, or "" if there is none."""

Count = Annotated[int, Meta(ge=1, le=1 << 60)]
"""Bytes, pages, threads."""

Size = Annotated[int, Meta(ge=0, le=1 << 60)]
"""Bytes, or 0 where they do not matter."""

Positive = Annotated[float, Meta(ge=1e-9, le=1e12)]
"""A time or a ratio. With these bounds the ratio of two cannot overflow."""

MOST_RUNS = 10_000
"""Most runs of a row."""

Runs = Annotated[list[Positive], Meta(min_length=1, max_length=MOST_RUNS)]
"""Milliseconds, one for each run."""

Parts = Annotated[list[Positive], Meta(max_length=MOST_RUNS)]
"""Milliseconds of a part of each run; empty if that is not known."""


Subjects = Annotated[list[str], Meta(max_length=10_000)]
"""Subjects of mails."""


@dataclass(frozen=True)
class Case:
    """A condition under which trees and modes are compared.

    Attributes:
        workload: its name.
        device_bytes: size of the device, or of the memory that a run brings up or copies.
        pages: number of struct pages that a run covers.
        threads: number of threads that may share the work.
        returns: the kind of returns of the kernel code, a key of returns.NAMES; "" if not known.
        block_bytes: size of a memory block; 0 if there is none.
        function: the kernel function; "" if the workload has only one.
        cpu_class: the string instructions that the code was patched for; "" if they do not matter.
        folio_bytes: size of a folio; 0 if there is none.
        operation: the step of a whole operation that a run repeats, such as "init, cold"; "" if
            the workload has no such steps.
        times: how many times a run does that step.
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
    operation: Word = ""
    times: Count = 1


@dataclass(frozen=True)
class Row:
    """The runs of one tree, in one of its modes, under one condition.

    Attributes:
        case: the condition.
        tree: base, base2 (the same code, linked a second time), patched, stock, or a name that
            the user chose.
        mode: the mode of the tree; "" if it has none.
        runs_ms: each run, in the order of the rounds.
        walk_ms: the part of each run that frees the pages, if it is known.
        bind_ms: the whole bind around each run, if there was one.
        use_ms: the first use after each bind: 64 faults, or folios, of 2 MiB.
        unbind_ms: the unbind after each bind.
        first_ms: the first run, on untouched memory; None if that was in another mode.
        first_bind_ms: the whole bind around the first run.
        memmap_bytes: the ordinary memory that the memmap took when it was bound; None if that is
            not known.
        hash: a hash over the struct pages that were left; "" if it was not taken.
    """

    case: Case
    tree: Name
    mode: Word
    runs_ms: Runs
    walk_ms: Parts = field(default_factory=list)
    bind_ms: Parts = field(default_factory=list)
    use_ms: Parts = field(default_factory=list)
    unbind_ms: Parts = field(default_factory=list)
    first_ms: Positive | None = None
    first_bind_ms: Positive | None = None
    memmap_bytes: Size | None = None
    hash: Word = ""

    @property
    def variant(self) -> str:
        """The name of the row within its case: the mode, or the tree if it has no mode.

        A row of a tree that the user named has both.
        """
        if self.tree in words.OWN:
            return self.mode or self.tree
        return f"{self.tree} {self.mode}".rstrip()


@dataclass(frozen=True)
class Limit:
    """The fastest of some plain loops over the same memory, in the same rounds.

    Attributes:
        kind: whether it fills memory with non-temporal stores, or copies through the cache.
        loop: its name.
        device_bytes: the device_bytes of the rows that were timed in the same rounds.
        pages: the pages of a run, which fills their memmap or copies them.
        runs_ms: each run.
        threads: number of threads that shared the work.
        returns: the returns of the rows that were timed in the same rounds.
        folio_bytes: size of a folio; 0 if there is none.
        workload: the workload of these rows; "" if it is not known.
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
        scenario: the scenario in which it ran.
        tree: base or patched.
        name: its name.
        outcome: pass, fail or skip.
        said: its own words on the outcome.
        must_pass: whether it has to pass. If not, it has to end alike on both trees.
    """

    scenario: Name
    tree: Name
    name: Name
    outcome: Literal["pass", "fail", "skip"]
    said: str
    must_pass: bool


@dataclass(frozen=True)
class Counts:
    """The work of some kernel code, counted in an emulated guest.

    Attributes:
        instructions: all instructions except string instructions with a repeat prefix.
        steps: the steps of these string instructions.
        stored: bytes stored.
        loaded: bytes loaded.
        locked: instructions with a lock prefix, and xchg with memory.
        calls: executions of the first instruction of a function.
    """

    instructions: Size
    steps: Size
    stored: Size
    loaded: Size
    locked: Size
    calls: Size

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(operator.add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Operation:
    """An operation in the kernel of one tree, counted.

    Attributes:
        name: such as "bind fsdax map=dev".
        tree: base or patched; for a stock kernel base, or module with the module for it.
        bytes: the memory that it is about; 0 for an empty operation.
        total: the counts of all kernel code that ran during the operation.
        functions: the counts of the functions with a large share, by their names.
        resident: the bytes of the guest's memory that the host backed at the end; 0 if that is
            not known.
        latency: the instructions of one of its allocations: median, 99th percentile and most;
            empty if it has none.
    """

    name: Name
    tree: Literal["base", "patched", "module"]
    bytes: Size
    total: Counts
    functions: Annotated[dict[str, Counts], Meta(max_length=2000)]
    resident: Size = 0
    latency: Annotated[list[Size], Meta(max_length=3)] = field(default_factory=list)


@dataclass(frozen=True)
class Machine:
    """The machine of a result, as base.machine.about() describes it.

    Attributes:
        cpu: its model name.
        cpus: number of CPUs.
        memory_bytes: size of its memory.
        kernel: the version of the running kernel.
        date: the date of the result.
        family_model_stepping: family, model and stepping of the CPU.
        cpu_class: the string instructions that its kernel uses, as in Case; "" if not known.
        virtual: whether it is a virtual machine.
        load_average: the load average of the last minute before the result was written.
        compiler: the compiler that built the kernel code.
        pagemint: the version of pagemint.
        huge_bytes: the most bytes of a native host's memory that were in huge pages.
        accel: the accelerator of the guests, kvm or tcg; "" without guests.
        times_comparable: false if everything was emulated.
        emulated: the emulated CPU and the emulator of operations that were counted.
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
    emulated: str = ""


@dataclass(frozen=True)
class Kernel:
    """The kernel code that was measured.

    Attributes:
        version: such as 7.3.4.
        source: the package version or a digest of the tree.
        config: the name of the configuration, with a digest.
        series: digest of the patches' code; "" if none are applied.
        returns: how the kernel of the machine returns from functions.
        code: by workload, a digest of the code that was timed; empty if the user named trees.
    """

    version: str
    source: str
    config: str
    series: str = ""
    returns: Word = ""
    code: Annotated[dict[Name, Word], Meta(max_length=2000)] = field(default_factory=dict)


EVERYTHING = "every workload"
"""A tree that does not build is left out of it."""

COMPARISON = "the memmap comparison"
"""A tree whose code fails in the comparison with base is left out of it."""


@dataclass(frozen=True)
class Tree:
    """A tree that the user named.

    Attributes:
        name: its name.
        where: the text that says where it comes from.
        version: such as 7.3.4.
        source: a digest of its files.
        config: the name of its configuration, with a digest.
        identical: whether it leaves the memmaps of base, byte for byte; None if they were not
            compared: it is of another version, or was left out.
        difference: the first difference in words; "" if there is none.
        left_out: the workloads that it was left out of, EVERYTHING or COMPARISON, and why.
        applied: the subjects of the mails whose patches it has, in order.
        not_applied: the subjects of the other mails of its file, each with the reason.
    """

    name: Name
    where: str
    version: str
    source: str
    config: str
    identical: bool | None = None
    difference: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    applied: Subjects = field(default_factory=list)
    not_applied: Subjects = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """One run of the lab.

    Attributes:
        host: the machine.
        kernel: the kernel code that was measured; without `trees` that is base and the series.
        rows: the rows; no two have the same case, tree and mode.
        limits: the limits of the rows.
        checks: the checks in guests.
        counts: the operations that were counted; no two have the same name and tree.
        trees: the trees that the user named, in the order of the command line.
        against: the tree that the others are compared with.
        schema: the format of the file.
        file: the file that it was read from; "" for a new result.
    """

    host: Machine
    kernel: Kernel
    rows: list[Row]
    limits: list[Limit] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    counts: list[Operation] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    against: Name = "base"
    schema: str = SCHEMA
    file: str = ""
