# SPDX-License-Identifier: GPL-2.0-only
"""Runs scenarios in a guest or on a bare machine, and writes each record as a line of JSON.

Needs root. Scenarios that make devices need ndctl; those that use them need daxctl, mkfs.ext4,
mkfs.xfs, fio or stress-ng.
"""

import argparse
import itertools
import json
import mmap
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pagemint.guests.inside import (
    background,
    checks,
    edges,
    first_use,
    foreign,
    given,
    host,
    hotadd,
    leaks,
    moves,
    operations,
    ordinary,
    package,
    pinned,
    poison,
    shared,
    stale,
    stock,
)
from pagemint.guests.inside.checks import Record, check, expect
from pagemint.guests.inside.devices import (
    ALIGN,
    DAX,
    LARGE_ALIGN,
    PROBE,
    Device,
    Namespace,
    PrivateMemory,
    last_range,
    memmap_bytes,
    memmap_growth,
    put,
    run,
    soil,
    the_one,
)
from pagemint.guests.inside.first_use import Use
from pagemint.guests.inside.inventory import Existing
from pagemint.guests.inside.modes import Modes, counted, counts
from pagemint.guests.inside.tracing import TRACE, calls

SOILED = 64 << 20  # bytes of free memory that are filled before a memmap is hashed
DRIVERS = ("nd_e820", "nd_pmem", "dax_pmem", "device_dax")


def prepare(module: str, *, drivers: bool) -> None:
    """Mount the file systems that scenarios read; load `module`, and with `drivers` the drivers."""
    for kind, where in (("debugfs", PROBE.parent), ("tracefs", TRACE)):
        if where.is_dir() and not where.is_mount():
            run("mount", "-t", kind, "none", str(where))
    # A kernel that the lab builds has them built in, and no directory of modules.
    if drivers and Path("/lib/modules", os.uname().release).is_dir():
        run("modprobe", "-a", *DRIVERS)
    if not PROBE.exists():
        run("insmod", module)


def unload(modes: Modes) -> None:
    """Unload the modules that prepare() and `modes` loaded."""
    modes.choose("base")
    if Path("/sys/module/pagemint_guest").exists():
        run("rmmod", "pagemint_guest")


def rebinds(
    device: Device, modes: Modes, count: int, use: Use | None, *, zones: bool = True
) -> Iterator[Record]:
    """Bind, use and unbind a device `count` times in each mode, the modes in a shuffled order.

    Args:
        device: the device, which is not bound.
        modes: the modes.
        count: how often in each mode.
        use: the first use after each bind; None leaves it out.
        zones: whether to check the flags of all zones, which fails if real memory has holes.
    """
    generator, shuffled = random.Random(73), list(modes.names)
    for number in range(count):
        generator.shuffle(shuffled)
        for mode in shuffled:
            modes.choose(mode)
            hashed = number in (0, count - 1)
            if hashed:
                soil(SOILED)
            counts_before, bytes_before = counts(), memmap_bytes()
            record = _bind(device, mode)
            if (growth := memmap_growth(bytes_before)) is not None:
                record["memmap_bytes"] = growth
            record["compound"] = device.compound
            if hashed:
                record["hash"] = (PROBE / "hash").read_text().strip()
                if zones:
                    ordinary.check_zones(modes)
            record |= counted(counts_before)
            if use:
                record["use_ns"] = use()
            yield {**record, "unbind_ns": device.unbind()}
            expect(not memmap_growth(bytes_before), f"{mode}: some of the memmap was not freed")


def first_bind(device: Device, modes: Modes) -> Record:
    """Bind a device that was just made, in the default mode."""
    mode = modes.names[-1]
    modes.choose(mode)
    return {"first": True, **_bind(device, mode)}


def _bind(device: Device, mode: str) -> Record:
    bind_ns = device.bind()
    init_ns, _, pages = last_range()
    return {"mode": mode, "bind_ns": bind_ns, "init_ns": init_ns, "pages": pages}


def fsdax(modes: Modes, count: int, where: str) -> Iterator[Record]:
    """Rebind an fsdax device, with the memmap on it or in ordinary memory."""
    device = Namespace("pfn", where)
    yield first_bind(device, modes)
    device.unbind()
    yield from rebinds(device, modes.with_shared(), count, first_use.file_on_device())


