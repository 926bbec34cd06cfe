# SPDX-License-Identifier: GPL-2.0-only
"""Counts the work of operations on device memory, in emulated guests with both kernels."""

import itertools
import re
import shlex
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pagemint.base import cache
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.run import run as run_program
from pagemint.base.sizes import format_power
from pagemint.guests.count import plugin as count_plugin
from pagemint.guests.outside import x86
from pagemint.guests.outside.guest import Guest, complaints
from pagemint.results.counted import BOOT, PERIOD, WAITS
from pagemint.results.rows import Counts, Operation
from pagemint.trees.image import Kernel
from pagemint.trees.stock import StockKernel
from pagemint.words import PATCHED

FRAGMENTS = ("vm", "use", "count")
"""The files of pagemint/guests/config that configure the kernels."""

CPU = "qemu64,+pdpe1gb,+clflushopt,+clwb"
"""The emulated CPU. It is the same under every version of QEMU, and has what the drivers use."""

DEVICE = 65 << 27
"""Bytes of the device. Its start is not aligned, so 64 whole memory blocks of 128 MiB fit."""

SPARE = 3 * (8 << 30)
"""Bytes of memory that a guest can add: a DIMM, and two virtio-mem devices."""

MARK = "__x64_sys_personality"
"""The function that the plugin takes for a mark: inside/operations.py makes the guest call it."""

MEMORY = tuple(size << 20 for size in (512, 2 << 10, 8 << 10, 64 << 10, 200 << 10))
"""Bytes of memory of the guests whose boots are counted."""

_INIT = "rcu_end_inkernel_boot"  # which the kernel calls once, just before it starts init

# With -icount the guest's clock follows its instructions, so timer interrupts take the same share
# of each run.
_OPTIONS = f"-cpu {CPU} -icount shift=0"
_SHARE = 1000  # a function is kept if it has more than 1/1000 of the instructions or bytes


def emulated() -> str:
    """Return the emulated CPU and the emulator."""
    output = run_program(["qemu-system-x86_64", "--version"], what="asking QEMU for its version")
    version = re.search(r"version (\S+)", output)
    return f"{CPU}, QEMU {version[1] if version else 'of an unknown version'}"


def run(kernels: list[Kernel], limit: float) -> list[Operation]:
    """Return the operations in each kernel.

    Args:
        kernels: base and patched, or a stock kernel alone.
        limit: seconds that a guest may take.

    Raises:
        Failure: a guest fails, or the plugin cannot be compiled.
    """
    operations = []
    for kernel in kernels:
        with step(f"counting operations in the {kernel.variant} kernel, some minutes"):
            if isinstance(kernel, StockKernel):
                operations += count(kernel, limit, "stock-operations")
            else:
                operations += count(kernel, limit)
                operations += count(kernel, limit, "operations-hot-added", spare=SPARE)
                for mode in kernel.deferred_init:
                    append = f"deferred_init={mode} init_on_alloc=0"  # latencies without zeroing
                    operations += count(kernel, limit, "operations-boot-memory", append=append)
        if not isinstance(kernel, StockKernel):
            operations += boots(kernel, limit)
    return operations


def boots(kernel: Kernel, limit: float, memory: Iterable[int] = MEMORY) -> list[Operation]:
    """Return the boots of a kernel, until it starts init, in each of its modes.

    Args:
        kernel: the kernel.
        limit: seconds that a guest may take.
        memory: bytes of memory of the guests.
    """
    operations = []
    for size, mode in itertools.product(memory, kernel.deferred_init):
        name = f"{BOOT}{format_power(size)}, {mode}"
        with step(f"counting the {name} of the {kernel.variant} kernel"):
            operations.append(_boot(kernel, limit, name, size, f"deferred_init={mode}"))
    return operations


def _boot(kernel: Kernel, limit: float, name: str, memory: int, append: str) -> Operation:
    plugin = count_plugin.make()
    with tempfile.TemporaryDirectory(prefix="pagemint-count-") as work:
        directory = Path(work)
        options = count_plugin.option(plugin, _symbols(kernel, limit), _INIT, directory)
        words = f"{append} init_on_alloc=1"
        argv = x86.bare_argv(kernel.image, memory, [*_OPTIONS.split(), *options], words)
        console = run_program(argv, limit=limit, what=f"the {name} of the {kernel.variant} kernel")
        trouble = complaints(console, x86.NO_INIT)
        if trouble or x86.NO_INIT not in console:
            why = (trouble or console.splitlines() or ["it wrote nothing"])[-1]
            raise Failure(
                f"the {name} failed: {why}", f"the command was: {shlex.join(map(str, argv))}"
            )
        (counted,) = count_plugin.windows(directory)
        tree: Literal["base", "patched"] = "patched" if kernel.variant == PATCHED else "base"
        boot = operation(tree, name, memory, counted)
        return replace(boot, resident=count_plugin.resident(directory))


def count(
    kernel: Kernel,
    limit: float,
    scenario: str = "operations",
    device: int = DEVICE,
    spare: int = 0,
    append: str = "",
) -> list[Operation]:
    """Return the operations of a scenario in one kernel.

    Args:
        kernel: the kernel.
        limit: seconds that a guest may take.
        scenario: its name in inside/scenarios.py.
        device: bytes of the device.
        spare: bytes of memory that the guest can add.
        append: further words of the kernel's command line.
    """
    plugin = count_plugin.make()
    with tempfile.TemporaryDirectory(prefix="pagemint-count-") as name:
        directory = Path(name)
        options = count_plugin.option(plugin, _symbols(kernel, limit), MARK, directory)
        guest = Guest(
            "tcg",
            device,
            limit,
            cpus=1,
            options=" ".join((_OPTIONS, *options)),
            append=f"init_on_alloc=1 {append}",
            spare=spare,
        )
        records, _ = guest.run(kernel, scenario, 1, DEVICE)
        windows = count_plugin.windows(directory)
    return [
        replace(
            operation(
                record.get("tree", kernel.variant),
                record["operation"],
                record["bytes"],
                windows[record["window"]],
            ),
            latency=record.get("latency", []),
        )
        for record in records
    ]


def _symbols(kernel: Kernel, limit: float) -> str:
    """Return the addresses of a kernel's functions."""
    if not isinstance(kernel, StockKernel):
        return (kernel.built / "System.map").read_text()

    # Debian's System.map is empty, but kallsyms is not, and without KASLR no boot differs.
    def ask(work: Path) -> None:
        with step(f"asking {kernel.release} for its functions"):
            records, _ = Guest("tcg", DEVICE, limit).run(kernel, "symbols", 1, DEVICE)
        (work / "symbols").write_text(records[0]["symbols"])

    return (cache.entry("stock-symbols", kernel.built.name, ask) / "symbols").read_text()


def operation(
    tree: Literal["base", "patched", "module"], name: str, size: int, counted: dict[str, Counts]
) -> Operation:
    """Return an operation, with the functions that wait or whose share is large enough to keep."""
    total = sum(counted.values(), start=Counts(0, 0, 0, 0, 0, 0))
    kept = {
        function: counts
        for function, counts in counted.items()
        if (function in (*WAITS, PERIOD) and counts.calls)
        or counts.instructions * _SHARE > total.instructions
        or (counts.stored + counts.loaded) * _SHARE > total.stored + total.loaded
    }
    by_size = sorted(kept.items(), key=lambda item: (item[1].instructions, item[0]), reverse=True)
    return Operation(name, tree, size, total, dict(by_size))
