# SPDX-License-Identifier: GPL-2.0-only
"""Checks `pagemint host` in a guest: it rebinds unused devices only, and restores everything."""

import ctypes
import mmap
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pagemint.guests.inside.checks import LIBC, Record, check, expect
from pagemint.guests.inside.devices import ALIGN, Device, Namespace, run, the_one
from pagemint.guests.inside.inventory import Existing

PAGEMINT = Path(sys.executable).with_name("pagemint")
LOADED = [Path("/sys/module", name) for name in ("pagemint", "pagemint_guest")]
PRIVATE = "128MiB"
MAP_FAILED = ctypes.c_void_p(-1).value
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def checks_of(headers: str) -> Iterator[Record]:
    """Run `pagemint host` on devices of a guest; `headers` are those of the guest's kernel."""
    run("rmmod", "pagemint_guest")  # `pagemint host` loads it itself
    made = Namespace("pfn", "map=dev")
    made.bind()
    disk = the_one("pmem*")
    fsdax = Existing(made.name)
    yield from check("list", _lists, fsdax)
    yield from check("mounted", _mounted, fsdax, disk)
    yield from check("swap", _swap, fsdax, disk)
    yield from check("open", _open, fsdax, disk)
    yield from check("fsdax", _times, "fsdax", headers, fsdax)
    yield from check("private", _times, "private", headers, None)
    Namespace("dax", "map=dev").bind()
    devdax = Existing(the_one("dax*.*").name)
    yield from check("mapped", _mapped, devdax)
    yield from check("devdax", _times, "devdax", headers, devdax)


def _as_it_was(device: Device) -> None:
    expect((device.driver / device.name).exists(), f"{device.name} is not bound")
    left = [path.name for path in LOADED if path.exists()]
    expect(not left, f"still loaded: {left}")


def _lists(device: Device) -> str:
    lines = run(PAGEMINT, "host").splitlines()
    entries = [line for line in lines if device.name in line and "free" in line]
    expect(len(entries) == 1, f"it does not list {device.name} as free: {lines}")
    _as_it_was(device)
    return " ".join(entries[0].split())


def _refuses(device: Device, why: str) -> str:
    try:
        run(PAGEMINT, "host", "--device", device.name, "--yes")
    except RuntimeError as error:
        message = str(error).partition("pagemint: ")[2]
    else:
        raise RuntimeError("it did not refuse")
    expect(why in message, f"it does not say why: {message}")
    _as_it_was(device)
    return message


def _mounted(device: Device, disk: Path) -> str:
    run("mkfs.ext4", "-q", "-F", disk, "64m")
    with tempfile.TemporaryDirectory() as directory:
        run("mount", disk, directory)
        try:
            return _refuses(device, f"mounted on {directory}")
        finally:
            run("umount", directory)


def _swap(device: Device, disk: Path) -> str:
    run("mkswap", disk)
    run("swapon", disk)
    try:
        return _refuses(device, "swap")
    finally:
        run("swapoff", disk)


def _open(device: Device, disk: Path) -> str:
    with disk.open("rb"):
        return _refuses(device, "open in process")


def _mapped(device: Device) -> str:
    # Python's own mapping would keep the file open.
    with Path("/dev", device.name).open("rb+", buffering=0) as file:
        both = mmap.PROT_READ | mmap.PROT_WRITE
        address = LIBC.mmap(None, ALIGN, both, mmap.MAP_SHARED, file.fileno(), 0)
    expect(address != MAP_FAILED, "it cannot be mapped")
    try:
        return _refuses(device, "mapped in process")
    finally:
        LIBC.munmap(address, ALIGN)


def _times(workload: str, headers: str, device: Device | None) -> str:
    # These modules take seconds to load in a guest, and the other checks do without them.
    from pagemint.results import reader

    which = ["--device", device.name] if device else ["--size", PRIVATE]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "host.json")
        argv = [*which, "--yes", "--rebinds", "2", "--headers", headers, "--no-report"]
        run(PAGEMINT, "host", *argv, "--json", file)
        result = reader.read(str(file))
    rows = {row.variant: row for row in result.rows if row.case.workload == workload}
    expect(set(rows) == {"base", "module", "module-off"}, f"it has rows of {sorted(rows)}")
    expect(len({row.hash for row in rows.values()}) == 1, "the memmaps differ")
    if device:
        _as_it_was(device)
    return f"{rows['base'].case.pages} pages"
