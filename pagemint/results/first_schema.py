# SPDX-License-Identifier: GPL-2.0-only
"""Reads schema pagemint/1, which had other names for the modes and flat rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from pagemint.base.errors import Failure
from pagemint.base.sizes import parse_size
from pagemint.results import rows
from pagemint.results.rows import Count, Name, Parts, Positive, Runs, Size, Word
from pagemint.words import PAGE

SCHEMA = "pagemint/1"
"""The format that this module reads."""

_MODES = {"template": "cached", "fill": "streaming", "streaming": "published"}
_LEFT_OUT = "auto"  # a mode that no longer exists
_SINGLE = ("base", "slow")  # never shared among threads, and repeated for each thread count
_PLAIN_LOOP = "plain loop"
_PLAIN_LOOPS = (_PLAIN_LOOP, f"{_PLAIN_LOOP} and read")


@dataclass(frozen=True)
class _Row:
    workload: Name
    variant: Name
    threads: Count
    device_bytes: Count
    pages: Count
    runs_ms: Runs
    returns: Word = ""
    block: Word = ""
    function: Word = ""
    cpu_class: Word = ""
    folio_bytes: Size = 0
    walk_ms: Parts = field(default_factory=list)
    bind_ms: Parts = field(default_factory=list)
    first_ms: Positive | None = None
    first_bind_ms: Positive | None = None
    hash: Word = ""


@dataclass(frozen=True)
class _FillLoop:
    loop: Name
    device_bytes: Count
    runs_ms: Runs
    returns: Word = ""
    threads: Count = 1


@dataclass(frozen=True)
class _CopyLoop:
    """The name of the best loop. Its runs are in the row with that function and variant."""

    function: Name
    variant: Name
    folio_bytes: Count
    loop: Name


@dataclass(frozen=True)
class _Limit:
    fill_loops: list[_FillLoop] = field(default_factory=list)
    copy_loops: list[_CopyLoop] = field(default_factory=list)


@dataclass(frozen=True)
class _Check:
    scenario: Name
    kernel: Name
    name: Name
    outcome: Literal["pass", "fail", "skip"]
    said: str
    must_pass: bool


@dataclass(frozen=True)
class _Body:
    host: rows.Machine
    kernel: rows.Kernel
    rows: list[_Row]
    limit: _Limit = field(default_factory=_Limit)
    checks: list[_Check] = field(default_factory=list)


def convert(raw: dict[str, Any]) -> rows.Result:
    """Convert a result of this schema to today's.

    Raises:
        msgspec.ValidationError: `raw` is not a result of this schema.
    """
    body = msgspec.convert(raw, _Body)
    return rows.Result(
        host=body.host,
        kernel=body.kernel,
        rows=_without_repetitions(_row(row) for row in body.rows if _is_kept(row)),
        limits=[*map(_fill_limit, body.limit.fill_loops), *_copy_limits(body)],
        checks=[_check(check) for check in body.checks],
        schema=SCHEMA,
    )


def _is_kept(row: _Row) -> bool:
    return row.variant != _LEFT_OUT and row.function not in _PLAIN_LOOPS


def _row(row: _Row) -> rows.Row:
    tree, mode = _tree_and_mode(row.variant)
    case = rows.Case(
        workload=row.workload,
        device_bytes=row.device_bytes,
        pages=row.pages,
        threads=1 if row.variant in _SINGLE else row.threads,
        returns=row.returns,
        block_bytes=_bytes(row.block) if row.block else 0,
        function=row.function,
        cpu_class=row.cpu_class,
        folio_bytes=row.folio_bytes,
    )
    return rows.Row(
        case=case,
        tree=tree,
        mode=mode,
        runs_ms=row.runs_ms,
        walk_ms=row.walk_ms,
        bind_ms=row.bind_ms,
        first_ms=row.first_ms,
        first_bind_ms=row.first_bind_ms,
        hash=row.hash,
    )


def _tree_and_mode(variant: str) -> tuple[str, str]:
    if variant in ("base", "patched"):
        return variant, ""
    if variant in ("module", "module-off"):
        return "stock", variant
    return "patched", _MODES.get(variant, variant)


def _bytes(text: str) -> int:
    try:
        return parse_size(text)
    except Failure as failure:
        raise msgspec.ValidationError(failure.message) from failure


def _without_repetitions(found: Iterable[rows.Row]) -> list[rows.Row]:
    """Return each row once: this schema repeats the runs of base for each thread count."""
    kept: list[rows.Row] = []
    runs: dict[tuple[rows.Case, str], list[float]] = {}
    for row in found:
        key = (row.case, row.variant)
        if row.variant not in _SINGLE or runs.get(key) != row.runs_ms:
            kept.append(row)
        runs[key] = row.runs_ms
    return kept


def _fill_limit(loop: _FillLoop) -> rows.Limit:
    return rows.Limit(
        kind="fill",
        loop=loop.loop,
        device_bytes=loop.device_bytes,
        pages=max(1, loop.device_bytes // PAGE),
        runs_ms=loop.runs_ms,
        threads=loop.threads,
        returns=loop.returns,
    )


def _copy_limits(body: _Body) -> Iterator[rows.Limit]:
    """Yield the best plain loops through the cache, whose runs this schema has among the rows."""
    names = {
        loop.folio_bytes: loop.loop
        for loop in body.limit.copy_loops
        if (loop.function, loop.variant) == (_PLAIN_LOOP, "cached")
    }
    for row in body.rows:
        if (row.function, row.variant) == (_PLAIN_LOOP, "cached"):
            yield rows.Limit(
                kind="copy",
                loop=names.get(row.folio_bytes, _PLAIN_LOOP),
                device_bytes=row.device_bytes,
                pages=row.pages,
                runs_ms=row.runs_ms,
                threads=row.threads,
                returns=row.returns,
                folio_bytes=row.folio_bytes,
            )


def _check(check: _Check) -> rows.Check:
    return rows.Check(
        scenario=check.scenario,
        tree=check.kernel,
        name=check.name,
        outcome=check.outcome,
        said=check.said,
        must_pass=check.must_pass,
    )
