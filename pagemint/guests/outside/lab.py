# SPDX-License-Identifier: GPL-2.0-only
"""The VM lab of each architecture: its scenarios, and the programs that it needs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pagemint import words
from pagemint.base import packages
from pagemint.base.errors import Failure
from pagemint.trees import trees
from pagemint.words import SECTION_BYTES


@dataclass(frozen=True)
class Scenario:
    """A value of --scenario, or a suite that an option names.

    Attributes:
        parts: the scenarios of inside/scenarios.py that it runs.
        asked: whether it runs only if it is asked for.
        topic: the topic of the series without which a kernel cannot run it. The patched kernel is
            booted alone then, and only if the topic has edits for its line. "" if both are booted.
        guest: the settings in which its guest differs from others.
        programs: the programs that it needs beside those of the lab.
        built: a file that exists only where the suite was built; "" if it is no suite.
        boot_memory: whether it uses memory that boot left. A kernel runs it after a boot with each
            deferred_init= that it has, and must end alike.
        fragments: further files of guests/config that its kernels need.
    """

    parts: tuple[str, ...]
    asked: bool = False
    topic: str = ""
    guest: Mapping[str, Any] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    built: str = ""
    boot_memory: bool = False
    fragments: tuple[str, ...] = ()

    def boots(self, variant: str) -> bool:
        """Whether it boots the kernel of that name."""
        return not self.topic or variant == words.PATCHED


_FOREIGN_PROGRAMS = ("bc", "fio", "stress-ng")

SCENARIOS = {
    "fsdax": Scenario(("fsdax", "fsdax-files")),
    "devdax": Scenario(("devdax", "devdax-mapping", "devdax-mem", "devdax-mem-mapping")),
    "devdax-pins": Scenario(("devdax-pins", "devdax-mem-pins")),
    "devdax-unbinds": Scenario(
        ("devdax-unbinds", "devdax-mem-unbinds", "devdax-1g-forks"),
        topic="devdax",
        # Compounds of 1 GiB need a CPU that has such pages.
        guest={"device": 4 << 30, "options": "-cpu max"},
    ),
    "private": Scenario(("private", "private-hmm")),
    "shared-fsdax": Scenario(("fsdax-mem", "shared-fsdax-mem", "shared-fsdax-dev")),
    "shared-devdax": Scenario(("shared-devdax-dev", "shared-devdax-mem")),
    "shared-limits": Scenario(
        ("shared-limits",),
        topic="devdax-shared",
        # A CPU of 40 bits, QEMU's default, cannot address 16 TiB. With one of AMD's, QEMU moves
        # memory that reaches 1 TiB. The kernel binds the pmem at boot, and its memmap must fit.
        guest={
            "device": 1 << 40,
            "options": "-cpu max,vendor=GenuineIntel,host-phys-bits=off,phys-bits=46",
            "append": "memmap_shared=1",
        },
    ),
    "kmem": Scenario(("kmem", "kmem-again"), boot_memory=True),
    # Memory behind the device is left alone by the one CPU, which is on the node below it.
    "virtio-mem": Scenario(
        ("virtio-mem",),
        guest={"device": SECTION_BYTES, "cpus": 1, "spare": 8 * SECTION_BYTES},
        boot_memory=True,
    ),
    # The kernel's migration test uses two CPUs, and needs more to disturb them.
    "migrate": Scenario(("migrate", "folio", "migrate-selftest"), guest={"cpus": 3}),
    "boot": Scenario(("boot",)),
    "background": Scenario(
        ("background",),
        topic="background",
        guest={
            "device": SECTION_BYTES,
            # A gigantic page needs a CPU that has them.
            "options": "-cpu max",
            # x86 takes a page of 1 GiB in the direct map for a page table when it removes a part.
            "append": "hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=8 cma=64M nogbpages",
        },
    ),
    # Other people's suites, which take long.
    "foreign": Scenario(
        ("fio-fsdax", "fio-fsdax-mem", "fio-devdax", "stress", "selftests", "kmem-selftest"),
        asked=True,
        programs=_FOREIGN_PROGRAMS,
        boot_memory=True,
    ),
}
"""The scenarios of x86."""

FOREIGN = "foreign"
"""The scenario that needs further tests of the kernel's own."""

