# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint vm`: binds and rebinds real devices on real kernels, before and after."""

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pagemint import build, result, series, vmkernel
from pagemint.errors import Failure
from pagemint.measure import MODES
from pagemint.progress import note, step
from pagemint.result import Row
from pagemint.run import run
from pagemint.sizes import format_size, parse_size
from pagemint.vmkernel import Kernel

SCENARIOS = {
    "fsdax": ("fsdax",),
    "devdax": ("devdax", "devdax-mem"),
    "private": ("private",),
}
"""What --scenario takes, and what each of it is in guest/scenarios.py."""

_LOW = 4 << 30  # bytes of guest memory below the device, and where the device starts
_GUEST_RAM = 1_500_000_000  # bytes that a guest touches beside memory maps
_SMALLEST = 1 << 27  # bytes of a device: one section
_PRIVATE_MOST = 64_000_000_000  # bytes of device-private memory
_PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "ndctl": "ndctl"}
_TROUBLE = re.compile(
    r"WARNING: |BUG: |Oops|Kernel panic|general protection|KASAN|possible .* lock"
    r"|suspicious RCU|blocked for more than|stalls? on CPU|new suspected memory leaks"
    r"|^ *not ok \d"
)


@dataclass(frozen=True)
class GuestRow(Row):
    """A row of a guest: runs_ms are the rebinds, the speed-up is that of the medians.

    Attributes:
        bind_ms: the whole bind, each time.
        first_bind_ms: making the namespace with ndctl, its first bind among that; None if it
            was in another mode.
        first_init_ms: the memory map's share of it.
        hash: over the struct pages that were left.
    """

    bind_ms: list[float]
    first_bind_ms: float | None
    first_init_ms: float | None
    hash: str


