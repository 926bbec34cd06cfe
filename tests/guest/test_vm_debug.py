# SPDX-License-Identifier: GPL-2.0-only
"""The scenarios on debug kernels, which take half an hour to build: part of `make check-vm`."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from guest_records import LONG, guest_kernel, passed

from pagemint.base import cache, files, machine
from pagemint.base.errors import Failure
from pagemint.base.run import run as run_program
from pagemint.guests.outside import checks, lab, runs, x86
from pagemint.guests.outside.guest import Guest, complaints
from pagemint.guests.outside.lab import FRAGMENTS
from pagemint.guests.outside.scenarios import Record
from pagemint.trees import image, patches, trees
from pagemint.trees.image import Kernel

pytestmark = LONG

DEVICE = 512 << 20
BINDS = ("fsdax", "fsdax-mem", "devdax", "devdax-mem", "private")
USES = ("fsdax-files", "devdax-mapping", "devdax-mem-mapping", "kmem", "migrate", "folio")
SHARED_USES = (
    ("shared-fsdax-mem", "shared-fsdax-dev", "shared-fails-mem", "shared-fails-dev"),
    ("shared-devdax-mem", "devdax-unbinds", "devdax-mem-unbinds", "shared-devdax-dev"),
)
CYCLES = 1000
SHARED = 3 << 30  # bytes of a device whose memmap two threads share
SHARED_BINDS = 100
HOTPLUGS = 100
OBSTACLES = {
    "page_owner=on": "page_ext",
    "sysctl.vm.mem_profiling=1,compressed": "memory allocation profiling",
    "page_poison=1": "page poisoning",
    "debug_pagealloc=on": "debug_pagealloc",
    "init_on_free=1": "init_on_free",
    "page_alloc.shuffle=1": "page_alloc.shuffle",
    "kho=on": "kexec handover",
    "crashkernel=64M": "crashkernel",
}
"""Options with which boot ignores deferred_init=, and the reason that the log gives."""
PAGE_REF = ("DEBUG_KERNEL", "FTRACE", "ENABLE_DEFAULT_TRACERS", "DEBUG_PAGE_REF")
"""The options of a kernel with the tracepoint page_ref_set."""
HIBERNATE = """#!/bin/busybox sh
/bin/busybox --install /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
grep Deferred /proc/meminfo
dd if=/dev/urandom of=/tmp/data bs=1M count=64 status=none
md5sum /tmp/data >/tmp/sum
mkswap /dev/pmem0
swapon /dev/pmem0
echo test_resume >/sys/power/disk
echo disk >/sys/power/state && echo resumed
md5sum -c /tmp/sum
grep Deferred /proc/meminfo
poweroff -f
"""
"""An init that writes an image of its memory to a pmem device, and resumes from it at once."""

Records = list[Record]
Runner = Callable[..., Records]


@pytest.fixture(scope="module")
def patched() -> Kernel:
    """The patched kernel with DEBUG_VM, lockdep, kmemleak and page_owner; its engine runs."""
    return guest_kernel("patched", *FRAGMENTS, "debug")


@pytest.fixture(scope="module")
def debug(patched: Kernel) -> dict[str, Kernel]:
    """Both kernels with these options."""
    return {"base": guest_kernel("base", *FRAGMENTS, "debug"), "patched": patched}


@pytest.fixture(scope="module")
def run() -> Runner:
    """Return a function that runs scenarios in an emulated guest."""
    base, _ = trees.pair(patches.source_for("7.3", None))
    guest = Guest("tcg", DEVICE, 3600, directories={"selftests": image.selftests(base)})

    def start(kernel: Kernel, scenarios: str, rebinds: int = 2) -> Records:
        return guest.run(kernel, scenarios, rebinds, DEVICE)[0]

    return start


def hashes(records: Records, scenario: str) -> set[str]:
    return {r["hash"] for r in records if r["scenario"] == scenario and "hash" in r}


def test_debug_kernels_bring_up_the_same_memory_maps(run: Runner, debug: dict[str, Kernel]) -> None:
    records = {
        name: run(kernel, ",".join((*BINDS, *USES, "private-hmm")))
        for name, kernel in debug.items()
    }
    outcomes = [check for name, part in records.items() for check in checks.checks_of(name, part)]
    assert checks.judge(outcomes) == 0
    for scenario in BINDS:
        assert len(hashes(records["base"], scenario)) == 1
        assert hashes(records["patched"], scenario) == hashes(records["base"], scenario)


@pytest.mark.parametrize("uses", SHARED_USES)
def test_devices_share_a_memmap_until_they_are_mapped(
    uses: tuple[str, ...], run: Runner, debug: dict[str, Kernel]
) -> None:
    both = checks.checks_of("patched", run(debug["patched"], ",".join(uses)))
    # Where base would crash, a skipped check stands for it.
    outcomes = [check for check in both if check.tree == "patched"]
    assert {check.scenario for check in outcomes} == {*uses}
    assert {(check.outcome, check.must_pass) for check in outcomes} == {("pass", True)}


def test_threads_share_the_memory_maps_of_binds(debug: dict[str, Kernel]) -> None:
    # A thread for each whole 16 MiB of memmap. The devdax device holds its own, which leaves less.
    most = {"pfn": 3, "dax": 2}
    guest = Guest("tcg", SHARED, 3600, cpus=3)
    records, _ = guest.run(debug["patched"], "threads", SHARED_BINDS, SHARED)
    for kind, threads in most.items():
        mine = [record for record in records if record["kind"] == kind]
        slow, *shared = [record["helpers"] for record in mine]
        assert slow == 0
        # The binding thread is one of them. A helper that starts too late finds no work.
        assert set(shared) <= set(range(1, threads + 1))
        assert threads in shared
        assert len({record["hash"] for record in mine}) == 1


def test_a_thousand_binds_leak_nothing(run: Runner, debug: dict[str, Kernel]) -> None:
    assert list(passed(run(debug["patched"], "leaks", CYCLES))) == ["memory", "kmemleak"]


def test_memory_comes_and_goes_under_a_load(run: Runner, debug: dict[str, Kernel]) -> None:
    (check,) = checks.checks_of("patched", run(debug["patched"], "kmem-again", HOTPLUGS))
    assert (check.outcome, check.said.partition(" times")[0]) == ("pass", str(HOTPLUGS))


def test_memory_may_be_deferred(patched: Kernel) -> None:
    # The memmap is poisoned: a read of a struct page that nobody has written is a BUG.
    guest = replace(Guest("tcg", DEVICE, 3600), **lab.SCENARIOS["background"].guest)
    outcomes = runs.check_background(guest, patched)
    assert {check.outcome for check in outcomes if check.tree == "patched"} == {"pass"}


def test_a_read_of_a_deferred_struct_page_is_reported(patched: Kernel) -> None:
    guest = Guest("tcg", DEVICE, 3600, append="deferred_init=lazy")
    with pytest.raises(Failure, match=r"in background-stray \(deferred\): .*(Oops|BUG)"):
        guest.run(patched, "background-stray", 1, DEVICE)


def log_of_lazy_boot(kernel: Kernel, option: str) -> str:
    """Return the log of a boot with deferred_init=lazy and a further option."""
    words = f"deferred_init=lazy loglevel=7 {option}"
    argv = x86.bare_argv(kernel.image, 4 << 30, (), words)
    log = run_program(argv, limit=600, what="a guest without user space")
    assert x86.NO_INIT in log
    assert ("sections are not initialised yet" in log) == ("deferred_init: eager" not in log)
    return log.replace("\r", "")


def test_features_that_need_all_struct_pages_force_eager(patched: Kernel) -> None:
    assert "deferred_init: eager" not in log_of_lazy_boot(patched, "")
    for option, reason in OBSTACLES.items():
        log = log_of_lazy_boot(patched, option)
        assert f"deferred_init: eager, because of {reason}\n" in log, option


def test_hibernation_keeps_memory(patched: Kernel, tmp_path: Path) -> None:
    # Without virtio, whose devices cannot all be suspended.
    init, archive = tmp_path / "init", tmp_path / "archive"
    init.write_text(HIBERNATE)
    folders = [f"dir /{name} 0755 0 0" for name in ("bin", "dev", "proc", "sys", "tmp")]
    programs = (f"file /init {init} 0755 0 0", "file /bin/busybox /bin/busybox 0755 0 0")
    (tmp_path / "files").write_text(
        "\n".join([*folders, *programs, "nod /dev/console 600 0 0 c 5 1"])
    )
    make = (patched.built / "usr/gen_init_cpio", "-o", archive, tmp_path / "files")
    run_program(make, what="making an initramfs")
    words = "rdinit=/init deferred_init=lazy memmap=1G!7G"
    argv = x86.bare_argv(patched.image, 6 << 30, ("-initrd", str(archive)), words)
    log = run_program(argv, limit=3600, what="a guest that hibernates").replace("\r", "")
    assert complaints(log) == []
    assert "\nresumed\n/tmp/data: OK\n" in log
    before, after = map(int, re.findall(r"^Deferred: +(\d+) kB$", log, re.MULTILINE))
    assert before > 0 == after


@pytest.mark.usefixtures("in_user_cache")
def test_kasan_has_the_engine_off(run: Runner, debug: dict[str, Kernel]) -> None:
    kasan = guest_kernel("patched", *FRAGMENTS, "kasan")
    records = run(kasan, ",".join(BINDS + USES))
    # No parameter to choose a mode with.
    assert {record["mode"] for record in records if "mode" in record} == {"base", "shared"}
    assert len(passed(records)) > 4
    base = run(debug["base"], "fsdax")
    assert len(hashes(records, "fsdax")) == len(hashes(base, "fsdax")) == 1
    assert "deferred_init: eager, because of KASAN\n" in log_of_lazy_boot(kasan, "")


def built_by_kunit() -> list[str | Path]:
    """Return the kernel's own kunit.py, told to run the kernel that it built."""
    _, patched = trees.pair(patches.source_for("7.3", None))
    configs = [files.GUESTS / "config" / f"{name}.config" for name in ("kunit", "shared")]
    tool: list[str | Path] = [sys.executable, "-B", patched.path / "tools/testing/kunit/kunit.py"]
    options = ["--arch=x86_64", *(f"--kunitconfig={config}" for config in configs)]
    options += [f"--kconfig_add=CONFIG_{name}=y" for name in PAGE_REF]

    def make(work: Path) -> None:
        argv = [*tool, "build", *options, f"--jobs={machine.cpus()}", f"--build_dir={work}"]
        run_program(argv, env=trees.environment(), what="kunit.py build")

    key = cache.digest(patched.key, str(patched.path), *configs, *PAGE_REF, machine.compiler())
    built = cache.entry("kunit", key, make, in_place=True)
    return [*tool, "exec", *options, f"--build_dir={built}"]


@pytest.mark.usefixtures("in_user_cache")
def test_the_kunit_suites_pass_through_the_kernels_own_tool(tmp_path: Path) -> None:
    # kunit.py asks for KVM first, but /dev/kvm can exist and not work.
    emulator = tmp_path / "qemu-system-x86_64"
    emulator.write_text(
        "#!/bin/sh\nfor word; do shift; [ $word = kvm ] && word=tcg; "
        f'set -- "$@" "$word"; done\nexec {shutil.which(emulator.name)} "$@"\n'
    )
    emulator.chmod(0o755)
    env = {**trees.environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    told = tmp_path / "result.json"
    # kunit.py fails if a test fails.
    run_program([*built_by_kunit(), f"--json={told}"], env=env, limit=600, what="kunit.py exec")
    groups = json.loads(told.read_text())["sub_groups"]
    assert {group["name"] for group in groups} >= patches.suites("7.3")
    ends = {case["name"]: case["status"] for group in groups for case in group["test_cases"]}
    assert set(ends.values()) == {"PASS"}
