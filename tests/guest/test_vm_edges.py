# SPDX-License-Identifier: GPL-2.0-only
"""Guests at the edges: little memory, CPUs that go, odd devices, more nodes, kexec, bad memory."""

from collections.abc import Sequence

import pytest
from guest_records import LONG, Guests, check_memmaps, guest_kernel, passed

from pagemint.guests.outside import checks, runs
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import FRAGMENTS
from pagemint.trees.image import Kernel
from pagemint.words import BASE, MODES, PAGE, SHARED

pytestmark = LONG

DEVICE = 512 << 20  # bytes
BINDS = ("fsdax", "fsdax-mem", "devdax", "devdax-mem")
USES = ("fsdax-files", "devdax-mapping", "devdax-mem-mapping")
SHARING = (*BINDS, "private")  # whose sections can share a memmap
BOTH = pytest.mark.parametrize("variant", ["base", "patched"])
# Several threads initialise the memmap of the large one.
LARGE = 3 << 30
INSET = 20 << 20  # bytes
PRIVATE = 16 << 30  # bytes; their memmap takes 256 MiB

Kernels = dict[str, Kernel]


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return {name: guest_kernel(name, *FRAGMENTS) for name in ("base", "patched")}


def same_memmaps(scenarios: Sequence[str], guests: Guests) -> None:
    for name in scenarios:
        check_memmaps(name, guests, (*MODES, SHARED) if name in SHARING else MODES)


def test_memory_may_be_short(kernels: Kernels) -> None:
    # Mainline warns if memory cannot be added for want of memory.
    provoked = r"WARNING: \S+ at add_pages\+"
    guest = Guest("tcg", DEVICE, 3600, append="mem=5G", provoked=provoked)
    findings = passed(guest.run(kernels["patched"], "edges-pressure", 3, PRIVATE)[0])
    assert len(findings) == 3
    refused = {name: int(finding.split()[2]) for name, finding in findings.items()}
    assert refused.pop("private, memory is short") > 0
    assert set(refused.values()) == {0}


@BOTH
def test_cpus_may_go_and_come_back(variant: str, kernels: Kernels) -> None:
    guest = Guest("tcg", LARGE, 3600, cpus=3)
    findings = passed(guest.run(kernels[variant], "edges-cpus", 5, DEVICE)[0])
    assert len(findings) == 2
    assert all("2 CPUs were away" in finding for finding in findings.values())


def test_a_device_may_begin_and_end_within_a_section(kernels: Kernels) -> None:
    guest = Guest("tcg", DEVICE, 3600, inset=INSET)
    names = ",".join(BINDS + USES)
    guests = {name: guest.run(kernel, names, 2, DEVICE) for name, kernel in kernels.items()}
    same_memmaps(BINDS, guests)
    for records, _ in guests.values():
        whole = [record for record in records if record["scenario"] == "fsdax-mem"]
        pages = {record["pages"] for record in whole if record["mode"] in ("base", "slow")}
        assert pages == {(DEVICE - 2 * INSET) // PAGE}
        assert set(passed(records)) == {"files on ext4", "files on xfs", "mapping"}


@pytest.mark.parametrize("inset", [0, INSET])
@BOTH
def test_no_memmap_of_a_device_shows_what_its_memory_held_before(
    variant: str, inset: int, kernels: Kernels
) -> None:
    guest = Guest("tcg", DEVICE, 3600, inset=inset, append="init_on_alloc=1")
    assert len(passed(guest.run(kernels[variant], "stale-devices", 1, DEVICE)[0])) == 3


@BOTH
def test_the_memmap_of_offline_memory_shows_it_only_in_base_and_without_init_on_alloc(
    variant: str, kernels: Kernels
) -> None:
    outcomes, texts = [], []
    for zeroed in (1, 0):
        guest = Guest("tcg", DEVICE, 3600, append=f"init_on_alloc={zeroed}")
        records, _ = guest.run(kernels[variant], "stale-offline", 1, DEVICE)
        (check,) = checks.checks_of(variant, records)
        outcomes.append(check.outcome)
        texts.append(check.said)
    assert outcomes == ["pass", "fail" if variant == BASE else "pass"]
    assert ("held before" in texts[1]) == (variant == BASE)


def test_there_may_be_four_nodes(kernels: Kernels) -> None:
    guest = Guest("tcg", DEVICE, 3600, behind=2, cpus=3)
    names = ",".join((*BINDS, "private", "migrate"))
    guests = {name: guest.run(kernel, names, 2, DEVICE) for name, kernel in kernels.items()}
    same_memmaps((*BINDS, "private"), guests)
    for name, kernel in kernels.items():
        assert len(passed(guests[name][0])) == 2
        check = runs.judge_boots(name, runs.boot(guest, kernel))
        assert check.outcome == "pass", check.said


@pytest.mark.usefixtures("in_user_cache")
def test_the_kernel_may_come_from_kexec() -> None:
    # The handover reserves memory, whose pageblocks have a migratetype of their own.
    guest = Guest("tcg", DEVICE, 600, append="kho=on")
    records, _ = guest.run(guest_kernel("patched", "vm", "kexec"), "edges-kexec", 1, DEVICE)
    assert "found kexec handover data" in passed(records)["binds after kexec"]


def test_poison_has_the_effects_of_base(kernels: Kernels) -> None:
    guest = Guest("tcg", DEVICE, 3600)
    names = "poison-fsdax,poison-devdax"
    base, patched = (passed(guest.run(kernel, names, 1, DEVICE)[0]) for kernel in kernels.values())
    assert len(base) == 3
    assert patched == base


@pytest.mark.usefixtures("in_user_cache")
def test_vfio_unpins_the_pages_of_devdax() -> None:
    # The emulated IOMMU does not remap interrupts.
    words = "vfio_iommu_type1.allow_unsafe_interrupts=1"
    guest = Guest("tcg", DEVICE, 600, options="-device intel-iommu -device edu", append=words)
    records, _ = guest.run(guest_kernel("patched", *FRAGMENTS, "vfio"), "devdax-vfio", 1, DEVICE)
    assert passed(records) == {"VFIO": "512 pages"}


@pytest.mark.usefixtures("in_user_cache")
def test_a_mapping_of_a_dynamic_device_outlives_its_driver() -> None:
    # Firmware marks memory for dax_hmem as RAM with a special purpose, a type of its own.
    guest = Guest("tcg", DEVICE, 600, append="memmap=256M%1G-1+0xefffffff")
    records, _ = guest.run(guest_kernel("patched", *FRAGMENTS, "hmem"), "devdax-dynamic", 1, DEVICE)
    assert passed(records) == {"a mapping outlives its driver": "a page fault gets SIGBUS"}


def test_memory_that_a_zone_protects_stays_deferred(kernels: Kernels) -> None:
    guest = Guest("tcg", 1 << 27, 600, append="deferred_init=lazy")
    records, _ = guest.run(kernels["patched"], "background-reserve", 1, DEVICE)
    assert list(passed(records)) == ["protected memory stays deferred"]
