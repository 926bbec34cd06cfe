# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint host`: times binds on the running machine, with and without the module."""

import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pagemint.base import cache, machine
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.request import option
from pagemint.base.sizes import format_size, parse_size
from pagemint.commands import options
from pagemint.guests.inside import inventory
from pagemint.guests.inside.inventory import Bound
from pagemint.guests.outside import binds, scenarios
from pagemint.results import rows
from pagemint.trees import stock
from pagemint.trees.image import Kernel
from pagemint.words import SECTION_BYTES

_MODULES = ("pagemint", "pagemint_guest")
_NEEDED = ("Module.symvers", ".config", "Makefile")  # of headers


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint host`."""

    device: str | None = option(None, "rebind this device; without it, none is touched", "NAME")
    size: str | None = option(
        None, "size of device-private memory, without --device (16GB)", "SIZE"
    )
    yes: bool = option(False, "load the modules and time; else nothing is changed")
    rebinds: int = option(30, "rebinds in each mode (30)", "N")
    headers: Path | None = option(None, "the kernel's headers (/lib/modules/RELEASE/build)", "DIR")
    output: options.Output


def main(request: Request) -> int:
    """Run `pagemint host`."""
    if platform.machine() != "x86_64":
        raise Failure(f"this machine is {platform.machine()}", "run this on x86-64")
    options.check_number("--rebinds", request.rebinds, 2, rows.MOST_RUNS)
    if request.device and request.size:
        raise Failure("--size is for private memory", "leave out --size, or --device")
    with step("looking for users of the devices"):
        devices = inventory.bound()
    chosen = inventory.choose(devices, request.device) if request.device else None
    if chosen and not request.yes:
        raise Failure(
            f"{chosen.name} would be taken from its driver {3 * request.rebinds} times",
            "give --yes if nobody needs it meanwhile",
        )
    if not request.yes:
        _print_devices(devices)
        return 0
    size = chosen.size if chosen else _private_size(request.size or "16GB")

    if os.geteuid():
        raise Failure("only root can load the modules", "run it as root")
    for name in _MODULES:
        if (inventory.ROOT / "sys/module" / name).exists():
            raise Failure(f"the module {name} is loaded already", f"unload it first: rmmod {name}")
    request.output.check()
    headers = request.headers or Path("/lib/modules", platform.release(), "build")
    kernel = _kernel(headers)
    what = f"timing {request.device or f'{format_size(size)} of private memory'}"
    scenario = "existing" if chosen else "private"
    with tempfile.TemporaryDirectory(prefix="pagemint-host-") as directory:
        file = Path(directory) / "records"
        command = scenarios.command(
            kernel, scenario, request.rebinds, size, file, bare=True, device=request.device or ""
        )
        with step(what):
            records = scenarios.run_here(command, what, file)
    # The workload has the name of the scenario that does the same in a guest.
    workload = chosen.kind if chosen else "private"
    records = [{**record, "scenario": workload} for record in records if "mode" in record]
    timings = binds.rows_of(workload, {kernel.variant: records}, size)

    about = machine.about()
    result = rows.Result(
        rows.Machine(**about, times_comparable="TCG" not in about["cpu"]),
        rows.Kernel(
            about["kernel"],
            cache.digest(headers / "Module.symvers"),
            cache.digest(headers / ".config"),
        ),
        timings,
    )
    request.output.finish(result)
    return max(binds.same_hashes(timings), binds.judge_counts(records))


def _private_size(text: str) -> int:
    """Return the bytes of private memory, rounded down to whole sections."""
    size = parse_size(text) // SECTION_BYTES * SECTION_BYTES
    if not size:
        raise Failure(f"{text} of private memory is too little", "give at least 128MiB")
    # Limits of cgroups do not count memmaps.
    free = machine.memory()["MemAvailable"]
    if size // 64 > free // 2:
        raise Failure(
            f"the memmap of {text} takes {format_size(size // 64)}, "
            f"and {format_size(free)} of memory are free",
            f"give --size {free * 32 // 10**9}GB or less",
        )
    return size


def _kernel(headers: Path) -> Kernel:
    """Return the running kernel, with modules for it.

    Raises:
        Failure: its headers are missing, or a module does not build.
    """
    release = platform.release()
    if not all((headers / name).exists() for name in _NEEDED):
        raise Failure(
            f"{headers} has no headers of the running kernel",
            "install the package with the headers of this kernel, or name them with --headers",
        )
    bench, filler = stock.modules(headers, f"Linux {release}")
    return Kernel("stock", headers, bench, filler)


def _print_devices(devices: list[Bound]) -> None:
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
