# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint vm`: binds real devices and moves folios on real kernels, before and after."""

import argparse
import os
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.progress import note, step
from pagemint.base.sizes import format_size, parse_size
from pagemint.commands import options
from pagemint.guests import binds, boots, copies
from pagemint.guests.binds import BindRow
from pagemint.guests.guest import Guest, Record, choose_accel
from pagemint.kernels import image, steps, stock, trees
from pagemint.kernels.image import Kernel
from pagemint.report.write import after_run
from pagemint.results import writer

SCENARIOS = {
    "fsdax": ("fsdax", "fsdax-files"),
    "devdax": ("devdax", "devdax-mapping", "devdax-mem", "devdax-mem-mapping"),
    "private": ("private", "private-hmm"),
    "kmem": ("kmem", "kmem-again"),
    "migrate": ("migrate", "folio", "migrate-selftest"),
    "boot": ("boot",),
}
"""What --scenario takes, and what each of it is in guest/scenarios.py."""

BIND_SCENARIOS = {
    "fsdax": ("fsdax", "fsdax-mem"),
    "devdax": ("devdax", "devdax-mem"),
    "private": ("private",),
}
"""The same for a stock kernel and for arm64: what shows that the memory map stays the same."""

FRAGMENTS = ("vm", "use")
"""What configures the kernels: files of guest/config."""

_CPUS = {"migrate": 3}  # the kernel's own test of migration wants two, and more to disturb it
_GUEST_RAM = 1_500_000_000  # bytes that a guest touches beside memory maps
_MOVED = 1_000_000_000  # bytes at most that migrate moves at a time; a quarter of the device
_SECTION = 1 << 27  # bytes: what a device is a multiple of, so that nothing is cut off
_SMALLEST = 1 << 29  # bytes of a device: there must be room for xfs
_PRIVATE_MOST = 64_000_000_000  # bytes of device-private memory


@dataclass(frozen=True)
class Lab:
    """What the lab has for an architecture.

    Attributes:
        arch: what the kernels are built for.
        fragments: what configures them, files of guest/config.
        scenarios: what there is to run.
        native: whether it is that of this machine, on which guests can run under KVM, and have
            its programs.
        programs: what it takes, and the Debian packages of that.
        headers: likewise.
    """

    arch: trees.Arch
    fragments: tuple[str, ...]
    scenarios: dict[str, tuple[str, ...]]
    native: bool
    programs: dict[str, str]
    headers: dict[str, str]


LABS = {
    "x86": Lab(
        trees.X86,
        FRAGMENTS,
        SCENARIOS,
        native=True,
        programs={
            "qemu-system-x86_64": "qemu-system-x86",
            "ndctl": "ndctl",
            "daxctl": "daxctl",
            "mkfs.ext4": "e2fsprogs",
            "mkfs.xfs": "xfsprogs",
        },
        headers={"/usr/include/numa.h": "libnuma-dev"},
    ),
    "arm64": Lab(
        trees.ARM64,
        ("vm", "arm64"),
        BIND_SCENARIOS,
        native=False,
        programs={
            "qemu-system-aarch64": "qemu-system-arm",
            "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
            "fdtput": "device-tree-compiler",
        },
        headers={},
    ),
}
"""What --arch takes."""


