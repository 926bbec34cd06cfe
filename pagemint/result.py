# SPDX-License-Identifier: GPL-2.0-only
"""The result file: what every one says of the machine, and how it is written."""

import datetime
import errno
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from pagemint import __version__, build
from pagemint.errors import Failure
from pagemint.progress import note

SCHEMA = "pagemint/2"
"""The format of a result."""

Name = Annotated[str, Meta(min_length=1, max_length=80)]
"""What a workload, a variant or the like is called."""

Count = Annotated[int, Meta(ge=1, le=1 << 60)]
"""Bytes, pages, threads."""

Positive = Annotated[float, Meta(ge=1e-9, le=1e12)]
"""A time or a ratio; within these bounds no ratio of two overflows."""

Runs = Annotated[list[Positive], Meta(min_length=1, max_length=10_000)]
"""Milliseconds, one for each run."""


@dataclass(frozen=True)
class Row:
    """The runs of one variant of a workload; a field is what the result format says.

    Attributes:
        workload: its name.
        variant: base, or a mode of the patched tree.
        threads: how many of them could share the work; base and slow never do.
        device_bytes: size of the device.
        pages: struct pages that were asked for.
        runs_ms: memmap_init_zone_device() each time, in the order of the runs.
        median_ms: the median of them.
        ns_per_page: that, for each struct page.
        speedup: base over this.
        limit_ratio: the time at the fill limit over this; 1 is the limit, None is not known.
    """

    workload: Name
    variant: Name
    threads: Count
    device_bytes: Count
    pages: Count
    runs_ms: Runs
    median_ms: Positive
    ns_per_page: Positive
    speedup: Positive
    limit_ratio: Positive | None


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


def memory() -> dict[str, int]:
    """Return /proc/meminfo in bytes."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {name.rstrip(":"): int(value) * 1024 for name, value, *_ in fields}


def host() -> dict[str, Any]:
    """Return what a result says of the machine it was made on."""
    cpu = {
        key.strip(): value.strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        for key, _, value in [line.partition(":")]
    }
    return {
        "cpu": cpu.get("model name", "unknown"),
        "family_model_stepping": [
            int(cpu.get(key, 0)) for key in ("cpu family", "model", "stepping")
        ],
        "virtual": "hypervisor" in cpu.get("flags", "").split(),
        "cpus": os.cpu_count(),
        "memory_bytes": memory()["MemTotal"],
        "load_average": os.getloadavg()[0],
        # Without the local part, which can name whose kernel it is.
        "kernel": platform.release().partition("-")[0],
        "compiler": build.compiler(),
        "pagemint": __version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
