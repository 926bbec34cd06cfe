# SPDX-License-Identifier: GPL-2.0-only
"""Runs other people's suites on the devices: fio, stress-ng, and the kernel's own selftests."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from pagemint.guests.inside import checks
from pagemint.guests.inside.checks import Record, expect
from pagemint.guests.inside.devices import ALIGN, Device, run, the_one
from pagemint.guests.inside.filesystems import SMALL, make, mounted
from pagemint.guests.inside.modes import permit_sharing

ENGINES = ("psync", "mmap")
SIZE = "24m"  # of a file of fio
JOB = ("--name=job", "--rw=randwrite", "--verify=crc32c", "--verify_fatal=1", "--randseed=7")
SECONDS = 20  # of a stressor
STRESSORS = {
    "vm": ("--vm", "2", "--vm-bytes", "48m", "--vm-method", "all"),
    "mmap": ("--mmap", "2", "--mmap-bytes", "48m"),
    "mremap": ("--mremap", "2", "--mremap-bytes", "16m"),
    "madvise": ("--madvise", "2"),
    "shm": ("--shm-sysv", "2", "--shm-sysv-bytes", "16m"),
    "memthrash": ("--memthrash", "1"),
}
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2  # XFS_IOC_GOINGDOWN, which ext4 has too
UNAVAILABLE = (3, 4)  # statuses of stress-ng: no resources, not implemented
SKIPPED = 4  # the status of a selftest that cannot run
PATIENCE = 600  # seconds
LONGEST = 80  # characters of a name in a result


def fsdax(device: Device) -> Iterator[Record]:
    """Write files with fio in each file system, shut that down after the fsync, and verify."""
    for kind in SMALL:
        for engine in ENGINES:
            yield from checks.check(f"fio {engine} on {kind}", _cut_off, kind, engine, device)


def _cut_off(kind: str, engine: str, device: Device) -> str:
    device.unbind()
    device.bind()
    make(SMALL[kind])
    with mounted(kind) as directory:
        job = (f"--directory={directory}", f"--ioengine={engine}", f"--size={SIZE}", *JOB)
        written = _fio(*job, "--bsrange=512-64k", "--end_fsync=1", "--do_verify=0")
        _shut_down(directory)
    with mounted(kind) as directory:
        job = (f"--directory={directory}", f"--ioengine={engine}", f"--size={SIZE}", *JOB)
        read = _fio(*job, "--bsrange=512-64k", "--verify_only=1")
    expect(written["write"]["total_ios"] > 0, "fio wrote nothing")
    expect(read["error"] == 0, f"fio's error {read['error']}")
    return f"{written['write']['io_bytes'] >> 20} MiB verified after the file system was cut off"


def _shut_down(directory: Path) -> None:
    """End a file system at once: neither data nor log reaches the device any more."""
    descriptor = os.open(directory, os.O_RDONLY)
    fcntl.ioctl(descriptor, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(descriptor)


def devdax(device: Device) -> Iterator[Record]:
    """Write and verify a devdax device with fio, then with a shared memmap, if the kernel can."""
    yield from checks.check("fio dev-dax", _dev_dax)
    device.unbind()
    permit_sharing(True)
    device.bind()
    yield from checks.check("fio dev-dax, shared memmap", _dev_dax)
    permit_sharing(False)


def _dev_dax() -> str:
    path = the_one("dax*.*")
    argv = (f"--filename={path}", "--ioengine=dev-dax", f"--size={16 * ALIGN}", "--bs=4k", *JOB)
    result = _fio(*argv, "--do_verify=1", "--thread")
    expect(result["read"]["io_bytes"] >= 16 * ALIGN, "fio did not read all of it back")
    return f"{result['read']['io_bytes'] >> 20} MiB verified"


def _fio(*argv: str) -> Record:
    """Run a job of fio, and return its result."""
    output = run("fio", "--output-format=json", *argv)
    expect("{" in output, f"fio said no result, but {output.strip()}")
    job: Record = json.loads(output[output.index("{") :])["jobs"][0]
    return job


def stress(device: Device) -> Iterator[Record]:
    """Make the device ordinary memory, and run stress-ng's stressors on it, each verified."""
    dax = the_one("dax*.*").name
    run("daxctl", "reconfigure-device", "--mode=system-ram", dax)
    node = int(Path("/sys/bus/dax/devices", dax, "target_node").read_text())
    checks.take_memory_from(node)
    for name, words in STRESSORS.items():
        yield {"running": f"stress-ng {name}"}
        argv = ("stress-ng", "--verify", "--timeout", str(SECONDS), "--oomable", *words)
        yield judged(f"stress-ng {name}", ran(argv), UNAVAILABLE)
    checks.take_memory_from(None)
    yield {"running": "back to devdax"}
    run("daxctl", "reconfigure-device", "--mode=devdax", "--force", dax)
    # This stressor takes blocks of ordinary memory offline and online again.
    yield {"running": "stress-ng memhotplug"}
    words = ("--memhotplug", "1", "--vm", "1", "--vm-bytes", "64m", "--verify")
    done = ran(("stress-ng", *words, "--timeout", str(SECONDS)))
    yield judged("stress-ng memhotplug", done, UNAVAILABLE)