def devdax(modes: Modes, count: int, where: str, align: int = ALIGN) -> Iterator[Record]:
    """Rebind a devdax device, with the memmap on it, or deduplicated in ordinary memory."""
    device = Namespace("dax", where, align)
    yield first_bind(device, modes)
    # The first use maps 128 MiB. A compound of 1 GiB cannot be mapped in part.
    use = first_use.mapping(the_one("dax*.*", "/dev").name) if align <= ALIGN else None
    device.unbind()
    yield from rebinds(device, modes.with_shared(), count, use)


def on_device(
    kind: str,
    where: str,
    modes: Modes,
    work: Callable[[Device], Iterator[Record]],
    align: int = ALIGN,
) -> Iterator[Record]:
    """Bind a device in the default mode, and do `work` with it."""
    device = Namespace(kind, where, align)
    first_bind(device, modes)
    yield from work(device)


def shared_devdax(modes: Modes, where: str) -> Iterator[Record]:
    """Check a devdax device whose sections share a memmap, if the kernel can."""
    modes = modes.with_shared()
    modes.choose(modes.names[0])
    device = Namespace("dax", where)
    device.bind()
    yield from poison.devdax(device)
    yield from check("populated sections", shared.populated, the_one("dax*.*", "/dev"), where)
    yield from pinned.devdax()
    yield from checks.mapping(device)
    yield from checks.kmem(device)


def existing(modes: Modes, count: int, name: str) -> Iterator[Record]:
    """Rebind a device that this machine has; it is bound again at the end."""
    device = Existing(name)
    try:
        device.unbind()
        # A compound of 1 GiB cannot be mapped in part. A file on fsdax would overwrite user data.
        mapped = name.startswith("dax") and device.compound * mmap.PAGESIZE <= ALIGN
        use = first_use.mapping(name) if mapped else None
        yield from rebinds(device, modes, count, use, zones=False)
    finally:
        device.restore()


def private(modes: Modes, count: int, size: int, *, zones: bool) -> Iterator[Record]:
    """Rebind device-private memory, or device-coherent memory if the kernel has none."""
    # The pages belong to the node of the CPU that initialises them, and the hash has the node.
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        device, use = PrivateMemory(size), first_use.folios()
        yield from rebinds(device, modes.with_shared(), count, use, zones=zones)
    finally:
        os.sched_setaffinity(0, cpus)


def fsdev(modes: Modes, count: int) -> Iterator[Record]:
    """Bind a device to devdax and fsdev in turn; each finds struct pages that the other used."""
    for where in ("map=mem", "map=dev"):
        Namespace("dax", where).bind()
        name = the_one("dax*.*", "/dev").name
        use = first_use.mapping(name)  # leaves a mapping in the folios of 2 MiB
        as_devdax = Device(name, DAX / "drivers/device_dax")
        as_fsdev = Device(name, DAX / "drivers/fsdev_dax")
        as_devdax.unbind()
        put(as_fsdev.driver / "new_id", name)
        as_fsdev.unbind()
        for number, mode in itertools.product(range(count), modes.names):
            modes.choose(mode)
            for device in (as_devdax, as_fsdev):
                device.bind()
                digest = (PROBE / "hash").read_text().strip()
                record = {"where": where, "driver": device.driver.name, "mode": mode}
                yield {**record, "number": number, "hash": digest}
                if device is as_devdax:
                    use()
                device.unbind()


def threads(modes: Modes, count: int) -> Iterator[Record]:
    """Bind once with mainline's loop, then `count` times with several threads."""
    for kind, where in (("pfn", "map=mem"), ("dax", "map=dev")):
        device = Namespace(kind, where)
        for number in range(count + 1):
            modes.choose("streaming" if number else "slow")
            helpers = calls("padata_mt_helper", device.bind)
            digest = (PROBE / "hash").read_text().strip()
            yield {"kind": kind, "number": number, "helpers": helpers, "hash": digest}
            device.unbind()


