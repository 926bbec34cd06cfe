# SPDX-License-Identifier: GPL-2.0-only
"""Reads result files: strictly, since anybody may have sent them."""

import datetime
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from pagemint.base.errors import Failure
from pagemint.results import rows
from pagemint.results.rows import SCHEMA, Count, Name, Positive, Runs

_FIRST_SCHEMA = "pagemint/1"  # with other names for the modes
_FIRST_MODES = {"template": "cached", "fill": "streaming", "streaming": "published"}
_FIRST_LEFT_OUT = "auto"
_LARGEST = 16 << 20  # bytes of a file; a bench writes some 20 kB
_MOST_ROWS = 2000
_MOST_RUNS = 200_000  # in all rows together
_LONGEST = 200  # characters of a text; what is beyond is cut off
_TEXTS_OF_MEASUREMENT = {"workload", "variant", "returns", "function", "cpu_class", "hash"}


class Case(NamedTuple):
    """What rows have in common that can be compared: all but the variant.

    Attributes:
        workload: its name.
        device_bytes: size of the device, or of what is copied in a run.
        threads: how many of them could share the work.
        returns: how the kernel code returned, a key of returns.NAMES; "" is not known.
        function: the kernel function, where the workload alone does not tell.
        cpu_class: the string instructions the kernel was told of; "" does not matter.
        folio_bytes: size of a folio; 0 does not matter.
        more: whatever else the row says of itself in words.
    """

    workload: str
    device_bytes: int
    threads: int
    returns: str
    function: str
    cpu_class: str
    folio_bytes: int
    more: tuple[str, ...]


@dataclass(frozen=True)
class Row(rows.Row):
    """A row as read: with what only some workloads say.

    Attributes:
        returns: see Case.
        function: see Case.
        cpu_class: see Case.
        folio_bytes: see Case.
        bind_ms: the whole bind, each time, where there was one.
        walk_ms: the part of each run that is the walk which frees the pages, where that is known.
        hash: over the struct pages that were left, where they were looked at.
        more: see Case.
    """

    returns: str = ""
    function: str = ""
    cpu_class: str = ""
    folio_bytes: Annotated[int, Meta(ge=0, le=1 << 60)] = 0
    bind_ms: list[Positive] = field(default_factory=list)
    walk_ms: list[Positive] = field(default_factory=list)
    hash: str = ""
    more: tuple[str, ...] = ()

    @property
    def case(self) -> Case:
        """What this row is a variant of."""
        return Case(
            self.workload,
            self.device_bytes,
            self.threads,
            self.returns,
            self.function,
            self.cpu_class,
            self.folio_bytes,
            self.more,
        )

    @property
    def limit_ms(self) -> float | None:
        """Milliseconds that this would take at the limit, or None if that is not known."""
        if self.limit_ratio is None:
            return None
        return statistics.median(self.runs_ms) * self.limit_ratio


@dataclass(frozen=True)
class Machine:
    """The host of a result; see machine.about() and `pagemint vm`."""

    cpu: str
    cpus: Count
    memory_bytes: Count
    kernel: str
    date: datetime.datetime
    family_model_stepping: Annotated[list[int], Meta(max_length=3)] = field(default_factory=list)
    virtual: bool = False
    load_average: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    compiler: str = ""
    accel: str = ""
    times_comparable: bool = True

    @property
    def identity(self) -> tuple[object, ...]:
        """What is equal in two results of one machine, as far as results can tell."""
        memory = round(self.memory_bytes / 2**30)
        return (self.cpu, *self.family_model_stepping, self.virtual, self.cpus, memory, self.accel)


@dataclass(frozen=True)
class Kernel:
    """What was measured."""

    version: str
    source: str
    config: str
    series: str = ""
    returns: str = ""


@dataclass(frozen=True)
class Loop:
    """A plain loop that is the limit; see measure.Limit."""

    loop: Name
    device_bytes: Count
    runs_ms: Runs
    returns: str = ""
    threads: Count = 1


