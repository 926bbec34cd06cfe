# SPDX-License-Identifier: GPL-2.0-only
"""Writes a result file, whole or not at all."""

import errno
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.results.rows import SCHEMA


def check_writable(file: str | None) -> None:
    """Check, before there is anything to lose, that `write` will be able to write there.

    Raises:
        Failure: it will not.
    """
    if not file or file == "-":
        return
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=Path(file).parent):
            pass
        if Path(file).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as error:
        raise Failure(
            f"cannot write {file}: {error.strerror}", "name another file with --json"
        ) from error


def write(file: str | None, body: dict[str, Any]) -> None:
    """Write a result to a file, which is there whole or not at all; - is standard output."""
    if not file:
        return
    text = json.dumps({"schema": SCHEMA, **body}, indent=1) + "\n"
    if file == "-":
        sys.stdout.write(text)
        return
    target = Path(file)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_text(text)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    note(f"the result is in {file}")
