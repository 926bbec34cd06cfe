# SPDX-License-Identifier: GPL-2.0-only
"""Checks that a device works as memory, and that its data survives a rebind."""

import ctypes
import mmap
import os
import random
import re
import resource
import signal
import struct
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec

from pagemint.guests.inside.devices import ALIGN, Device, run, the_one
from pagemint.guests.inside.filesystems import SMALL, make, mounted

Record = dict[str, Any]
"""A JSON object that a scenario yields; scenarios.py writes it for the lab."""

PAGE = mmap.PAGESIZE
FILE = 8 << 20  # bytes of a file
CHUNKS = 8  # of ALIGN bytes each, spread over a device
ANONYMOUS = 32 << 20  # bytes of a process on a device that is ordinary memory
HUGE_PAGES = 16
SYNC = 0x03 | 0x80000  # MAP_SHARED_VALIDATE and MAP_SYNC
MPOL_DEFAULT, MPOL_BIND, MPOL_MF_STRICT, MPOL_MF_MOVE = 0, 2, 1, 2
SYS_MBIND, SYS_SET_MEMPOLICY = 237, 238
NODES = 1024  # bits of a mask of nodes
SLACK = 64  # faults of the program itself, beside those of the chunks
LIBC = ctypes.CDLL(None, use_errno=True)

_Params = ParamSpec("_Params")


def check(
    name: str, work: Callable[_Params, str], *args: _Params.args, **kwargs: _Params.kwargs
) -> Iterator[Record]:
    """Do a check, and yield a record before it and one after it.

    Args:
        name: its name.
        work: returns the finding, and raises if the check fails.
        args: the arguments of `work`.
        kwargs: its named arguments.
    """
    yield {"running": name}
    try:
        finding, outcome = work(*args, **kwargs), "pass"
    except (OSError, RuntimeError) as error:
        finding, outcome = str(error), "fail"
    yield {"check": name, "outcome": outcome, "said": finding, "must_pass": True}


def child(work: Callable[[], object]) -> int:
    """Start a process that does `work` and ends; return its PID."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
        status = 0
    except Exception:  # an exception must not reach the code of the parent
        traceback.print_exc()
    finally:
        os._exit(status)


def status_of(pid: int) -> int:
    """Wait for the end of a process; return its status, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def pattern(seed: int, size: int) -> bytes:
    """Return `size` pseudo-random bytes."""
    return random.Random(seed).randbytes(size)


def expect(holds: bool, problem: str) -> None:
    """Fail the check with a message unless a condition holds."""
    if not holds:
        raise RuntimeError(problem)


def files(device: Device) -> Iterator[Record]:
    """Keep files on a bound fsdax device over a rebind, in each file system."""
    for kind in SMALL:
        yield from check(f"files on {kind}", _keep_file, kind, device)


def _keep_file(kind: str, device: Device) -> str:
    make(SMALL[kind])
    halves = pattern(1, FILE), pattern(2, FILE)
    with mounted(kind) as directory, (directory / "data").open("wb+") as file:
        file.write(halves[0])
        file.write(bytes(FILE))
        file.flush()
        # MAP_SYNC fails unless the file system maps the device itself.
        with mmap.mmap(file.fileno(), 2 * FILE, flags=SYNC) as mapped:
            expect(mapped[:FILE] == halves[0], "what was written is not what is mapped")
            mapped[FILE:] = halves[1]
            mapped.flush()
        os.fsync(file.fileno())
    device.unbind()
    device.bind()
    with mounted(kind) as directory:
        expect((directory / "data").read_bytes() == b"".join(halves), "the data changed")
    return f"{2 * FILE >> 20} MiB held over a rebind"


def mapping(device: Device) -> Iterator[Record]:
    """Map a bound devdax device, with faults of ALIGN bytes, and again after a rebind."""
    yield from check("mapping", _map, device)


def _map(device: Device) -> str:
    faults = _write_chunks()
    device.unbind()
    device.bind()
    with _mapped() as (memory, offsets):
        for number, offset in enumerate(offsets):
            unchanged = memory[offset : offset + ALIGN] == pattern(number, ALIGN)
            expect(unchanged, f"the data at {offset} changed")
    return f"{CHUNKS * ALIGN >> 20} MiB by {faults} faults held over a rebind"


def _write_chunks() -> int:
    """Write the chunks of the device; return how many faults that took."""
    chunks = [pattern(number, ALIGN) for number in range(CHUNKS)]
    with _mapped() as (memory, offsets):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for chunk, offset in zip(chunks, offsets, strict=True):
            memory[offset : offset + ALIGN] = chunk
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    expect(CHUNKS <= faults < CHUNKS + SLACK, f"{CHUNKS} times {ALIGN} bytes: {faults} faults")
    return faults


