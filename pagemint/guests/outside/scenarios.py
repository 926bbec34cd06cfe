# SPDX-License-Identifier: GPL-2.0-only
"""Starts the program inside/scenarios.py, and reads its records."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pagemint.base import files, journal
from pagemint.base.errors import Failure
from pagemint.base.run import run
from pagemint.guests.inside.settings import Settings
from pagemint.guests.outside import arm64
from pagemint.trees import trees
from pagemint.trees.image import Kernel

Record = dict[str, Any]
"""A JSON object that the program wrote."""

_INSIDE = {trees.X86: (sys.executable, Path("/")), trees.ARM64: ("python3", arm64.HOST)}
"""The Python interpreter in a guest, and the directory with this machine's files there."""


def command(
    kernel: Kernel,
    names: str,
    rebinds: int,
    private: int,
    records: Path,
    *,
    directories: Mapping[str, Path] = {},
    bare: bool = False,
    device: str = "",
) -> list[str]:
    """Write the settings of inside/scenarios.py beside its records; return its command line.

    Args:
        kernel: the kernel that it runs on.
        names: scenarios, separated by commas.
        rebinds: number of rebinds in each mode.
        private: bytes of device-private memory.
        records: the file that it writes, by its path on this machine.
        directories: directories that only some scenarios need, by their names.
        bare: whether it runs on this machine, not in a guest.
        device: the device of this machine that it rebinds, if any.
    """
    python, host = _INSIDE[kernel.arch]

    def seen(path: Path) -> str:
        return str(host / str(path).lstrip("/"))

    settings = Settings(
        scenarios=names.split(","),
        rebinds=rebinds,
        private_size=private,
        # The mode of first binds is the last.
        series=sorted(kernel.modes, key="streaming".__eq__),
        output=seen(records),
        module=seen(kernel.module),
        folio_module=seen(kernel.folio_module),
        hmm_module=seen(kernel.hmm_module),
        filler=seen(kernel.filler) if kernel.filler else "",
        headers=seen(kernel.headers),
        directories={name: seen(path) for name, path in directories.items()},
        bare=bare,
        device=device,
    )
    file = records.with_name("settings")
    file.write_text(json.dumps(asdict(settings)))
    program = "pagemint.guests.inside.scenarios"
    return ["env", f"PYTHONPATH={seen(files.PACKAGE.parent)}", python, "-m", program, seen(file)]


def run_here(argv: Sequence[str], what: str, path: Path) -> list[Record]:
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