@dataclass(frozen=True)
class Limit:
    """The limits of a result."""

    fill_bytes_per_s: Annotated[float, Meta(gt=0, le=1e18)] | None
    copy_bytes_per_s: Annotated[float, Meta(gt=0, le=1e18)] | None
    fill_loops: Annotated[list[Loop], Meta(max_length=_MOST_ROWS)] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """A result file.

    Attributes:
        file: where it was read.
        host: the machine.
        kernel: what was measured.
        limit: what bounds it.
        rows: at least one; no two of the same case and variant.
        schema: the format of the file.
    """

    host: Machine
    kernel: Kernel
    limit: Limit
    rows: Annotated[list[Row], Meta(min_length=1, max_length=_MOST_ROWS)]
    file: str = ""
    schema: str = SCHEMA

    @property
    def same_as_base(self) -> str:
        """The variant with the code of base in another place: what it differs by is noise."""
        return "slow" if self.schema == _FIRST_SCHEMA else "base2"

    @property
    def paired(self) -> bool:
        """Whether run i of every variant comes from one round: not so for two guests."""
        return not self.host.accel


def read(file: str) -> Result:
    """Read a result file.

    Raises:
        Failure: it cannot be read, or is not a result of this schema.
    """
    path = Path(file)
    try:
        if not path.is_file():
            raise Failure(f"{file} is not a file", "name a result that --json wrote")
        with path.open("rb") as stream:
            text = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Failure(f"cannot read {file}: {why}", "name a result that --json wrote") from error
    if len(text) > _LARGEST:
        raise Failure(f"{file} is larger than 16 MiB", "name a result that --json wrote")
    return parse(text, file)


def parse(text: bytes, file: str) -> Result:
    """Return the result that `text` is; `file` is what to call it.

    Raises:
        Failure: it is not a result of this schema.
    """
    remedy = "make it anew with pagemint bench, vm or host, and --json"
    try:
        raw = msgspec.json.decode(text)
        _check_schema(raw, file)
        found = msgspec.convert({**_renamed(_tidied(raw)), "file": file}, Result)
    except RecursionError as error:
        raise Failure(f"{file} is nested too deeply to be a result", remedy) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is not UTF-8 text", remedy) from error
    except msgspec.MsgspecError as error:
        why = "it is empty" if not text.strip() else printable(str(error)).rstrip(".")
        raise Failure(f"{file} is not a result: {why}", remedy) from error
    if sum(len(row.runs_ms) + len(row.bind_ms) for row in found.rows) > _MOST_RUNS:
        raise Failure(f"{file} has more than {_MOST_RUNS:,} runs", remedy)
    if len({(row.case, row.variant) for row in found.rows}) < len(found.rows):
        raise Failure(f"{file} has two rows of the same workload and variant", remedy)
    return found


def printable(text: str) -> str:
    """Return `text` without control characters and the like, and cut to a bearable length."""
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _check_schema(raw: object, file: str) -> None:
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema not in (SCHEMA, _FIRST_SCHEMA):
        named = f"schema {printable(schema)!r}" if isinstance(schema, str) else "no schema"
        raise Failure(
            f"{file} has {named}, and this pagemint reads {SCHEMA!r}",
            "make it anew, or use the pagemint that made it",
        )


def _tidied(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the result with every text that will be shown made printable."""
    parts: dict[str, Any] = {**raw}
    for name in ("host", "kernel"):
        if isinstance(raw.get(name), dict):
            parts[name] = dict(_texts(raw[name]))
    if isinstance(raw.get("rows"), list):
        parts["rows"] = [_row(row) if isinstance(row, dict) else row for row in raw["rows"]]
    return parts


def _renamed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a result of the first schema with today's names of the modes."""
    if raw["schema"] != _FIRST_SCHEMA or not isinstance(raw.get("rows"), list):
        return raw
    rows = [
        {**row, "variant": _FIRST_MODES.get(row.get("variant", ""), row.get("variant"))}
        if isinstance(row, dict)
        else row
        for row in raw["rows"]
        if not (isinstance(row, dict) and row.get("variant") == _FIRST_LEFT_OUT)
    ]
    return {**raw, "rows": rows}


def _row(raw: dict[str, Any]) -> dict[str, Any]:
    row = dict(_texts(raw))
    # What a later workload says in words sets its rows apart; numbers are what was measured.
    row["more"] = tuple(
        f"{printable(name)} {text}"
        for name, text in sorted(row.items())
        if isinstance(text, str) and name not in _TEXTS_OF_MEASUREMENT
    )
    return row


def _texts(raw: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in raw.items():
        yield name, printable(value) if isinstance(value, str) else value
