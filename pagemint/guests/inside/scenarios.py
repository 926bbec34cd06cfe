# SPDX-License-Identifier: GPL-2.0-only
"""Runs scenarios in a guest or on a bare machine, and writes each record as a line of JSON.

Needs root. Scenarios that make devices need ndctl; those that use them need daxctl, mkfs.ext4,
mkfs.xfs, fio or stress-ng.
"""

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
from pagemint.guests.inside.settings import Settings
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
    use = first_use.mapping(the_one("dax*.*").name) if align <= ALIGN else None
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
    yield from check("populated sections", shared.populated, the_one("dax*.*"), where)
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
        name = the_one("dax*.*").name
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


SCENARIOS: dict[str, Callable[[Settings], Iterator[Record]]] = {
    "fsdax": lambda s: fsdax(s.modes, s.rebinds, "map=dev"),
    "fsdax-mem": lambda s: fsdax(s.modes, s.rebinds, "map=mem"),
    "fsdax-files": lambda s: on_device("pfn", "map=dev", s.modes, checks.files),
    "devdax": lambda s: devdax(s.modes, s.rebinds, "map=dev"),
    "devdax-mapping": lambda s: on_device("dax", "map=dev", s.modes, checks.mapping),
    "devdax-mem": lambda s: devdax(s.modes, s.rebinds, "map=mem"),
    "devdax-4k": lambda s: devdax(s.modes, s.rebinds, "map=dev", mmap.PAGESIZE),
    "devdax-4k-mem": lambda s: devdax(s.modes, s.rebinds, "map=mem", mmap.PAGESIZE),
    "devdax-1g": lambda s: devdax(s.modes, s.rebinds, "map=dev", LARGE_ALIGN),
    "devdax-1g-mem": lambda s: devdax(s.modes, s.rebinds, "map=mem", LARGE_ALIGN),
    "devdax-pins": lambda s: on_device("dax", "map=dev", s.modes, lambda _: pinned.devdax()),
    "devdax-mem-pins": lambda s: on_device("dax", "map=mem", s.modes, lambda _: pinned.devdax()),
    "devdax-unbinds": lambda s: on_device("dax", "map=dev", s.modes, pinned.unbinds),
    "devdax-mem-unbinds": lambda s: on_device("dax", "map=mem", s.modes, pinned.unbinds),
    "devdax-1g-forks": lambda s: on_device(
        "dax", "map=mem", s.modes, lambda _: pinned.forks(), LARGE_ALIGN
    ),
    "shared-devdax-dev": lambda s: shared_devdax(s.modes, "map=dev"),
    "shared-devdax-mem": lambda s: shared_devdax(s.modes, "map=mem"),
    "devdax-dynamic": lambda _: pinned.dynamic(),
    "devdax-vfio": lambda s: on_device("dax", "map=dev", s.modes, lambda _: pinned.vfio()),
    "devdax-mem-mapping": lambda s: on_device("dax", "map=mem", s.modes, checks.mapping),
    "private": lambda s: private(
        s.modes, s.rebinds if s.bare else min(s.rebinds, 10), s.private_size, zones=not s.bare
    ),
    "private-hmm": lambda s: checks.hmm(s.directory("selftests") / "hmm-tests", s.hmm_module),
    "existing": lambda s: existing(s.modes, s.rebinds, s.device),
    "virtio-mem": lambda _: hotadd.virtio_mem(),
    "kmem": lambda s: on_device("dax", "map=dev", s.modes, checks.kmem),
    "kmem-again": lambda s: on_device(
        "dax", "map=dev", s.modes, lambda _: ordinary.hotplug(s.rebinds, s.modes)
    ),
    "boot": lambda _: ordinary.boot(),
    "background": lambda _: background.everything(),
    "background-reserve": lambda _: background.reserve(),
    "background-stray": lambda _: background.stray(),
    "migrate": lambda s: on_device(
        "dax", "map=dev", s.modes, lambda _: moves.migrate(min(s.rebinds, 10))
    ),
    "folio": lambda s: moves.copies(s.rebinds, s.folio_module),
    "migrate-selftest": lambda s: checks.selftest(s.directory("selftests") / "migration"),
    "machine-check": lambda s: moves.machine_check(s.folio_module),
    "fio-fsdax": lambda s: on_device("pfn", "map=dev", s.modes, foreign.fsdax),
    "fio-fsdax-mem": lambda s: on_device("pfn", "map=mem", s.modes, foreign.fsdax),
    "fio-devdax": lambda s: on_device("dax", "map=dev", s.modes, foreign.devdax),
    "stress": lambda s: on_device("dax", "map=dev", s.modes, foreign.stress),
    "selftests": lambda s: foreign.selftests(s.directory("selftests") / "others"),
    "kmem-selftest": lambda s: on_device(
        "dax", "map=dev", s.modes, lambda _: foreign.kmem(s.directory("selftests") / "dax")
    ),
    "xfstests": lambda s: given.xfstests(s.directory("xfstests")),
    "ndctl": lambda s: given.ndctl(s.directory("ndctl"), Path(s.module).parent),
    "leaks": lambda s: leaks.leaks(s.modes, s.rebinds),
    "shared-fsdax-mem": lambda s: shared.fsdax(s.modes, "map=mem"),
    "shared-fsdax-dev": lambda s: shared.fsdax(s.modes, "map=dev"),
    "shared-fails-mem": lambda s: shared.failing(s.modes, "map=mem"),
    "shared-fails-dev": lambda s: shared.failing(s.modes, "map=dev"),
    "shared-flushes": lambda s: shared.flushes(s.modes),
    "shared-writecache": lambda s: shared.writecache(s.modes),
    "shared-limits": lambda s: leaks.limits(s.modes),
    "poison-fsdax": lambda s: on_device("pfn", "map=dev", s.modes, poison.fsdax),
    "poison-devdax": lambda s: on_device("dax", "map=dev", s.modes, poison.devdax),
    "stale-devices": lambda s: stale.devices(s.private_size),
    "stale-offline": lambda _: stale.offline(),
    "fsdev": lambda s: fsdev(s.modes.with_shared(), s.rebinds),
    "threads": lambda s: threads(s.modes, s.rebinds),
    "edges-pressure": lambda s: edges.pressure(s.modes, s.rebinds, s.private_size),
    "edges-cpus": lambda s: edges.cpus(s.modes, s.rebinds),
    "edges-kexec": lambda s: edges.kexec(
        s.modes, Path(s.headers, "arch/x86/boot/bzImage"), Path(s.output).with_name("before-kexec")
    ),
    "operations": lambda s: operations.everything(s.hmm_module),
    "operations-boot-memory": lambda _: operations.boot_memory(),
    "operations-hot-added": lambda _: operations.hot_added(),
    "operations-on-device": lambda _: operations.on_device(),
    "stock-operations": lambda s: operations.stock(s.modes),
    "stock-package": lambda s: package.package(s.directory("packages"), s.headers),
    "symbols": lambda _: operations.symbols(),
    "host": lambda s: host.checks_of(s.headers),
    "stock-faults": lambda s: stock.faults(s.modes, s.module, s.rebinds),
    "stock-stays-out": lambda s: stock.stays_out(s.modes, s.rebinds, s.private_size),
    "stock-verify": lambda s: stock.verified(s.modes, s.rebinds, s.private_size, large=False),
    "stock-verify-1g": lambda s: stock.verified(s.modes, s.rebinds, s.private_size, large=True),
}
"""The scenarios by their names."""