def scenario(name: str, args: argparse.Namespace) -> Iterator[Record]:
    """Return the records of a scenario."""
    count = args.rebinds
    modes = Modes(args.stock_module, tuple(args.modes.split(",")))
    table: dict[str, Callable[[], Iterator[Record]]] = {
        "fsdax": lambda: fsdax(modes, count, "map=dev"),
        "fsdax-mem": lambda: fsdax(modes, count, "map=mem"),
        "fsdax-files": lambda: on_device("pfn", "map=dev", modes, checks.files),
        "devdax": lambda: devdax(modes, count, "map=dev"),
        "devdax-mapping": lambda: on_device("dax", "map=dev", modes, checks.mapping),
        "devdax-mem": lambda: devdax(modes, count, "map=mem"),
        "devdax-4k": lambda: devdax(modes, count, "map=dev", mmap.PAGESIZE),
        "devdax-4k-mem": lambda: devdax(modes, count, "map=mem", mmap.PAGESIZE),
        "devdax-1g": lambda: devdax(modes, count, "map=dev", LARGE_ALIGN),
        "devdax-1g-mem": lambda: devdax(modes, count, "map=mem", LARGE_ALIGN),
        "devdax-pins": lambda: on_device("dax", "map=dev", modes, lambda _: pinned.devdax()),
        "devdax-mem-pins": lambda: on_device("dax", "map=mem", modes, lambda _: pinned.devdax()),
        "devdax-unbinds": lambda: on_device("dax", "map=dev", modes, pinned.unbinds),
        "devdax-mem-unbinds": lambda: on_device("dax", "map=mem", modes, pinned.unbinds),
        "devdax-1g-forks": lambda: on_device(
            "dax", "map=mem", modes, lambda _: pinned.forks(), LARGE_ALIGN
        ),
        "shared-devdax-dev": lambda: shared_devdax(modes, "map=dev"),
        "shared-devdax-mem": lambda: shared_devdax(modes, "map=mem"),
        "devdax-vfio": lambda: on_device("dax", "map=dev", modes, lambda _: pinned.vfio()),
        "devdax-mem-mapping": lambda: on_device("dax", "map=mem", modes, checks.mapping),
        "private": lambda: private(
            modes, count if args.host else min(count, 10), args.private_size, zones=not args.host
        ),
        "private-hmm": lambda: checks.hmm(args.selftests / "hmm-tests", args.hmm_module),
        "existing": lambda: existing(modes, count, args.device),
        "virtio-mem": hotadd.virtio_mem,
        "kmem": lambda: on_device("dax", "map=dev", modes, checks.kmem),
        "kmem-again": lambda: on_device(
            "dax", "map=dev", modes, lambda _: ordinary.hotplug(count, modes)
        ),
        "boot": ordinary.boot,
        "background": background.everything,
        "background-stray": background.stray,
        "migrate": lambda: on_device(
            "dax", "map=dev", modes, lambda _: moves.migrate(min(count, 10))
        ),
        "folio": lambda: moves.copies(count, args.folio_module),
        "migrate-selftest": lambda: checks.selftest(args.selftests / "migration"),
        "machine-check": lambda: moves.machine_check(args.folio_module),
        "fio-fsdax": lambda: on_device("pfn", "map=dev", modes, foreign.fsdax),
        "fio-fsdax-mem": lambda: on_device("pfn", "map=mem", modes, foreign.fsdax),
        "fio-devdax": lambda: on_device("dax", "map=dev", modes, foreign.devdax),
        "stress": lambda: on_device("dax", "map=dev", modes, foreign.stress),
        "selftests": lambda: foreign.selftests(args.selftests / "others"),
        "kmem-selftest": lambda: on_device(
            "dax", "map=dev", modes, lambda _: foreign.kmem(args.selftests / "dax")
        ),
        "xfstests": lambda: given.xfstests(args.xfstests),
        "ndctl": lambda: given.ndctl(args.ndctl, Path(args.module).parent),
        "leaks": lambda: leaks.leaks(modes, count),
        "shared-fsdax-mem": lambda: shared.fsdax(modes, "map=mem"),
        "shared-fsdax-dev": lambda: shared.fsdax(modes, "map=dev"),
        "shared-fails-mem": lambda: shared.failing(modes, "map=mem"),
        "shared-fails-dev": lambda: shared.failing(modes, "map=dev"),
        "shared-flushes": lambda: shared.flushes(modes),
        "shared-writecache": lambda: shared.writecache(modes),
        "shared-limits": lambda: leaks.limits(modes),
        "poison-fsdax": lambda: on_device("pfn", "map=dev", modes, poison.fsdax),
        "poison-devdax": lambda: on_device("dax", "map=dev", modes, poison.devdax),
        "stale-devices": lambda: stale.devices(args.private_size),
        "stale-offline": stale.offline,
        "fsdev": lambda: fsdev(modes.with_shared(), count),
        "threads": lambda: threads(modes, count),
        "edges-pressure": lambda: edges.pressure(modes, count, args.private_size),
        "edges-cpus": lambda: edges.cpus(modes, count),
        "edges-kexec": lambda: edges.kexec(
            modes,
            Path(args.headers, "arch/x86/boot/bzImage"),
            args.output.with_name("before-kexec"),
        ),
        "operations": lambda: operations.everything(args.hmm_module),
        "operations-boot-memory": operations.boot_memory,
        "operations-hot-added": operations.hot_added,
        "operations-on-device": operations.on_device,
        "stock-operations": lambda: operations.stock(modes),
        "stock-package": lambda: package.package(args.packages, args.headers),
        "symbols": operations.symbols,
        "host": lambda: host.checks_of(args.headers),
        "stock-faults": lambda: stock.faults(modes, args.module, count),
        "stock-stays-out": lambda: stock.stays_out(modes, count, args.private_size),
        "stock-verify": lambda: stock.verified(modes, count, args.private_size, large=False),
        "stock-verify-1g": lambda: stock.verified(modes, count, args.private_size, large=True),
    }
    if name not in table:
        raise RuntimeError(f"there is no scenario {name}")
    return table[name]()


