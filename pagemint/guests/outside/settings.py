# SPDX-License-Identifier: GPL-2.0-only
"""The settings of a guest, from which each architecture makes a command line of QEMU."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class GuestSettings:
    """The settings with which guests are run.

    Attributes:
        accel: kvm or tcg.
        device: bytes of the emulated pmem.
        limit: seconds that a guest may take.
        cpus: number of CPUs. The first is on the node below the device, the others are on the
            last node.
        options: further options of QEMU.
        append: further words of the kernel's command line.
        directories: further directories for the scenarios, by the names that inside/scenarios.py
            gives them.
        regions: number of equal parts of the pmem, each with a device; x86 only.
        inset: bytes cut off at both ends of each part, which stay ordinary memory: a device then
            begins and ends within a section, or apart from the next one; x86 only.
        behind: number of nodes behind the device, which have equal parts of the memory there; x86
            only.
        spare: bytes of memory that scenarios can add, by QEMU's monitor; 0 if none do; x86 only.
        high: bytes of memory behind the device; x86 only.
        provoked: a pattern of the complaint of the kernel that the scenarios provoke, if any.
    """

    accel: str
    device: int
    limit: float
    cpus: int = 2
    options: str = ""
    append: str = ""
    directories: Mapping[str, Path] = field(default_factory=dict)
    regions: int = 1
    inset: int = 0
    behind: int = 1
    spare: int = 0
    high: int = 4 << 30
    provoked: str | None = None