def records(settings: Settings) -> Iterator[Record]:
    """Run scenarios up to the first that fails; yield their records, and the error."""
    name = "start"
    try:
        prepare(settings.module, drivers=bool(settings.filler) and not settings.bare)
        for name in settings.scenarios:
            # If the guest dies, the last record names the scenario that was running.
            yield {"scenario": name, "running": "start"}
            if name not in SCENARIOS:
                raise RuntimeError(f"there is no scenario {name}")
            for record in SCENARIOS[name](settings):
                yield {"scenario": name, **record}
    except (OSError, RuntimeError) as error:
        yield {"scenario": name, "error": str(error)}


def run_all(settings: Settings) -> int:
    """Run scenarios, write their records, and undo everything; return the exit status."""
    failed = False
    with Path(settings.output).open("w", buffering=1) as output:

        def write(record: Record) -> None:
            nonlocal failed
            failed |= "error" in record
            output.write(json.dumps(record) + "\n")

        try:
            for record in records(settings):
                write(record)
        finally:
            try:
                if settings.bare:
                    unload(settings.modes)
            except (OSError, RuntimeError) as error:
                write({"scenario": "unload", "error": str(error)})
        if not failed:
            write({"done": True})
    return int(failed)


def main() -> int:
    """Run the scenarios of the settings in the file that the command line names."""
    (file,) = sys.argv[1:]
    # SIGTERM raises, so that everything is undone as after a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return run_all(Settings(**json.loads(Path(file).read_text())))


if __name__ == "__main__":
    sys.exit(main())
