# SPDX-License-Identifier: GPL-2.0-only
"""Checks that the module for stock kernels, built with FAULT=1, fails and unloads as it should."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemint.guests.inside.checks import Record, check, expect
from pagemint.guests.inside.devices import LARGE_ALIGN, PROBE, Device, Namespace, PrivateMemory, run
from pagemint.guests.inside.modes import Modes, counted, counts
from pagemint.guests.inside.tracing import TRACE

MODULE = Path("/sys/module/pagemint")
LIVEPATCH = Path("/sys/kernel/livepatch/pagemint_livepatch")
FUNCTION = "memmap_init_zone_device"
PATIENCE = 60  # seconds for a livepatch to be on or off
REFUSALS = {
    "function": "cannot find memmap_init_zone_device",
    "entry": "which ftrace cannot hook",
    "filter": "ftrace does not know",
    "hook": "ftrace does not hook",
    "registered": "",
}
"""The values of the parameter `fault` that stop the load, and the text in the log for each."""


def stays_out(modes: Modes, count: int, size: int) -> Iterator[Record]:
    """Load the module on a kernel that is as fast by itself: it refuses, and fills if forced."""

    def refuses() -> str:
        error = _fails_to_load(modes.filler, "this kernel is as fast by itself")
        _unhooked()
        return error

    yield from check("stays out", refuses)
    yield from verified(modes, count, size, "force=1", large=False)


def verified(
    modes: Modes, count: int, size: int, *parameters: str, large: bool
) -> Iterator[Record]:
    """Bind devices of each kind `count` times, and have the module verify what it fills.

    Args:
        modes: knows the module.
        count: number of binds.
        size: bytes of device-private memory.
        parameters: further parameters of the module.
        large: whether to bind a device of compounds of 1 GiB instead.
    """
    kinds: dict[str, Callable[[], Device]] = {
        "fsdax": lambda: Namespace("pfn", "map=dev"),
        "fsdax-mem": lambda: Namespace("pfn", "map=mem"),
        "devdax": lambda: Namespace("dax", "map=dev"),
        "devdax-mem": lambda: Namespace("dax", "map=mem"),
        "private": lambda: PrivateMemory(size),
    }
    if large:
        kinds = {"devdax-1g": lambda: Namespace("dax", "map=dev", LARGE_ALIGN)}
    modes.choose("base")
    run("insmod", modes.filler, "verify=1", *parameters)
    for name, make in kinds.items():
        yield from check(name, _verified, make, count)
    run("rmmod", "pagemint")


def _verified(make: Callable[[], Device], count: int) -> str:
    device, before = make(), counts()
    for _ in range(count):
        device.bind()
        device.unbind()
    tally = counted(before)
    expect(tally["calls"] == count, f"there were {tally['calls']} calls")
    expect(tally["pages_filled"] > 0, "it filled nothing")
    expect(tally["pages_verified"] == tally["pages_filled"], f"it did not verify all: {tally}")
    expect(not tally["mismatches"] and not tally["differences"], f"pages differ: {tally}")
    return f"{tally['pages_verified']} pages in {count} binds"


def faults(modes: Modes, bench: str, cycles: int) -> Iterator[Record]:
    """Make the module fail, and load and unload it `cycles` times while a device is bound.

    For an fsdax device first, then for a devdax device.

    Args:
        modes: knows the module, which is built with FAULT=1.
        bench: pagemint_guest.ko, which is loaded and has a kretprobe on the function.
            pagemint_livepatch.ko is in the same directory.
        cycles: number of loads and unloads.
    """
    modes.choose("base")
    for kind, driver in (("fsdax", "pfn"), ("devdax", "dax")):
        for record in _faults(Namespace(driver, "map=dev"), modes.filler, bench, cycles):
            if "check" in record:
                record["check"] = f"{kind}: {record['check']}"
            yield record


def _faults(device: Device, module: str, bench: str, cycles: int) -> Iterator[Record]:
    device.bind()
    wanted = (PROBE / "hash").read_text()

    def same() -> None:
        before = (PROBE / "last").read_text()
        device.unbind()
        device.bind()
        expect((PROBE / "last").read_text() != before, "the kretprobe saw no call")
        expect((PROBE / "hash").read_text() == wanted, "the memmap differs")

    patch = Path(bench).with_name("pagemint_livepatch.ko")
    for fault, says in REFUSALS.items():
        yield from check(f"fails at {fault}", _refuses, module, fault, says, same)
    yield from check("livepatch first", _livepatch_first, module, patch, same)
    yield from check("livepatch second", _livepatch_second, module, patch, same)
    yield from check("traced before", _traced_before, module, same)
    yield from check("traced after", _traced_after, module, bench, same)
    yield from check("mismatch", _mismatch, module, same)
    yield from check("difference", _difference, module, same)
    yield from check("unload in a bind", _unload_in_a_bind, module, device, same)
    yield from check("loads and unloads", _cycles, module, cycles, device, same)


def _unhooked() -> None:
    expect(not MODULE.exists(), "the module is still there")
    lines = (TRACE / "enabled_functions").read_text().splitlines()
    left = [line for line in lines if re.match(rf"{FUNCTION} .* I", line)]
    expect(not left, f"the hook is still there: {left}")


def _refuses(module: str, fault: str, says: str, same: Callable[[], None]) -> str:
    error = _fails_to_load(module, says, f"fault={fault}")
    _unhooked()
    same()
    return error


def _fails_to_load(module: str | Path, says: str, *parameters: str) -> str:
    """Load a module that fails, with `says` in the log; return the error of insmod."""
    run("dmesg", "-C")
    try:
        run("insmod", module, *parameters)
    except RuntimeError as error:
        log = run("dmesg")
        expect(says in log, f"the log does not say why: {log}")
        return str(error).rpartition(": ")[2]
    raise RuntimeError("the module was loaded")


def _livepatch_first(module: str, patch: Path, same: Callable[[], None]) -> str:
    # Bind nothing meanwhile: under the livepatch the function does nothing.
    run("insmod", patch)
    try:
        _wait(lambda: (LIVEPATCH / "transition").read_text() == "0\n", "the livepatch is not on")
        error = _fails_to_load(module, "is taken, by a livepatch")
        expect("busy" in error, f"it does not say that it is busy: {error}")
        expect(not MODULE.exists(), "the module is still there")
    finally:
        (LIVEPATCH / "enabled").write_text("0")
        _wait(lambda: not LIVEPATCH.exists(), "the livepatch is still on")
        run("rmmod", "pagemint_livepatch")
    _unhooked()
    same()
    return error


def _livepatch_second(module: str, patch: Path, same: Callable[[], None]) -> str:
    run("insmod", module)
    error = _fails_to_load(patch, "failed to register ftrace handler")
    expect("busy" in error, f"it does not say that it is busy: {error}")
    return f"{error}; {_fills_and_goes(same)}"


def _wait(what: Callable[[], bool], else_: str) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        expect(time.monotonic() < until, else_)
        time.sleep(0.1)


def _fills_and_goes(same: Callable[[], None]) -> str:
    """Bind with the module, check that it filled pages, and unload it."""
    before = counts()
    same()
    filled = counted(before)["pages_filled"]
    run("rmmod", "pagemint")
    _unhooked()
    same()
    expect(filled > 0, "it filled nothing")
    return f"{filled} pages filled"


def _traced_before(module: str, same: Callable[[], None]) -> str:
    """Load and unload the module while function_graph and the kretprobe are on the function."""
    with _graphed():
        run("insmod", module)
        return f"{_fills_and_goes(same)}, {_seen()} calls traced"


def _traced_after(module: str, bench: str, same: Callable[[], None]) -> str:
    """Trace the function with function_graph and the kretprobe only while the module is loaded."""
    run("rmmod", "pagemint_guest")
    run("insmod", module)
    run("insmod", bench)
    # Bind again: the probe knows nothing of binds before its load.
    with _graphed():
        same()
        seen = _seen()
    return f"{_fills_and_goes(same)}, {seen} calls traced"


@contextmanager
def _graphed() -> Iterator[None]:
    (TRACE / "set_ftrace_filter").write_text(FUNCTION)
    (TRACE / "current_tracer").write_text("function_graph")
    try:
        yield
    finally:
        (TRACE / "current_tracer").write_text("nop")
        (TRACE / "set_ftrace_filter").write_text("")


def _seen() -> int:
    """Return how many calls function_graph traced, with or without nested calls."""
    seen = len(re.findall(rf"{FUNCTION}\(\)", (TRACE / "trace").read_text()))
    expect(seen > 0, "function_graph saw no call")
    return seen


def _mismatch(module: str, same: Callable[[], None]) -> str:
    run("insmod", module, "fault=mismatch")
    same()
    tally = counts()
    run("rmmod", "pagemint")
    wanted = {"calls": 1, "pages_filled": 0, "mismatches": 1}
    expect(wanted.items() <= tally.items(), f"it counted {tally}")
    return "left to the kernel's own code and counted"


def _difference(module: str, same: Callable[[], None]) -> str:
    run("insmod", module, "fault=differ", "verify=1")
    same()
    tally = counts()
    run("rmmod", "pagemint")
    expect(tally["differences"] > 0, "the verification saw no difference")
    expect(tally["pages_verified"] == tally["pages_filled"], f"it did not verify all: {tally}")
    return f"{tally['differences']} of {tally['pages_verified']} pages"


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
