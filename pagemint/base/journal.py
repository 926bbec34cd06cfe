# SPDX-License-Identifier: GPL-2.0-only
"""A file of JSON objects, one in each line, that outlives a process which is killed."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def read(file: Path) -> list[dict[str, Any]]:
    """Return the objects in a file, without one that is cut off; none if there is no file."""
    entries = []
    lines = file.read_text(errors="replace").splitlines(keepends=True) if file.exists() else []
    for line in lines:
        # Without its line feed, the last line is not written whole yet.
        if line.endswith("\n"):
            with suppress(json.JSONDecodeError):
                entries.append(json.loads(line))
    return entries


def add(file: Path, entry: Mapping[str, Any]) -> None:
    """Append an object to a file."""
    with file.open("ab+") as opened:
        opened.seek(0, 2)
        if opened.tell():
            opened.seek(-1, 2)
            if opened.read(1) != b"\n":
                opened.write(b"\n")  # ends a line that was cut off
        opened.write(json.dumps(entry).encode() + b"\n")