def selftests(directory: Path) -> Iterator[Record]:
    """Run the kernel's own tests of memory, as far as this guest has what they need."""
    Path("/proc/sys/vm/nr_hugepages").write_text("32")
    # mremap_test fails if random addresses put the heap where it wants to map.
    Path("/proc/sys/kernel/randomize_va_space").write_text("0")
    for program in sorted(directory.iterdir()):
        # hugetlb-soft-offline leaves it off.
        Path("/proc/sys/vm/enable_soft_offline").write_text("1")
        yield from _selftest(program)
    Path("/proc/sys/kernel/randomize_va_space").write_text("2")
    Path("/proc/sys/vm/nr_hugepages").write_text("0")


def kmem(directory: Path) -> Iterator[Record]:
    """Run the kernel's own test of devdax that becomes ordinary memory, if this kernel has it."""
    dax = the_one("dax*.*").name
    run("daxctl", "reconfigure-device", "--mode=system-ram", "--no-online", dax)
    os.environ["DAX_KMEM_TEST_DEV"] = dax
    for program in directory.glob("*.sh"):
        yield from _selftest(program)


def _selftest(program: Path) -> Iterator[Record]:
    yield {"running": program.name}
    done = ran([str(program)])
    for number, record in enumerate(checks.tap(done.stdout), 1):
        # The names of some tests have what they counted.
        name = re.sub(r"\d+(\.\d+)?", "N", record["check"])
        yield {**record, "check": f"{program.name} {number}: {name}"[:LONGEST]}
    yield judged(program.name, done, (SKIPPED,))


def ran(
    argv: Sequence[str],
    directory: Path = Path("/tmp"),
    patience: float = PATIENCE,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, or until `patience` seconds are over.

    Args:
        argv: its command line.
        directory: its directory.
        patience: seconds.
        env: further words of its environment.
    """
    with subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory,
        env={**os.environ, **env},
        start_new_session=True,
    ) as child:
        try:
            output, _ = child.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
            output += f"\nit took longer than {patience} s"
    return subprocess.CompletedProcess(argv, child.returncode, output)


def judged(name: str, done: subprocess.CompletedProcess[str], skipped: Sequence[int]) -> Record:
    """Return the record of a program whose status says how it ended."""
    outcome = "skip" if done.returncode in skipped else "fail" if done.returncode else "pass"
    lines = done.stdout.strip().splitlines()
    reasons = [line for line in lines if "fail:" in line or "error:" in line] or lines[-1:]
    reason = reasons[0] if reasons and outcome != "pass" else ""
    return {"check": name, "outcome": outcome, "said": reason, "must_pass": False}