SUITES = {
    "xfstests": Scenario(
        ("xfstests",),
        # xfs uses DAX for one file system of a device only.
        guest={"regions": 2, "inset": SECTION_BYTES},
        programs=_FOREIGN_PROGRAMS,
        built="ltp/fsx",
    ),
    "ndctl": Scenario(
        ("ndctl",),
        guest={
            # The smallest that has room for compounds of 1 GiB with the memmap on the device.
            "device": 4 << 30,
            "options": "-machine nvdimm=on -m slots=1,maxmem=256G -device nvdimm,memdev=nvdimm,"
            "label-size=2M -object memory-backend-ram,id=nvdimm,size=6G,reserve=off",
        },
        programs=(*_FOREIGN_PROGRAMS, "jq", "trace-cmd"),
        built="meson-info/intro-tests.json",
        fragments=("ndctl",),
    ),
}
"""The suites that no Debian package has."""

BIND_SCENARIOS = {
    "fsdax": Scenario(("fsdax", "fsdax-mem")),
    "devdax": Scenario(("devdax", "devdax-mem")),
    "private": Scenario(("private",)),
}
"""The scenarios of arm64: only rebinds, whose memmaps are compared."""

FRAGMENTS = ("vm", "use", "background")
"""The files of pagemint/guests/config that configure the x86 kernels."""


@dataclass(frozen=True)
class Lab:
    """The lab of an architecture.

    Attributes:
        arch: the architecture of the kernels.
        fragments: files of pagemint/guests/config that configure the kernels.
        scenarios: the values of --scenario.
        native: whether this machine has the same architecture. Guests can then run under KVM, and
            use this machine's programs.
        needs: the programs and headers that the lab needs.
    """

    arch: trees.Arch
    fragments: tuple[str, ...]
    scenarios: dict[str, Scenario]
    native: bool
    needs: tuple[str, ...]

    def check_programs(self, scenarios: Iterable[Scenario]) -> None:
        """Check that all programs and headers for some scenarios are installed.

        Raises:
            Failure: some are missing. The message names their packages.
        """
        further = [program for scenario in scenarios for program in scenario.programs]
        missing = packages.missing(dict.fromkeys([*self.needs, *further]))
        if missing:
            raise Failure(f"guests need {', '.join(missing)}", packages.remedy(missing))


LABS = {
    "x86": Lab(
        trees.X86,
        FRAGMENTS,
        SCENARIOS,
        native=True,
        needs=("qemu-system-x86_64", "ndctl", "daxctl", "mkfs.ext4", "mkfs.xfs", "numa.h"),
    ),
    "arm64": Lab(
        trees.ARM64,
        ("vm", "arm64"),
        BIND_SCENARIOS,
        native=False,
        needs=("qemu-system-aarch64", "aarch64-linux-gnu-gcc", "fdtput", "mmdebstrap"),
    ),
}
"""The lab for each value of --arch."""

STOCK = replace(
    LABS["x86"],
    scenarios=BIND_SCENARIOS | {"devdax-1g": Scenario(("devdax-1g", "devdax-1g-mem"))},
    # A stock kernel has its drivers in modules, which vng loads from an initramfs.
    needs=("qemu-system-x86_64", "ndctl", "daxctl", "mkfs.ext4", "mkfs.xfs", "busybox"),
)
"""The lab for a stock kernel. It has all scenarios that time binds, and no others."""

TIMED = tuple(part for scenario in STOCK.scenarios.values() for part in scenario.parts)
"""The scenarios of inside/scenarios.py that time binds."""
