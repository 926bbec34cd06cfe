# SPDX-License-Identifier: GPL-2.0-only
"""Guests: memmaps and folio copies in every mode, KUnit suites, and a run of all scenarios."""

import json
import os
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from guest_records import DEVICE, LONG, Guests, check_memmaps, missing_suites, passed
from kernel_lines import BASES

from pagemint import cli
from pagemint.guests.outside import binds, lab
from pagemint.guests.outside.guest import Guest
from pagemint.trees import image, patches, trees
from pagemint.words import DEFERRED_INIT, MODES, PAGE, SHARED, STRUCT_PAGE

SCENARIOS = ("fsdax", "fsdax-mem", "devdax", "devdax-mem", "private")
REPLICATED = ("fsdax", "devdax", "private")
"""The scenarios of make replicate."""

SHARED_BLOCKS = {"fsdax": 2, "fsdax-mem": 1, "devdax": 2, "devdax-mem": 1, "private": 1}
"""Blocks of 2 MiB of a shared memmap; the first section of a device can hold it: it has its own."""


@pytest.fixture(scope="module", params=BASES)
def line(request: pytest.FixtureRequest) -> str:
    """The kernel line of the guests."""
    return str(request.param)


@pytest.fixture(scope="module")
def guests(line: str) -> Guests:
    """The records of guests with the kernels, and their consoles.

    Base takes minutes to build, so make check leaves it out: it compares thousands of memmaps of
    the native host with base's, and the modes here with `slow`, which is mainline's code.
    """
    base, patched = trees.pair(patches.source_for(line, None))
    kernels = [image.kernel(patched, ("vm", "kunit", "shared"))]
    if os.environ.get("PAGEMINT_VM"):
        kernels.insert(0, image.kernel(base, ("vm",)))
    # With three CPUs, one node has two, which the KUnit suite of threads needs.
    guest = Guest("tcg", DEVICE, 600, cpus=3)
    names = ",".join((*SCENARIOS, "folio"))
    return {kernel.variant: guest.run(kernel, names, 2, DEVICE) for kernel in kernels}


def test_folios_are_copied_in_a_guest(guests: Guests) -> None:
    for records, _console in guests.values():
        folios = [record for record in records if record["scenario"] == "folio"]
        copies = [record["function"] for record in folios if "ns" in record]
        assert copies == ["folio_copy", "folio_mc_copy"] * 2


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_modes_leave_the_same_memmap(scenario: str, line: str, guests: Guests) -> None:
    modes = MODES
    shared = scenario in SHARED_BLOCKS and "memmap_shared" in patches.suites(line)
    check_memmaps(scenario, guests, (*modes, SHARED) if shared else modes)


