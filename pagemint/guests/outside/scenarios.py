# SPDX-License-Identifier: GPL-2.0-only
"""Starts the program inside/scenarios.py, and reads its records."""

import sys
from pathlib import Path
from typing import Any

from pagemint.base import files, journal
from pagemint.base.errors import Failure
from pagemint.base.run import run
from pagemint.trees.image import Kernel

Record = dict[str, Any]
"""A JSON object that the program wrote."""


def command(
    kernel: Kernel,
    scenarios: str,
    rebinds: int,
    private: int,
    records: Path,
    python: str = sys.executable,
    host: Path = Path("/"),
) -> list[str | Path]:
    """Return the command line of inside/scenarios.py.

    Args:
        kernel: the kernel that it runs on.
        scenarios: names, separated by commas.
        rebinds: number of rebinds in each mode.
        private: bytes of device-private memory.
        records: the file that it writes, by its path on this machine.
        python: the interpreter.
        host: the directory in which the interpreter sees the files of this machine.
    """
    words: list[str | Path] = [
        *(python, "-m", "pagemint.guests.inside.scenarios", "--scenario", scenarios),
        *("--rebinds", str(rebinds), "--private-size", str(private)),
        *("--module", kernel.module, "--output", records),
        *("--folio-module", kernel.folio_module, "--hmm-module", kernel.hmm_module),
        *("--headers", kernel.headers),
        # The mode of first binds is the last.
        *("--modes", ",".join(sorted(kernel.modes, key="streaming".__eq__))),
    ]
    words += ["--stock-module", kernel.filler] if kernel.filler else []
    seen = [host / str(word).lstrip("/") if isinstance(word, Path) else word for word in words]
    return ["env", f"PYTHONPATH={host / str(files.PACKAGE.parent).lstrip('/')}", *seen]


def run_here(argv: list[str | Path], what: str, path: Path) -> list[Record]:
    """Run inside/scenarios.py on this machine, to its end, and return its records.

    Args:
        argv: the command line.
        what: the work, for messages.
        path: the file that it writes.

    Raises:
        Failure: the program recorded an error, or ended early.
    """
    ended = None
    try:
        run(argv, what=what)
    except Failure as failure:
        ended = failure
    records = journal.read(path)
    errors = [record["error"] for record in records if "error" in record]
    if errors:
        raise Failure(f"{what} failed: {'; '.join(errors)}", "see dmesg for the kernel's messages")
    if ended:
        raise ended
    return records
