# SPDX-License-Identifier: GPL-2.0-only
"""The VM lab of each architecture: its scenarios, and the programs that it needs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.base.errors import Failure
from pagemint.base.run import PACKAGES, find
from pagemint.guests.outside.guest import Guest
from pagemint.trees import trees
from pagemint.words import SECTION_BYTES

SCENARIOS = {
    "fsdax": ("fsdax", "fsdax-files"),
    "devdax": ("devdax", "devdax-mapping", "devdax-mem", "devdax-mem-mapping"),
    "private": ("private", "private-hmm"),
    "shared-fsdax": ("fsdax-mem", "shared-fsdax-mem", "shared-fsdax-dev"),
    "kmem": ("kmem", "kmem-again"),
    "migrate": ("migrate", "folio", "migrate-selftest"),
    "boot": ("boot",),
}
"""For each value of --scenario, the scenarios of inside/scenarios.py that it runs."""

FOREIGN: dict[str, tuple[str, ...]] = {
    "foreign": ("fio-fsdax", "fio-fsdax-mem", "fio-devdax", "stress", "selftests")
}
"""Like SCENARIOS, for other people's suites, which take long and run only if they are asked for."""

EXPLAINED = (*FOREIGN["foreign"], "private-hmm", "migrate-selftest")
"""The scenarios in which a test that fails on both kernels needs a reason."""

SUITES = {"xfstests": "ltp/fsx", "ndctl": "meson-info/intro-tests.json"}
"""The scenarios that run suites which no Debian package has, each with a file that exists only
where its suite was built."""

_FOREIGN_PROGRAMS = ("bc", "fio", "stress-ng")

BIND_SCENARIOS = {
    "fsdax": ("fsdax", "fsdax-mem"),
    "devdax": ("devdax", "devdax-mem"),
    "private": ("private",),
}
"""Like SCENARIOS, for arm64: only rebinds, whose memmaps are compared."""

FRAGMENTS = ("vm", "use")
"""The files of pagemint/guests/config that configure the x86 kernels."""


def guest_for(name: str, guest: Guest) -> Guest:
    """Return the guest with what a scenario needs."""
    if name == "migrate":
        # The kernel's migration test uses two CPUs, and needs more to disturb them.
        return replace(guest, cpus=3)
    if name == "xfstests":
        # xfs uses DAX for one file system of a device only.
        return replace(guest, regions=2, inset=SECTION_BYTES)
    return guest


@dataclass(frozen=True)
class Lab:
    """The lab of an architecture.

    Attributes:
        arch: the architecture of the kernels.
        fragments: files of pagemint/guests/config that configure the kernels.
        scenarios: the values of --scenario that run by default.
        foreign: further values.
        native: whether this machine has the same architecture. Guests can then run under KVM, and
            use this machine's programs.
        programs: the programs that the lab needs.
        headers: the header files that it needs, with the Debian package of each.
    """

    arch: trees.Arch
    fragments: tuple[str, ...]
    scenarios: dict[str, tuple[str, ...]]
    foreign: dict[str, tuple[str, ...]]
    native: bool
    programs: tuple[str, ...]
    headers: dict[str, str]

    def check_programs(self, scenarios: Iterable[str]) -> None:
        """Check that all programs and headers for some scenarios are installed.

        Raises:
            Failure: some are missing. The message names their Debian packages.
        """
        foreign = any(name in self.foreign or name in SUITES for name in scenarios)
        programs = self.programs + (_FOREIGN_PROGRAMS if foreign else ())
        missing = [PACKAGES[program] for program in programs if not find(program)]
        missing += [name for header, name in self.headers.items() if not Path(header).exists()]
        if missing:
            raise Failure(
                "Debian packages are missing", f"install them: apt-get install {' '.join(missing)}"
            )


LABS = {
    "x86": Lab(
        trees.X86,
        FRAGMENTS,
        SCENARIOS,
        FOREIGN,
        native=True,
        programs=("qemu-system-x86_64", "ndctl", "daxctl", "mkfs.ext4", "mkfs.xfs"),
        headers={"/usr/include/numa.h": "libnuma-dev"},
    ),
    "arm64": Lab(
        trees.ARM64,
        ("vm", "arm64"),
        BIND_SCENARIOS,
        {},
        native=False,
        programs=("qemu-system-aarch64", "aarch64-linux-gnu-gcc", "fdtput"),
        headers={},
    ),
}
"""The lab for each value of --arch."""

STOCK = replace(
    LABS["x86"],
    scenarios=BIND_SCENARIOS | {"devdax-1g": ("devdax-1g", "devdax-1g-mem")},
    foreign={},
    # A stock kernel has its drivers in modules, which vng loads from an initramfs.
    programs=(*LABS["x86"].programs, "busybox"),
    headers={},
)
"""The lab for a stock kernel."""
