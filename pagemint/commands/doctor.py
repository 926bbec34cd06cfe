# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint doctor`: says what this machine can do, what it lacks, and how to get that."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagemint.base import cache, disk, machine, packages, returns
from pagemint.base.errors import Failure
from pagemint.base.progress import step
from pagemint.base.sizes import format_size
from pagemint.bench.workloads import known
from pagemint.commands import bench_room

_FEATURES = {
    "sse2": ("streaming stores (movnti)", "use another CPU"),
    "rep_good": ("pages are copied by rep movsq", "nothing: an unrolled loop copies them"),
    "erms": ("folios are copied in runs of pages", "nothing: they are copied page by page"),
    "avx": ("one more loop for the fill limit", "nothing: the limit is the best of the others"),
    "avx512f": ("one more loop for the fill limit", "nothing: the limit is the best of the others"),
}
_KVM_LIMIT = 4.0  # seconds; the guest needs less than one, even when it is emulated
_KVM_SIGN = 0x10  # written to QEMU's exit port, so that QEMU exits with 2 * _KVM_SIGN + 1
_SIZE = 100 * 10**9  # bytes of the default device
_DISK = 5 * 10**9  # bytes: the source, two build directories, room to unpack


@dataclass(frozen=True)
class Check:
    """One line of the report; bench can run if every check that it needs is ok.

    Attributes:
        what: the program, feature or amount that is checked.
        ok: whether this machine has it.
        found: the finding, in words.
        remedy: the action to take if it is not ok.
        needed: whether bench depends on it.
    """

    what: str
    ok: bool
    found: str
    remedy: str = ""
    needed: bool = True