def main() -> int:
    """Run the scenarios that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", required=True, help="names, separated by commas")
    parser.add_argument("--rebinds", type=int, default=30, help="repetitions, in each mode")
    parser.add_argument("--private-size", type=int, required=True, help="bytes")
    parser.add_argument("--module", required=True, help="pagemint_guest.ko")
    parser.add_argument("--folio-module", required=True, help="pagemint_folio.ko")
    parser.add_argument("--hmm-module", required=True, help="test_hmm.ko")
    parser.add_argument("--selftests", type=Path, default=Path(), help="directory of test programs")
    parser.add_argument("--stock-module", default="", help="pagemint.ko, on a stock kernel")
    parser.add_argument("--modes", default="", help="the modes of a patched kernel")
    parser.add_argument("--xfstests", type=Path, default=Path(), help="directory of xfstests")
    parser.add_argument("--ndctl", type=Path, default=Path(), help="build directory of ndctl")
    parser.add_argument("--packages", type=Path, default=Path(), help="directory of .deb files")
    parser.add_argument("--headers", default="", help="headers of the running kernel")
    parser.add_argument("--device", default="", help="device of this machine, for `existing`")
    parser.add_argument(
        "--host", action="store_true", help="load no drivers; unload pagemint's modules"
    )
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    # SIGTERM raises, so that everything is undone as after a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with args.output.open("w", buffering=1) as output:
        name = "start"
        failed = False

        def fail(where: str, error: Exception) -> None:
            nonlocal failed
            failed = True
            output.write(json.dumps({"scenario": where, "error": str(error)}) + "\n")

        try:
            prepare(args.module, drivers=bool(args.stock_module) and not args.host)
            for name in args.scenario.split(","):
                # If the guest dies, the last record names the scenario that was running.
                output.write(json.dumps({"scenario": name, "running": "start"}) + "\n")
                for record in scenario(name, args):
                    output.write(json.dumps({"scenario": name, **record}) + "\n")
        except (OSError, RuntimeError) as error:
            fail(name, error)
        finally:
            try:
                if args.host:
                    unload(Modes(args.stock_module, ()))
            except (OSError, RuntimeError) as error:
                fail("unload", error)
        if not failed:
            output.write(json.dumps({"done": True}) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
