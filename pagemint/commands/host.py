# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint host`: times binds on the running machine, with and without the module."""

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pagemint.base import cache, files, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.run import run
from pagemint.base.sizes import format_size, parse_size
from pagemint.commands import options
from pagemint.guests import binds
from pagemint.guests.guest import Record, read_records, scenarios_command
from pagemint.kernels import stock
from pagemint.kernels.image import Kernel
from pagemint.report.write import after_run
from pagemint.results import writer

ROOT = Path("/")
"""Where sys, proc and dev are."""

_MODULES = ("pagemint", "pagemint_guest")
_SECTION = 1 << 27  # bytes: what private memory is a multiple of
_NEEDED = ("Module.symvers", ".config", "Makefile")  # of headers


@dataclass(frozen=True)
class Device:
    """A device of this machine, as guest/inventory.py has it."""

    name: str
    kind: str
    size: int
    in_use: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint host`."""
    parser.add_argument(
        "--device", metavar="NAME", help="rebind this one; without it, none is touched"
    )
    parser.add_argument(
        "--size", metavar="SIZE", help="of the device-private memory, without --device (16GB)"
    )
    parser.add_argument("--yes", action="store_true", help="do it; without it, nothing is changed")
    parser.add_argument("--rebinds", type=int, default=30, metavar="N", help="of each mode (30)")
    parser.add_argument(
        "--headers", metavar="DIR", help="of the running kernel (/lib/modules/RELEASE/build)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write the result there; - for standard output"
    )
    options.add_run_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint host`."""
    if platform.machine() != "x86_64":
        raise Failure(f"this machine is {platform.machine()}", "run this on x86-64")
    if args.rebinds < 2:
        raise Failure(f"--rebinds {args.rebinds} is too few", "give 2 or more")
    if args.device and args.size:
        raise Failure("--size is for private memory", "leave out --size, or --device")
    devices = _devices()
    chosen = _chosen(devices, args.device) if args.device else None
    if chosen and not args.yes:
        raise Failure(
            f"{chosen.name} would be taken from its driver {3 * args.rebinds} times",
            "give --yes if nobody is to use it meanwhile",
        )
    if not args.yes:
        _print_devices(devices)
        return 0
    workload, scenario = (chosen.kind, "existing") if chosen else ("private", "private")
    size = chosen.size if chosen else _private_size(args.size or "16GB")

    _check_root()
    writer.check_writable(args.json)
    headers = Path(args.headers or f"/lib/modules/{platform.release()}/build")
    kernel = _kernel(headers)
    with tempfile.TemporaryDirectory(prefix="pagemint-host-") as directory:
        records = Path(directory) / "records"
        command = scenarios_command(kernel, scenario, args.rebinds, size, records)
        command += ["--host", *(["--device", args.device] if args.device else [])]
        what = f"timing {args.device or f'{format_size(size)} of private memory'}"
        with step(what):
            said = _run(command, what, records)
    # What compares it with the same in a guest is its kind, not its name.
    said = [{**record, "scenario": workload} for record in said if "mode" in record]
    rows = binds.rows_of(workload, {kernel.variant: said}, size)

    about = machine.about()
    emulated = "TCG" in about["cpu"]
    where = f"of {args.device}" if args.device else "of private memory"
    binds.print_tables(rows, where, emulated, Console(stderr=args.json == "-"))
    body = {
        "host": {**about, "times_comparable": not emulated},
        "kernel": {
            "version": about["kernel"],
            "source": cache.digest(headers / "Module.symvers"),
            "config": cache.digest(headers / ".config"),
        },
        "limit": {"fill_bytes_per_s": None, "copy_bytes_per_s": None},
        "rows": [asdict(row) for row in rows],
    }
    writer.write(args.json, body)
    after_run(args, body)
    return max(binds.same_hashes(rows), binds.judge_counts(said))


def _devices() -> list[Device]:
    argv: list[str | Path] = [sys.executable, files.GUEST / "inventory.py", "--root", ROOT]
    lines = run(argv, what="looking for devices").splitlines()
    return [Device(**json.loads(line)) for line in lines]


def _chosen(devices: list[Device], name: str) -> Device:
    """Return the device of that name.

    Raises:
        Failure: there is none, or it is in use.
    """
    free = [device.name for device in devices if not device.in_use]
    other = f"choose from {', '.join(free)}" if free else "leave --device out for private memory"
    for device in devices:
        if device.name == name:
            if device.in_use:
                raise Failure(f"{name} is {device.in_use}", f"end that, or {other}")
            return device
    raise Failure(f"{name} is no fsdax or devdax device that is bound to its driver", other)


def _private_size(text: str) -> int:
    """Return the bytes of private memory, of whole sections."""
    size = parse_size(text) // _SECTION * _SECTION
    if not size:
        raise Failure(f"{text} of private memory are too little", "give at least 128MiB")
    free = machine.memory()["MemAvailable"]
    if size // 64 > free // 2:
        raise Failure(
            f"the memory map of {text} takes {format_size(size // 64)}, "
            f"and {format_size(free)} of memory are free",
            f"give --size {free * 32 // 10**9}GB or less",
        )
    return size


def _check_root() -> None:
    if os.geteuid():
        raise Failure("only root can load the modules", "run it as root")
    for name in _MODULES:
        if (ROOT / "sys/module" / name).exists():
            raise Failure(f"the module {name} is loaded already", f"unload it first: rmmod {name}")


def _kernel(headers: Path) -> Kernel:
    """Return the running kernel, with modules for it.

    Raises:
        Failure: its headers are missing, or a module does not build.
    """
    release = platform.release()
    if not all((headers / name).exists() for name in _NEEDED):
        raise Failure(
            f"{headers} has no headers of the running kernel",
            f"install them (apt-get install linux-headers-{release}), or name them with --headers",
        )
    bench, filler = stock.modules(headers, f"Linux {release}")
    return Kernel("stock", headers, bench, filler)


def _run(command: list[str | Path], what: str, records: Path) -> list[Record]:
    """Run guest/scenarios.py to its end and return its records.

    Raises:
        Failure: it found an error, or came to none.
    """
    ended = None
    try:
        run(command, what=what)
    except Failure as failure:
        ended = failure
    said = read_records(records)
    errors = [record["error"] for record in said if "error" in record]
    if errors:
        raise Failure(f"{what} failed: {errors[0]}", "see dmesg for what the kernel says of it")
    if ended:
        raise ended
    return said


def _print_devices(devices: list[Device]) -> None:
    console = Console()
    if devices:
        table = Table("device", "kind", "size", "state")
        for device in devices:
            state = device.in_use or "free"
            table.add_row(device.name, device.kind, format_size(device.size), state)
        console.print(table)
    else:
        console.print("This machine has no fsdax or devdax device that is bound to its driver.")
    if os.geteuid():
        note("only root sees what other users' processes have open")
    note("nothing was changed; --yes loads two modules and times private memory,")
    note("--device NAME --yes takes that device from its driver and gives it back, again and again")