@dataclass(frozen=True)
class Guest:
    """How guests are run.

    Attributes:
        accel: kvm or tcg.
        device: bytes of the emulated pmem.
        limit: seconds that a guest may take.
    """

    accel: str
    device: int
    limit: float

    def run(self, kernel: Kernel, arguments: list[str]) -> tuple[list[dict[str, Any]], str]:
        """Boot `kernel`, run guest/scenarios.py in it, and return its records and the console.

        Raises:
            Failure: the guest hangs, panics, or ends without a result; shows the end of the
                console. What it says stays in a directory that the message names.
        """
        shared = Path(tempfile.mkdtemp(prefix="pagemint-vm-"))
        records, console = shared / "records", shared / "console"
        command = [sys.executable, str(vmkernel.GUEST / "scenarios.py"), *arguments]
        command += ["--module", str(kernel.module), "--output", str(records)]
        memory = _LOW + self.device + (2 << 30)
        machine = f"-machine memory-backend=mem0 -object memory-backend-ram,id=mem0,size={memory}"
        argv: list[str | Path] = [
            *("vng", "-r", kernel.image, "--force-9p", "--verbose", "--cpus", "2"),
            *(["--disable-kvm"] if self.accel == "tcg" else []),
            *("--memory", f"{memory >> 20}M", f"--qemu-opts={machine},reserve=off"),
            *("--append", f"memmap={self.device >> 20}M!{_LOW >> 20}M nokaslr panic=-1"),
            *(f"--rwdir={shared}", "--", shlex.join(command)),
        ]
        what = f"the guest with the {kernel.variant} kernel"
        ended = ""
        try:
            run(argv, env=_vng_environment(), log=console, limit=self.limit, what=what)
        except Failure as failure:
            # Of vng's status nothing follows: the guest itself says whether it came to its end.
            ended = failure.message
        lines = records.read_text().splitlines() if records.exists() else []
        said = [json.loads(line) for line in lines if line.endswith("}")]
        text = console.read_text()
        errors = [record["error"] for record in said if "error" in record]
        trouble = [line for line in text.splitlines() if _TROUBLE.search(line)]
        if errors or trouble or not said or "done" not in said[-1]:
            why = (errors + trouble + [ended or "it ended without a result"])[0]
            raise _guest_failure(what, why, shared)
        shutil.rmtree(shared)
        return said[:-1], text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint vm`."""
    series.add_source_arguments(parser)
    parser.add_argument(
        "--size", metavar="SIZE", help="of the device (100GB with KVM, 4GB without, or what fits)"
    )
    parser.add_argument(
        "--scenario",
        default=",".join(SCENARIOS),
        metavar="S,...",
        help=f"what to run (all of {', '.join(SCENARIOS)})",
    )
    parser.add_argument("--rebinds", type=int, default=30, metavar="N", help="of each mode (30)")
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"))
    parser.add_argument("--limit", type=float, default=3600, metavar="S", help="seconds a guest")
    parser.add_argument("--json", metavar="FILE", help="write the result there")


def main(args: argparse.Namespace) -> int:
    """Run `pagemint vm`."""
    names = list(dict.fromkeys(args.scenario.split(",")))
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise Failure(f"there is no scenario {unknown[0]!r}", f"choose from {', '.join(SCENARIOS)}")
    if args.rebinds < 2:
        raise Failure(f"--rebinds {args.rebinds} is too few", "give 2 or more")
    if args.limit <= 0:
        raise Failure(f"--limit {args.limit} leaves a guest no time", "give seconds above 0")
    size = parse_size(args.size) if args.size else None
    if size and size < _SMALLEST:
        raise Failure(f"a device of {args.size} is too small", "give at least 128MiB")
    if args.accel == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Failure("/dev/kvm cannot be used", "load the kvm module, or use --accel tcg")
    missing = [package for program, package in _PROGRAMS.items() if not shutil.which(program)]
    if missing:
        raise Failure("programs are missing", f"install them: apt-get install {' '.join(missing)}")
    result.check_writable(args.json)
    if size:
        _check_memory(size)

    found = series.source_for(args.kernel, args.ksrc)
    pair = build.trees(found)
    kernels = [vmkernel.kernel(tree, ("vm",)) for tree in pair]
    accel = _accel(args.accel, kernels[0])
    if size is None:
        size = _fitting_size(100_000_000_000 if accel == "kvm" else 4_000_000_000)
    # Whole sections, so that nothing is cut off.
    device = size // _SMALLEST * _SMALLEST
    guest = Guest(accel, device, args.limit)
    inner = [inner for name in names for inner in SCENARIOS[name]]
    arguments = ["--scenario", ",".join(inner), "--rebinds", str(args.rebinds)]
    private = min(device, _PRIVATE_MOST >> 27 << 27)
    arguments += ["--private-size", str(private)]
    records: dict[str, list[dict[str, Any]]] = {}
    for kernel in kernels:
        with step(f"running the {kernel.variant} kernel in a guest ({accel})"):
            records[kernel.variant], _ = guest.run(kernel, arguments)

    rows = [
        row
        for name in inner
        for row in _rows(name, records, private if name == "private" else device)
    ]
    _print_table(rows, accel, Console(stderr=args.json == "-"))
    body = {
        "host": {**result.host(), "accel": accel, "times_comparable": accel == "kvm"},
        "kernel": {"version": found.version, "source": pair[0].key, "config": "vm"},
        "limit": {"fill_bytes_per_s": None, "copy_bytes_per_s": None},
        "rows": [asdict(row) for row in rows],
    }
    result.write(args.json, body)
    return _same_hashes(rows)


def _rows(name: str, records: dict[str, list[dict[str, Any]]], device: int) -> list[GuestRow]:
    rows: list[GuestRow] = []
    for kernel in ("base", "patched"):
        mine = [record for record in records[kernel] if record["scenario"] == name]
        for mode in ("base", *MODES):
            again = [r for r in mine if r["mode"] == mode and "first" not in r]
            if not again:
                continue
            first = [r for r in mine if r["mode"] == mode and "first" in r]
            init = [record["init_ns"] / 1e6 for record in again]
            hashes = {record["hash"] for record in again if "hash" in record}
            median = statistics.median(init)
            rows.append(
                GuestRow(
                    workload=name,
                    variant=mode,
                    threads=1,
                    device_bytes=device,
                    pages=again[0]["pages"],
                    runs_ms=init,
                    median_ms=median,
                    ns_per_page=median * 1e6 / again[0]["pages"],
                    speedup=rows[0].median_ms / median if rows else 1.0,
                    limit_ratio=None,
                    bind_ms=[record["bind_ns"] / 1e6 for record in again],
                    first_bind_ms=first[0]["bind_ns"] / 1e6 if first else None,
                    first_init_ms=first[0]["init_ns"] / 1e6 if first else None,
                    hash=" ".join(sorted(hashes)),
                )
            )
    return rows


def _same_hashes(rows: list[GuestRow]) -> int:
    """Say whether every variant of a scenario left the same memory map; the exit status."""
    status = 0
    for name in dict.fromkeys(row.workload for row in rows):
        hashes = {row.hash for row in rows if row.workload == name}
        same = len(hashes) == 1 and re.fullmatch("[0-9a-f]+", next(iter(hashes)))
        if not same:
            note(f"pagemint: {name}: the memory maps differ; see the hashes in the result")
            status = 1
    if not status:
        note("every variant left the same memory map")
    return status


def _check_memory(size: int) -> None:
    needed = _needed(size)
    free = result.memory()["MemAvailable"]
    if needed > free:
        raise Failure(
            f"a device of {format_size(size)} takes {format_size(needed)} of this machine's "
            f"memory, of which {format_size(free)} are free",
            f"give --size {_fitting_size(size) // 10**9}GB or less",
        )


def _needed(size: int) -> int:
    """Return the bytes of host memory that a guest with such a device touches."""
    return _GUEST_RAM + size // 64 + min(size, _PRIVATE_MOST) // 64


def _fitting_size(wanted: int) -> int:
    """Return the largest size up to `wanted` that this machine can hold."""
    free = result.memory()["MemAvailable"] * 0.9
    while _needed(wanted) > free and wanted > _SMALLEST:
        wanted //= 2
    if _needed(wanted) > free:
        raise Failure(
            f"a guest takes {format_size(_needed(_SMALLEST))} of memory, "
            f"and {format_size(int(free))} are free",
            "end some programs, or use a larger machine",
        )
    return wanted


def _accel(asked: str, kernel: Kernel) -> str:
    """Return kvm where a guest boots under it, else tcg: /dev/kvm can be there and not work."""
    if asked == "tcg":
        return asked
    works = False
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        argv: list[str | Path] = ["vng", "-r", kernel.image, "--force-9p", "--", "true"]
        try:
            with step("trying KVM"):
                run(argv, env=_vng_environment(), limit=60, what="a guest under KVM")
            works = True
        except Failure:
            note("a guest does not boot under KVM here; emulation is used instead")
    if asked == "kvm" and not works:
        raise Failure("KVM does not work on this machine", "use --accel tcg, for correctness only")
    return "kvm" if works else "tcg"


def _vng_environment() -> dict[str, str]:
    """Return this environment with vng, which looks for its own helpers, on the path."""
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def _guest_failure(what: str, why: str, shared: Path) -> Failure:
    console = shared / "console"
    tail = console.read_text().splitlines()[-12:] if console.exists() else []
    for line in tail:
        note(f"  | {line}")
    why = why.removeprefix(f"{what} failed: ").removeprefix(f"{what} ")
    return Failure(f"{what} failed: {why}", f"its whole console log is {console}")


def _print_table(rows: list[GuestRow], accel: str, console: Console) -> None:
    table = Table(
        title=f"Memory map of a {format_size(rows[0].device_bytes)} device in a guest ({accel})",
        caption=None if accel == "kvm" else "emulated: the times cannot be compared",
    )
    for name in ("scenario", "variant"):
        table.add_column(name, no_wrap=True)
    for name in ("first bind", "bind ms", "memmap ms", "spread", "speed-up"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(
            row.workload,
            row.variant,
            "" if row.first_bind_ms is None else f"{row.first_bind_ms:.0f}",
            f"{statistics.median(row.bind_ms):.2f}",
            f"{row.median_ms:.2f}",
            f"{min(row.runs_ms):.1f}-{max(row.runs_ms):.1f}",
            f"{row.speedup:.2f}x" if accel == "kvm" else "-",
            end_section=number + 1 == len(rows) or rows[number + 1].workload != row.workload,
        )
    console.print(table)