@dataclass(frozen=True)
class Check:
    """What was found when a device was used as memory.

    Attributes:
        scenario: as guest/scenarios.py has it.
        kernel: base or patched.
        name: what was checked.
        outcome: pass, fail or skip.
        said: how it went.
        must_pass: whether it has to pass; else it has to end on both kernels alike.
    """

    scenario: str
    kernel: str
    name: str
    outcome: str
    said: str
    must_pass: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint vm`."""
    options.add_source_arguments(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--stock",
        metavar="VERSION",
        help="Debian's stock kernel of that line and the module for it, instead of both trees",
    )
    kind.add_argument("--arch", default="x86", choices=LABS, help="of the kernels (x86)")
    parser.add_argument(
        "--size", metavar="SIZE", help="of the device (100GB with KVM, 4GB without, or what fits)"
    )
    parser.add_argument(
        "--scenario",
        metavar="S,...",
        help=f"what to run (all of {', '.join(SCENARIOS)}; "
        f"a stock kernel and arm64 have {', '.join(BIND_SCENARIOS)})",
    )
    parser.add_argument("--rebinds", type=int, default=30, metavar="N", help="of each mode (30)")
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"))
    parser.add_argument("--limit", type=float, default=3600, metavar="S", help="seconds a guest")
    parser.add_argument("--json", metavar="FILE", help="write the result there")
    options.add_run_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint vm`."""
    lab = LABS[args.arch]
    scenarios = BIND_SCENARIOS if args.stock else lab.scenarios
    names = list(dict.fromkeys(args.scenario.split(","))) if args.scenario else list(scenarios)
    unknown = [name for name in names if name not in scenarios]
    if unknown:
        raise Failure(f"there is no scenario {unknown[0]!r}", f"choose from {', '.join(scenarios)}")
    if args.rebinds < 2:
        raise Failure(f"--rebinds {args.rebinds} is too few", "give 2 or more")
    if args.limit <= 0:
        raise Failure(f"--limit {args.limit} leaves a guest no time", "give seconds above 0")
    size = parse_size(args.size) if args.size else None
    if size and size < _SMALLEST:
        raise Failure(f"a device of {args.size} is too small", "give at least 512MiB")
    if args.accel == "kvm" and not lab.native:
        raise Failure(f"guests for {args.arch} are emulated here", "leave --accel kvm out")
    if args.accel == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Failure("/dev/kvm cannot be used", "load the kvm module, or use --accel tcg")
    # Guests are root, who finds more programs than others do.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [
        name for program, name in lab.programs.items() if not shutil.which(program, path=path)
    ]
    missing += [name for header, name in lab.headers.items() if not Path(header).exists()]
    if missing:
        raise Failure(
            "Debian packages are missing", f"install them: apt-get install {' '.join(missing)}"
        )
    writer.check_writable(args.json)
    if size:
        _check_memory(size)

    kernels: list[Kernel]
    selftests = None
    if args.stock:
        one = stock.kernel(args.stock)
        kernels, about = [one], (one.release, one.built.name, "debian")
    else:
        found = steps.source_for(args.kernel, args.ksrc)
        pair = trees.pair(found)
        kernels = [image.kernel(replace(tree, arch=lab.arch), lab.fragments) for tree in pair]
        selftests = image.selftests(pair[0]) if lab.native else None
        about = (found.version, pair[0].key, "+".join(lab.fragments))
    accel = choose_accel(args.accel, kernels[0]) if lab.native else "tcg"
    if size is None:
        size = _fitting_size(100_000_000_000 if accel == "kvm" else 4_000_000_000)
    device = size // _SECTION * _SECTION
    private = min(device, _PRIVATE_MOST // _SECTION * _SECTION)
    guest = Guest(accel, device, args.limit, selftests)
    rows: list[BindRow] = []
    copied: list[copies.CopyRow] = []
    checks: list[Check] = []
    status = 0
    for name in names:
        if name == "boot":
            for kernel in kernels:
                outcome, said = boots.judge(boots.boots(guest, kernel))
                checks.append(Check(name, kernel.variant, "memory", outcome, said, True))
            continue
        records: dict[str, list[Record]] = {}
        for kernel in kernels:
            # A guest for each, or the memory would not be new to the first bind.
            with step(f"{name}: running the {kernel.variant} kernel in a guest ({accel})"):
                inner = ",".join(scenarios[name])
                booted = replace(guest, cpus=_CPUS.get(name, guest.cpus))
                records[kernel.variant], _ = booted.run(kernel, inner, args.rebinds, private)
            checks += checks_of(kernel.variant, records[kernel.variant])
            status |= binds.judge_counts(records[kernel.variant])
        for inner in scenarios[name]:
            rows += binds.rows_of(inner, records, private if inner == "private" else device)
        if not args.stock:
            copied += copies.rows(records)

    console = Console(stderr=args.json == "-")
    if rows:
        binds.print_tables(rows, f"in a guest ({accel})", accel != "kvm", console)
    if copied:
        console.print(copies.table(copied, accel))
    body = {
        "host": {**machine.about(), "accel": accel, "times_comparable": accel == "kvm"},
        "kernel": dict(zip(("version", "source", "config"), about, strict=True)),
        "limit": {"fill_bytes_per_s": None, "copy_bytes_per_s": None},
        "rows": [asdict(row) for row in (*rows, *copied)],
        "checks": [asdict(check) for check in checks],
    }
    writer.write(args.json, body)
    after_run(args, body)
    return max(binds.same_hashes(rows), judge(checks), status)


def checks_of(kernel: str, records: list[Record]) -> list[Check]:
    """Return the checks among the records of a guest with that kernel, base or patched."""
    return [
        Check(r["scenario"], kernel, r["check"], r["outcome"], r["said"], r["must_pass"])
        for r in records
        if "check" in r
    ]


def judge(checks: list[Check]) -> int:
    """Say how the checks ended on both kernels, in few lines; the exit status."""
    status = 0
    counts: dict[str, Counter[str]] = {}
    ends: dict[tuple[str, str], dict[str, Check]] = {}
    for check in checks:
        ends.setdefault((check.scenario, check.name), {})[check.kernel] = check
    for (scenario, name), found in ends.items():
        must_pass = any(check.must_pass for check in found.values())
        outcomes = {check.outcome for check in found.values()}
        alike = len(found) == 2 and len(outcomes) == 1
        wrong = not alike or (must_pass and outcomes != {"pass"})
        if wrong:
            status = 1
        if wrong or "fail" in outcomes:
            said = (f"{one.kernel}: {one.outcome} {one.said}".strip() for one in found.values())
            note(f"pagemint: {scenario}: {name}: {'; '.join(said)}")
        elif must_pass:
            note(f"{scenario}: {name}: {found['patched'].said}, on both kernels")
        if alike and not must_pass:
            counts.setdefault(scenario, Counter()).update(outcomes)
    for scenario, count in counts.items():
        told = ", ".join(f"{number} {outcome}" for outcome, number in count.most_common())
        note(f"{scenario}: of the kernel's own tests {told}, on both kernels alike")
    return status


def _check_memory(size: int) -> None:
    needed = _needed(size)
    free = machine.memory()["MemAvailable"]
    if needed > free:
        raise Failure(
            f"a device of {format_size(size)} takes {format_size(needed)} of this machine's "
            f"memory, of which {format_size(free)} are free",
            f"give --size {_fitting_size(size) // 10**9}GB or less",
        )


def _needed(size: int) -> int:
    """Return the bytes of host memory that a guest with such a device touches."""
    # What is moved touches each of three nodes.
    moved = 3 * min(size // 4, _MOVED)
    return _GUEST_RAM + moved + size // 64 + min(size, _PRIVATE_MOST) // 64


def _fitting_size(wanted: int) -> int:
    """Return the largest size up to `wanted` that this machine can hold."""
    free = machine.memory()["MemAvailable"] * 0.9
    while _needed(wanted) > free and wanted > _SMALLEST:
        wanted //= 2
    if _needed(wanted) > free:
        raise Failure(
            f"a guest takes {format_size(_needed(_SMALLEST))} of memory, "
            f"and {format_size(int(free))} are free",
            "end some programs, or use a larger machine",
        )
    return wanted
