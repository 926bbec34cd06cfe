# SPDX-License-Identifier: GPL-2.0-only
"""The scenarios on debug kernels, which take half an hour to build: part of `make check-vm`."""

import os
from typing import Any

import pytest

from pagemint import build, series, vm, vmkernel
from pagemint.measure import MODES
from pagemint.vmkernel import Kernel

pytestmark = pytest.mark.skipif(
    not os.environ.get("PAGEMINT_VM"), reason="half an hour of builds: run make check-vm"
)

DEVICE = 512 << 20
BINDS = ("fsdax", "devdax", "devdax-mem", "private")
CYCLES = 1000
LEAK = 4 << 20  # bytes that may come and go with the page cache and the lists of free objects

Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def debug() -> dict[str, Kernel]:
    """Both kernels with DEBUG_VM, lockdep, kmemleak and page_owner, where the engine runs."""
    trees = build.trees(series.source_for("7.3", None))
    return {tree.variant: vmkernel.kernel(tree, ("vm", "debug")) for tree in trees}


@pytest.fixture(scope="module")
def kasan() -> Kernel:
    """The patched kernel with KASAN, where the engine is off."""
    _, patched = build.trees(series.source_for("7.3", None))
    return vmkernel.kernel(patched, ("vm", "kasan"))


def run(kernel: Kernel, scenarios: str, rebinds: int = 2) -> Records:
    """Run scenarios in an emulated guest."""
    arguments = ["--scenario", scenarios, "--rebinds", str(rebinds)]
    arguments += ["--private-size", str(DEVICE)]
    return vm.Guest("tcg", DEVICE, 3600).run(kernel, arguments)[0]


def hashes(records: Records, scenario: str) -> set[str]:
    return {r["hash"] for r in records if r["scenario"] == scenario and "hash" in r}


def test_debug_kernels_bring_up_the_same_memory_maps(debug: dict[str, Kernel]) -> None:
    records = {name: run(kernel, ",".join(BINDS)) for name, kernel in debug.items()}
    for scenario in BINDS:
        assert len(hashes(records["base"], scenario)) == 1
        assert hashes(records["patched"], scenario) == hashes(records["base"], scenario)


def test_an_active_tracepoint_takes_the_slow_path(debug: dict[str, Kernel]) -> None:
    (base,) = run(debug["base"], "trace")
    patched = run(debug["patched"], "trace")
    assert [record["mode"] for record in patched] == list(MODES)
    assert base["events"] >= base["pages"]
    assert {record["events"] for record in patched} == {base["events"]}


def test_the_message_names_the_mode(debug: dict[str, Kernel]) -> None:
    for record in run(debug["patched"], "messages"):
        assert record["message"].startswith("memmap_init_zone_device initialised ")
        assert record["message"].endswith(f"us ({record['mode']})")


def test_a_thousand_binds_leak_nothing(debug: dict[str, Kernel]) -> None:
    before, after, kmemleak = run(debug["patched"], "leaks", CYCLES)
    assert kmemleak["kmemleak"] == ""
    assert before["MemAvailable"] - after["MemAvailable"] < LEAK
    assert after["Slab"] - before["Slab"] < LEAK
    assert after["PageTables"] - before["PageTables"] < LEAK


def test_kasan_has_the_engine_off(kasan: Kernel, debug: dict[str, Kernel]) -> None:
    records = run(kasan, ",".join(BINDS))
    # No parameter to choose a mode with.
    assert {record["mode"] for record in records} == {"base"}
    base = run(debug["base"], "fsdax")
    assert len(hashes(records, "fsdax")) == len(hashes(base, "fsdax")) == 1
