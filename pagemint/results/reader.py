# SPDX-License-Identifier: GPL-2.0-only
"""Reads result files, and checks them strictly: a stranger may have sent them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from pagemint.base.errors import Failure
from pagemint.results.rows import SCHEMA, Result

_LARGEST = 16 << 20  # bytes of a file; a bench writes some 200 kB
_MOST_ROWS = 2000
_MOST_LIMITS = 2000
_MOST_COUNTED = 100_000  # functions in all operations together
_MOST_RUNS = 500_000  # in all rows and limits together
_LONGEST = 200  # characters of a text; the rest is cut off
_REMEDY = "make it again with pagemint bench, vm or host, and --json"


def read(file: str) -> Result:
    """Read a result file.

    Raises:
        Failure: it cannot be read, or is not a result.
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


def parse(text: bytes, name: str) -> Result:
    """Return the result in `text`; `name` is the file for messages.

    Raises:
        Failure: it is not a result.
    """
    try:
        raw = msgspec.json.decode(text)
        _check_schema(raw, name)
        result = msgspec.convert(_printable(raw), Result)
    except RecursionError as error:
        raise Failure(f"{name} is nested too deeply to be a result", _REMEDY) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not UTF-8 text", _REMEDY) from error
    except msgspec.MsgspecError as error:
        why = "it is empty" if not text.strip() else printable(str(error)).rstrip(".")
        raise Failure(f"{name} is not a result: {why}", _REMEDY) from error
    _check_amount(result, name)
    return replace(result, file=name)


def printable(text: str) -> str:
    """Return `text` without control characters and the like, cut to _LONGEST characters."""
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _check_schema(raw: object, name: str) -> None:
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        named = f"schema {printable(schema)!r}" if isinstance(schema, str) else "no schema"
        raise Failure(
            f"{name} has {named}, and this pagemint reads {SCHEMA!r}",
            "make it again, or use the pagemint that made it",
        )


def _check_amount(result: Result, name: str) -> None:
    """Check that the result is not empty, not too large, and has no row or operation twice."""
    parts = (result.rows, result.checks, result.counts, result.trees)
    if not any(parts[:3]):
        raise Failure(f"{name} has no rows, checks or counts", _REMEDY)
    if any(len(part) > _MOST_ROWS for part in parts):
        raise Failure(f"{name} has more than {_MOST_ROWS:,} rows, checks, counts or trees", _REMEDY)
    if sum(len(operation.functions) for operation in result.counts) > _MOST_COUNTED:
        raise Failure(f"{name} has more than {_MOST_COUNTED:,} counted functions", _REMEDY)
    if len({(operation.name, operation.tree) for operation in result.counts}) < len(result.counts):
        raise Failure(f"{name} has two counts of the same operation and tree", _REMEDY)
    if len(result.limits) > _MOST_LIMITS:
        raise Failure(f"{name} has more than {_MOST_LIMITS:,} limits", _REMEDY)
    runs = sum(
        len(times)
        for row in result.rows
        for times in (row.runs_ms, row.walk_ms, row.bind_ms, row.use_ms, row.unbind_ms)
    )
    if runs + sum(len(limit.runs_ms) for limit in result.limits) > _MOST_RUNS:
        raise Failure(f"{name} has more than {_MOST_RUNS:,} runs", _REMEDY)
    for row in result.rows:
        if any(part and len(part) != len(row.bind_ms) for part in (row.use_ms, row.unbind_ms)):
            raise Failure(
                f"{name} has a row whose binds, uses and unbinds differ in number", _REMEDY
            )
    if len({(row.case, row.variant) for row in result.rows}) < len(result.rows):
        raise Failure(f"{name} has two rows of the same workload and variant", _REMEDY)


def _printable(raw: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return `raw` with every text in it made printable."""
    if isinstance(raw, str):
        return printable(raw)
    if isinstance(raw, list):
        return [_printable(each) for each in raw]
    if isinstance(raw, dict):
        return {printable(key): _printable(value) for key, value in raw.items()}
    return raw