@contextmanager
def _mapped() -> Iterator[tuple[mmap.mmap, list[int]]]:
    """Map the whole device; yield its memory and the offsets of the chunks, up to its end."""
    path = the_one("dax*.*")
    size = int(Path("/sys/bus/dax/devices", path.name, "size").read_text())
    with path.open("rb+", buffering=0) as file, mmap.mmap(file.fileno(), size) as memory:
        last = size // ALIGN - 1
        yield memory, [ALIGN * (number * last // (CHUNKS - 1)) for number in range(CHUNKS)]


def kmem(device: Device) -> Iterator[Record]:
    """Make a bound devdax device ordinary memory, use it, and make it a device again."""
    dax = the_one("dax*.*").name
    yield from check("system-ram", _use_as_ram, dax)
    yield from check("back to devdax", _use_as_devdax, dax, device)


def _use_as_ram(dax: str) -> str:
    run("daxctl", "reconfigure-device", "--mode=system-ram", dax)
    sysfs = Path("/sys/bus/dax/devices", dax)
    start = int((sysfs / "resource").read_text(), 0)
    end = start + int((sysfs / "size").read_text())
    node = int((sysfs / "target_node").read_text())
    data = pattern(3, ANONYMOUS)
    with mmap.mmap(-1, ANONYMOUS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        address = address_of(memory)
        bind_memory(address, ANONYMOUS, node)
        memory[:] = data
        frames = frames_of(address, ANONYMOUS)
        outside = sum(not start <= frame * PAGE < end for frame in frames)
        expect(not outside, f"{outside} of {len(frames)} pages are not on the device")
        expect(memory[:] == data, "the data changed")
    return f"{ANONYMOUS >> 20} MiB of a process on the device, node {node}"


def address_of(memory: mmap.mmap) -> int:
    """Return the address of `memory`."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def bind_memory(address: int, size: int, node: int) -> None:
    """Bind mapped memory to `node`."""
    flags = MPOL_MF_STRICT | MPOL_MF_MOVE
    system_call(SYS_MBIND, address, size, MPOL_BIND, _node_mask(node), NODES, flags)


def take_memory_from(node: int | None) -> None:
    """Bind the memory of this process, and of programs that it starts, to a node or to none."""
    if node is None:
        system_call(SYS_SET_MEMPOLICY, MPOL_DEFAULT, None, 0)
    else:
        system_call(SYS_SET_MEMPOLICY, MPOL_BIND, _node_mask(node), NODES)


def _node_mask(node: int) -> object:
    mask = (ctypes.c_ulong * (NODES // 64))()
    mask[node // 64] = 1 << node % 64
    return mask


def system_call(number: int, *args: object) -> None:
    """Make a system call that returns 0; OSError if it fails."""
    # ctypes passes an int as 32 bits.
    longs = (ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in (number, *args))
    if LIBC.syscall(*longs):
        raise OSError(ctypes.get_errno(), f"system call {number} failed")


def frames_of(address: int, size: int) -> list[int]:
    """Return the page frame numbers of mapped memory; 0 for a page that is not present."""
    with Path("/proc/self/pagemap").open("rb") as file:
        file.seek(address // PAGE * 8)
        entries = struct.unpack(f"<{size // PAGE}Q", file.read(size // PAGE * 8))
    return [entry & (1 << 55) - 1 if entry >> 63 else 0 for entry in entries]


def _use_as_devdax(dax: str, device: Device) -> str:
    run("daxctl", "reconfigure-device", "--mode=devdax", "--force", dax)
    return _map(device)


def hmm(program: Path, module: str) -> Iterator[Record]:
    """Run the kernel's own tests of device-private memory; a record for each."""
    run("insmod", module)
    Path("/proc/sys/vm/nr_hugepages").write_text(str(HUGE_PAGES))
    yield from selftest(program)
    Path("/proc/sys/vm/nr_hugepages").write_text("0")
    run("rmmod", "test_hmm")


def selftest(program: Path) -> Iterator[Record]:
    """Run a program of the kernel's own tests; a record for each."""
    yield {"running": program.name}
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    records = list(tap(done.stdout))
    if not records:
        raise RuntimeError(f"{program.name} ended with {done.returncode} and no result")
    yield from records


def tap(output: str) -> Iterator[Record]:
    """Read the results of a selftest; the messages of a test come before its result."""
    message = ""
    for line in output.splitlines():
        result = re.match(r"(not )?ok \d+ (.*?)(?:(?<= )# SKIP ?(.*))?$", line)
        if not result:
            message = line.removeprefix("# ")
            continue
        failed, name, reason = result.groups()
        outcome = "skip" if reason is not None else "fail" if failed else "pass"
        finding = {"skip": reason, "fail": message, "pass": ""}[outcome]
        # Some tests are skipped without a name.
        name = name.rstrip() or reason
        yield {"check": name, "outcome": outcome, "said": finding, "must_pass": False}
