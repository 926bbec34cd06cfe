# SPDX-License-Identifier: GPL-2.0-only
"""Writes a result file completely, or not at all."""

import os
import statistics
import sys
from pathlib import Path
from typing import Any

import msgspec

from pagemint.base import disk
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.results.rows import Result
from pagemint.results.verdict import Judged, Line


def check_file(file: str | None) -> None:
    """Check before a long run that write() will be able to write its result to a file.

    Raises:
        Failure: the file cannot be written.
    """
    if not file or file == "-":
        return
    remedy = "name another file with --json"
    disk.check_directory(Path(file).parent, file, remedy)
    # write() renames a new file to this name, which would replace a device such as /dev/null.
    if Path(file).exists() and not Path(file).is_file():
        raise Failure(f"cannot write {file}: not a regular file", remedy)


def write(file: str | None, result: Result) -> None:
    """Write a result to a file, completely or not at all; - is standard output."""
    if not file:
        return
    data = _json(body(result))
    if file == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    target = Path(file)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    note(f"the result is in {file}")


def body(result: Result) -> dict[str, Any]:
    """Return the contents of a result file.

    median_ms, ns_per_page, gain and limit_share of a row are for other programs: pagemint's
    reader ignores them, and computes them again.
    """
    judged = Judged(result)
    contents: dict[str, Any] = {"schema": result.schema, **msgspec.to_builtins(result)}
    del contents["file"]
    for row, row_contents in zip(result.rows, contents["rows"], strict=True):
        row_contents |= _computed(judged.lines[row.case][row.variant])
    return contents


def _json(contents: dict[str, Any]) -> bytes:
    """Return contents as JSON: a line for each key, and in lists one for each object."""
    lines = []
    for key, value in contents.items():
        text = _line(value)
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            text = b"[\n%s\n ]" % b",\n".join(b"  %s" % _line(item) for item in value)
        lines.append(b" %s: %s" % (_line(key), text))
    return b"{\n%s\n}\n" % b",\n".join(lines)


def _line(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=0)


def _computed(line: Line) -> dict[str, Any]:
    median = statistics.median(line.row.runs_ms)
    gain = line.gain and {
        "paired": line.gain.paired.value,
        "low": line.gain.paired.low,
        "high": line.gain.paired.high,
        "fastest": line.gain.fastest,
    }
    return {
        "median_ms": median,
        "ns_per_page": median * 1e6 / line.row.case.pages,
        "gain": gain,
        "limit_share": line.limit_share,
    }
