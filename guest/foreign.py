# SPDX-License-Identifier: GPL-2.0-only
"""Runs other people's suites on the devices: fio, stress-ng, and the kernel's own selftests."""

import ctypes
import fcntl
import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import checks
from checks import LIBC, MPOL_BIND, Record, expect
from devices import ALIGN, Device, run, the_one
from filesystems import SMALL, make, mounted

ENGINES = ("psync", "mmap")
SIZE = "24m"  # of a file of fio
JOB = ("--name=job", "--rw=randwrite", "--verify=crc32c", "--verify_fatal=1", "--randseed=7")
SYS_SET_MEMPOLICY = 238
SECONDS = 20  # of a stressor
STRESSORS = {
    "vm": ("--vm", "2", "--vm-bytes", "48m", "--vm-method", "all"),
    "mmap": ("--mmap", "2", "--mmap-bytes", "48m"),
    "mremap": ("--mremap", "2", "--mremap-bytes", "16m"),
    "madvise": ("--madvise", "2"),
    "shm": ("--shm-sysv", "2", "--shm-sysv-bytes", "16m"),
    "memthrash": ("--memthrash", "1"),
    "bigheap": ("--bigheap", "1", "--bigheap-bytes", "256m"),
}
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2  # XFS_IOC_GOINGDOWN, which ext4 has too
UNAVAILABLE = (3, 4)  # statuses of stress-ng: no resources, not implemented


def fsdax(device: Device) -> Iterator[Record]:
    """Write files with fio in each file system, cut it off without a sync, and verify."""
    for kind in SMALL:
        for engine in ENGINES:
            name = f"fio {engine} on {kind}"
            yield {"running": name}
            yield checks.check(name, lambda k=kind, e=engine: _cut_off(k, e, device))


def _cut_off(kind: str, engine: str, device: Device) -> str:
    device.unbind()
    device.bind()
    block = the_one("pmem*", "/dev")
    make(SMALL[kind], block)
    with mounted(kind, block) as directory:
        job = (f"--directory={directory}", f"--ioengine={engine}", f"--size={SIZE}", *JOB)
        written = _fio(*job, "--bsrange=512-64k", "--end_fsync=1", "--do_verify=0")
        _shut_down(directory)
    with mounted(kind, block) as directory:
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
    """Write and verify a devdax device with fio."""
    yield {"running": "fio dev-dax"}
    yield checks.check("fio dev-dax", _dev_dax)


def _dev_dax() -> str:
    path = the_one("dax*.*", "/dev")
    argv = (f"--filename={path}", "--ioengine=dev-dax", f"--size={16 * ALIGN}", "--bs=4k", *JOB)
    found = _fio(*argv, "--do_verify=1", "--thread")
    expect(found["read"]["io_bytes"] >= 16 * ALIGN, "fio did not read all of it back")
    return f"{found['read']['io_bytes'] >> 20} MiB verified"


def _fio(*argv: str) -> Record:
    """Run a job of fio, and return its result."""
    said = run("fio", "--output-format=json", *argv)
    job: Record = json.loads(said[said.index("{") :])["jobs"][0]
    return job


def stress(device: Device) -> Iterator[Record]:
    """Make the device ordinary memory, and run stress-ng's stressors on it, each verified."""
    dax = the_one("dax*.*", "/dev").name
    run("daxctl", "reconfigure-device", "--mode=system-ram", dax)
    node = int(Path("/sys/bus/dax/devices", dax, "target_node").read_text())
    for name, words in STRESSORS.items():
        argv = ("stress-ng", "--verify", "--timeout", str(SECONDS), "--oomable", *words)
        yield from _outcome(f"stress-ng {name}", argv, lambda: _take_memory_from(node))
    yield {"running": "back to devdax"}
    run("daxctl", "reconfigure-device", "--mode=devdax", "--force", dax)
    # While blocks go offline and online by themselves.
    argv = ("stress-ng", "--memhotplug", "1", "--vm", "1", "--vm-bytes", "64m", "--verify")
    yield from _outcome("stress-ng memhotplug", (*argv, "--timeout", str(SECONDS)), lambda: None)


def _take_memory_from(node: int) -> None:
    """Bind the memory of this process, and of what it becomes, to a node."""
    mask = (ctypes.c_ulong * 16)()
    mask[node // 64] = 1 << node % 64
    call = (SYS_SET_MEMPOLICY, MPOL_BIND, mask, 1024)
    LIBC.syscall(*(ctypes.c_long(word) if isinstance(word, int) else word for word in call))


def _outcome(name: str, argv: Sequence[str], before: Callable[[], None]) -> Iterator[Record]:
    """Run a suite whose status says how it ended."""
    yield {"running": name}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, preexec_fn=before)
    outcome = "pass" if done.returncode == 0 else "fail"
    if done.returncode in UNAVAILABLE:
        outcome = "skip"
    said = (done.stderr or done.stdout).strip().splitlines()
    told = said[-1] if said and outcome != "pass" else ""
    yield {"check": name, "outcome": outcome, "said": told, "must_pass": False}


def selftests(directory: Path) -> Iterator[Record]:
    """Run the kernel's own tests of memory, as far as this guest has what they need."""
    Path("/proc/sys/vm/nr_hugepages").write_text("32")
    for program in sorted(directory.iterdir()):
        yield {"running": program.name}
        # Some read and write files beside them.
        done = subprocess.run(
            [program], capture_output=True, text=True, check=False, cwd="/tmp", timeout=600
        )
        found = list(checks.tap(done.stdout))
        for record in found:
            yield {**record, "check": f"{program.name}: {record['check']}"}
        if not found:
            outcome = {0: "pass", 4: "skip"}.get(done.returncode, "fail")
            said = (done.stdout + done.stderr).strip().splitlines()
            told = said[-1] if said and outcome != "pass" else ""
            yield {"check": program.name, "outcome": outcome, "said": told, "must_pass": False}
    Path("/proc/sys/vm/nr_hugepages").write_text("0")