@pytest.mark.parametrize("scenario", SHARED_BLOCKS)
def test_a_shared_memmap_takes_few_blocks(scenario: str, line: str, guests: Guests) -> None:
    if "memmap_shared" not in patches.suites(line):
        pytest.skip(f"the series has no shared memmap for Linux {line}")
    rows = binds.rows_of(scenario, {"patched": guests["patched"][0]}, DEVICE)
    memmap_bytes = {row.mode: row.memmap_bytes for row in rows}
    assert memmap_bytes.pop(SHARED) == SHARED_BLOCKS[scenario] * (2 << 20)
    # Tail pages of devdax are deduplicated in ordinary memory: two pages of eight are left.
    part = 4 if scenario == "devdax-mem" else 1
    assert set(memmap_bytes.values()) == {DEVICE // PAGE * STRUCT_PAGE // part}


def test_the_kunit_suites_pass(line: str, guests: Guests) -> None:
    suites = patches.suites(line)
    assert len(suites) > 3
    assert missing_suites(suites, guests["patched"][1]) == []


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of a short run of all scenarios, with kernels from the user's own cache."""
    out = tmp_path_factory.mktemp("vm") / "vm.json"
    argv = ["vm", "--size", "512MiB", "--rebinds", "2", "--accel", "tcg", "--json", str(out)]
    assert cli.main(argv) == 0
    contents: dict[str, Any] = json.loads(out.read_text())
    return contents


@LONG
def test_binds_first_uses_and_unbinds_are_timed(result: dict[str, Any]) -> None:
    # The times of emulated guests must not be compared.
    assert not result["host"]["times_comparable"]
    rows = [row for row in result["rows"] if row["case"]["workload"] in REPLICATED]
    assert {(row["case"]["workload"], row["tree"]) for row in rows} == {
        (name, tree) for name in REPLICATED for tree in ("base", "patched")
    }
    for row in rows:
        for part in ("bind_ms", "use_ms", "unbind_ms"):
            assert len(row[part]) == 2, (row["case"], row["tree"], part)
            assert min(row[part]) > 0, (row["case"], row["tree"], part)


PASSED = {
    "fsdax-files": 2,
    "shared-fsdax-dev": 10,
    "shared-fsdax-mem": 10,
    "devdax-mapping": 1,
    "devdax-mem-mapping": 1,
    "shared-devdax-dev": 10,
    "shared-devdax-mem": 10,
    "devdax-pins": 5,
    "devdax-mem-pins": 5,
    "devdax-unbinds": 2,
    "devdax-mem-unbinds": 2,
    "devdax-1g-forks": 1,
    "kmem": 2,
    "kmem-again": 1,
    "virtio-mem": 9,
    "boot": 1,
    "background": 1 + 11 * len(DEFERRED_INIT),
    "migrate": 2,
    "shared-limits": 6,
}
"""The number of checks of each scenario, all of which pass."""

WITHOUT_BASE = ("shared-limits", "devdax-unbinds", "devdax-mem-unbinds", "devdax-1g-forks")


@LONG
def test_the_devices_work_as_memory(result: dict[str, Any]) -> None:
    for name in SCENARIOS:
        rows = [row for row in result["rows"] if row["case"]["workload"] == name]
        firsts = [(row["tree"], row["mode"]) for row in rows if row["first_bind_ms"]]
        expected = [] if name == "private" else [("base", ""), ("patched", "streaming")]
        assert firsts == expected
    passed = {
        (check["scenario"], check["name"])
        for check in result["checks"]
        if check["must_pass"] and check["outcome"] == "pass" and check["tree"] == "patched"
    }
    assert Counter(scenario for scenario, _name in passed) == PASSED
    skipped = [check for check in result["checks"] if check["scenario"] in WITHOUT_BASE]
    count = sum(PASSED[name] for name in WITHOUT_BASE)
    assert [check["outcome"] for check in skipped] == ["skip", "pass"] * count
    findings = {check["said"] for check in result["checks"] if check["scenario"] == "kmem-again"}
    assert findings
    assert all("2 times under a load, 2 holes" in finding for finding in findings)
    cases = [row["case"] for row in result["rows"] if row["case"]["folio_bytes"]]
    copied = [(case["workload"], case["function"]) for case in cases]
    assert copied[::2] == copied[1::2]
    assert copied[::2] == [
        ("migrate", ""),
        ("migrate-demote", ""),
        ("migrate-promote", ""),
        ("folio", "folio_copy"),
        ("folio", "folio_mc_copy"),
    ]
    moving = [check for check in result["checks"] if check["scenario"] == "migrate-selftest"]
    assert [check["outcome"] for check in moving] == ["pass"] * 12
    selftests = [check["outcome"] for check in result["checks"] if not check["must_pass"]]
    assert selftests.count("pass") > 50
    assert "fail" not in selftests


@LONG
@pytest.mark.usefixtures("in_user_cache")
def test_fio_finds_what_it_wrote(line: str) -> None:
    guest = Guest("tcg", 1 << 30, 3600)
    names = [name for name in lab.SCENARIOS[lab.FOREIGN].parts if name.startswith("fio-")]
    for tree in trees.pair(patches.source_for(line, None)):
        records, _ = guest.run(image.kernel(tree, lab.FRAGMENTS), ",".join(names), 2, DEVICE)
        outcomes = {(r["scenario"], r["check"]): r["outcome"] for r in records}
        assert len(outcomes) == 9
        assert set(outcomes.values()) == {"pass"}, outcomes


@LONG
@pytest.mark.usefixtures("in_user_cache")
def test_pages_of_virtio_mem_are_in_the_states_of_base(line: str) -> None:
    findings = []
    guest = replace(Guest("tcg", DEVICE, 3600), **lab.SCENARIOS["virtio-mem"].guest)
    for tree in trees.pair(patches.source_for(line, None)):
        records, _ = guest.run(image.kernel(tree, lab.FRAGMENTS), "virtio-mem", 1, DEVICE)
        # Each finding has a digest of the state of each page.
        findings.append(passed(records))
        assert len(findings[-1]) == PASSED["virtio-mem"]
    assert findings[0] == findings[1]