def checks() -> list[Check]:
    """Look at the machine and change nothing. A large cache or a broken KVM takes some seconds."""
    cpuinfo = machine.read(Path("/proc/cpuinfo"))
    return [
        *(check_tool(tool) for tool in sorted(packages.parts())),
        *check_processor(platform.machine(), cpuinfo),
        check_returns(*returns.look()),
        check_kvm("/dev/kvm"),
        check_huge_pages(machine.read(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        check_memory(bench_room.free()),
        check_cache(),
        _check_disk(),
        _check_load(),
    ]


def check_tool(tool: str) -> Check:
    """Look for a program that pagemint runs, or a header that it includes."""
    part = packages.parts()[tool]
    there, needed = part.there(), part.needs == "bench"
    without = {"fetch": "; bench --ksrc DIR does not need it", "guest": "; bench does not need it"}
    text = packages.find(tool) or "found" if there else f"not found{without.get(part.needs, '')}"
    return Check(tool, there, text, packages.remedy([tool]), needed)


def check_processor(machine: str, cpuinfo: str) -> list[Check]:
    """Judge the CPU from its name as uname gives it and the text of /proc/cpuinfo."""
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    present = flags[1].split() if flags else []
    results = [Check("x86-64", machine == "x86_64", machine, "use an x86-64 machine")]
    results.append(Check("CPU", True, model[1] if model else "unknown model"))
    for feature, (use, remedy) in _FEATURES.items():
        has = feature in present
        text = f"yes: {use}" if has else "no"
        results.append(Check(feature, has, text, remedy, needed=feature == "sse2"))
    return results


def check_returns(condition: str, other: str) -> Check:
    """Judge how the kernel returns from functions, as returns.look() found it."""
    text = other or returns.NAMES[condition]
    remedy = "nothing: bench times plain returns instead, which favours mainline"
    return Check("returns", not other, text, remedy, needed=False)


def check_kvm(device: str) -> Check:
    """Boot a guest of one sector under KVM: /dev/kvm can exist and not work."""

    def check(text: str, remedy: str) -> Check:
        return Check("KVM", not remedy, text, remedy, needed=False)

    emulate = "vm emulates guests, and their times do not count"
    if not Path(device).exists():
        return check(
            f"no {device}", f"load kvm_amd or kvm_intel; in a VM, have it nested; else {emulate}"
        )
    if not os.access(device, os.R_OK | os.W_OK):
        return check(f"{device} is closed to this user", "join its group: adduser $USER kvm")
    qemu = packages.find("qemu-system-x86_64")
    if not qemu:
        return check(f"{device} exists, but was not tried", packages.remedy(["qemu-system-x86_64"]))
    # mov dx, 0xf4; mov al, SIGN; out dx, al; hlt
    code = bytes([0xBA, 0xF4, 0x00, 0xB0, _KVM_SIGN, 0xEE, 0xF4])
    with tempfile.NamedTemporaryFile() as sector, step("trying KVM"):
        sector.write(code.ljust(510, b"\0") + b"\x55\xaa")
        sector.flush()
        argv = [qemu, "-accel", "kvm", "-m", "32", "-nodefaults", "-display", "none"]
        argv += ["-drive", f"file={sector.name},format=raw,snapshot=on"]
        argv += ["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-no-reboot"]
        try:
            status = subprocess.run(argv, capture_output=True, timeout=_KVM_LIMIT).returncode
        except subprocess.TimeoutExpired:
            return check(f"{device} exists, but guests hang or crawl", f"nothing: {emulate}")
    if status != _KVM_SIGN * 2 + 1:
        return check(f"{device} exists, but no guest runs", f"nothing: {emulate}")
    return check("a guest runs", "")


def check_huge_pages(enabled: str) -> Check:
    """Judge the text of /sys/kernel/mm/transparent_hugepage/enabled, "" if there is none."""
    mode = re.search(r"\[(\w+)\]", enabled)
    return Check(
        "transparent huge pages",
        mode is not None and mode[1] in ("madvise", "always"),
        mode[1] if mode else "not in this kernel",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
    )


def check_memory(free: int) -> Check:
    """Judge the bytes that bench may take against what all workloads need for 100 GB."""
    workloads = known().values()
    needed = bench_room.needed(workloads, _SIZE)
    fit = bench_room.fitting(workloads, free)
    sized = [workload for workload in workloads if workload.sized]
    most = bench_room.largest(sized, free)
    options = [f"--size {most}"] if most and bench_room.needed(sized, _SIZE) > free else []
    options += [f"--workload {','.join(fit)}"] if len(fit) < len(workloads) else []
    remedy = f"end some programs, or run bench with {' '.join(options)}"
    text = (
        f"{format_size(free)} {machine.unused()}, {format_size(needed)} needed for a 100 GB device"
    )
    return Check("memory", free >= needed, text, remedy)


@dataclass(frozen=True)
class Request:
    """`pagemint doctor` has no options."""


def main(request: Request) -> int:
    """Print the report; exit status 0 if bench can run here, else 1."""
    report = checks()
    table = Table("what", "state", "found", "what to do")
    for check in report:
        if check.ok:
            state = Text("OK", style="green")
        elif check.needed:
            state = Text("missing", style="red")
        else:
            state = Text("absent", style="dim")
        remedy = "" if check.ok else check.remedy
        table.add_row(Text(check.what), state, Text(check.found), Text(remedy))
    Console().print(table)
    return 0 if all(check.ok for check in report if check.needed) else 1


def check_cache() -> Check:
    """Judge whether the cache can be written, and kernels be built in it."""
    try:
        cache.check()
    except Failure as failure:
        return Check("cache", False, failure.message, failure.remedy)
    return Check("cache", True, str(cache.root()))


def _check_disk() -> Check:
    free = shutil.disk_usage(disk.existing(cache.root())).free
    with step("measuring the cache"):
        held = format_size(sum(entry.size for entry in cache.entries()))
    needed = f"{format_size(_DISK)} needed for {cache.root()}, which holds {held}"
    text = f"{format_size(free)} free, {needed}"
    remedy = "free some, or set XDG_CACHE_HOME to another disk"
    return Check("disk", free >= _DISK or (cache.root() / "sources").is_dir(), text, remedy)


def _check_load() -> Check:
    count, load = os.cpu_count() or 1, os.getloadavg()[0]
    return Check(
        "idle CPUs",
        load < count / 2,
        f"{count} CPUs, of which bench uses {machine.cpus()}; load average {load:.2f}",
        "wait for other work to end: times will vary",
        needed=False,
    )
