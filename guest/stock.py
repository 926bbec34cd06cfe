# SPDX-License-Identifier: GPL-2.0-only
"""Checks of the module for stock kernels, built with FAULT=1: it fails as it should and unloads."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from checks import check, expect
from devices import Device, run

MODULE = Path("/sys/module/pagemint")
HASH = Path("/sys/kernel/debug/pagemint/hash")
HOOKED = Path("/sys/kernel/tracing/enabled_functions")
REFUSALS = {
    "function": "has no memmap_init_zone_device",
    "entry": "which ftrace cannot hook",
    "filter": "ftrace does not know",
    "hook": "ftrace does not hook",
    "registered": "",
}
"""What the parameter fault can be when the module is loaded, and what the log says then."""

Record = dict[str, Any]


def faults(module: str, cycles: int) -> Iterator[Record]:
    """Have the module fail, and load and unload it `cycles` times while a device is bound."""
    device = Device("pfn", "pmem")
    device.bind()
    wanted = HASH.read_text()

    def same() -> None:
        device.unbind()
        device.bind()
        expect(HASH.read_text() == wanted, "the memory map differs")

    for fault, says in REFUSALS.items():
        yield check(f"fails at {fault}", lambda f=fault, s=says: _refuses(module, f, s, same))
    yield check("taken", lambda: _taken(module, same))
    yield check("mismatch", lambda: _mismatch(module, same))
    yield check("unload in a bind", lambda: _unload_in_a_bind(module, device, same))
    yield check("loads and unloads", lambda: _cycles(module, cycles, device, same))


def _unhooked() -> None:
    expect(not MODULE.exists(), "the module is still there")
    lines = HOOKED.read_text().splitlines()
    left = [line for line in lines if re.match(r"memmap_init_zone_device .* I", line)]
    expect(not left, f"the hook is still there: {left}")


def _refuses(module: str, fault: str, says: str, same: Callable[[], None]) -> str:
    run("dmesg", "-C")
    try:
        run("insmod", module, f"fault={fault}")
    except RuntimeError as error:
        said = str(error)
    else:
        raise RuntimeError("the module was loaded")
    log = run("dmesg")
    expect(says in log, f"the log does not say why: {log}")
    _unhooked()
    same()
    return said


def _taken(module: str, same: Callable[[], None]) -> str:
    """Load the module a second time under another name, which takes the function as a livepatch."""
    second = module.replace("pagemint.ko", "pagemint_second.ko")
    run("insmod", second)
    try:
        said = _refuses(module, "", "is taken, by a livepatch", same)
    finally:
        run("rmmod", "pagemint_second")
    expect("busy" in said, f"it does not say that it is busy: {said}")
    return said


def _mismatch(module: str, same: Callable[[], None]) -> str:
    run("insmod", module, "fault=mismatch")
    same()
    counts = {
        name: int((MODULE / "parameters" / name).read_text())
        for name in ("calls", "pages_filled", "mismatches")
    }
    run("rmmod", "pagemint")
    expect(counts == {"calls": 1, "pages_filled": 0, "mismatches": 1}, f"it counted {counts}")
    return "left to the kernel's own code and counted"


def _unload_in_a_bind(module: str, device: Device, same: Callable[[], None]) -> str:
    run("insmod", module, "fault=slow")
    device.unbind()
    binding = threading.Thread(target=device.bind)
    binding.start()
    time.sleep(0.3)
    expect(binding.is_alive(), "the bind was over before the module was to unload")
    start = time.monotonic()
    run("rmmod", "pagemint")
    waited = time.monotonic() - start
    binding.join()
    _unhooked()
    expect(waited > 0.3, f"it did not wait for the bind: {waited:.2f} s")
    same()
    return f"waited {waited:.1f} s"


def _cycles(module: str, cycles: int, device: Device, same: Callable[[], None]) -> str:
    over = threading.Event()
    binds = 0

    def bind() -> None:
        nonlocal binds
        while not over.is_set():
            device.unbind()
            device.bind()
            binds += 1

    binding = threading.Thread(target=bind)
    binding.start()
    try:
        for _ in range(cycles):
            run("insmod", module)
            run("rmmod", "pagemint")
    finally:
        over.set()
        binding.join()
    _unhooked()
    expect(binds >= cycles // 20, f"there were only {binds} binds meanwhile")
    same()
    return f"{cycles} times, in {binds} binds"
