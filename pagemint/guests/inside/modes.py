# SPDX-License-Identifier: GPL-2.0-only
"""The modes of a patched kernel, or of the module for stock kernels."""

from pathlib import Path

from pagemint.guests.inside.checks import Record
from pagemint.guests.inside.devices import run
from pagemint.words import BASE, STOCK_MODES

PARAMETER = Path("/sys/module/kernel/parameters/memmap_init")
SHARED = Path("/sys/module/kernel/parameters/memmap_shared")
FILLER = Path("/sys/module/pagemint/parameters")
# A guest starts without the module.
STOCK = (*reversed(STOCK_MODES), BASE)
COUNTS = (
    "calls",
    "pages_filled",
    "pages_original",
    "pages_verified",
    "mismatches",
    "differences",
    "microseconds",
)


def permit_sharing(wanted: bool) -> None:
    """Let sections of a device share a memmap in later binds, or not, if the kernel can."""
    if SHARED.exists():
        SHARED.write_text("Y" if wanted else "N")


class Modes:
    """The ways in which a kernel can write a memmap.

    Attributes:
        names: the modes, that of the first bind last; only base if there is nothing to choose.
    """

    def __init__(self, filler: str, series: tuple[str, ...]) -> None:
        """Find the modes.

        Args:
            filler: pagemint.ko on a stock kernel, "" on others.
            series: the values of memmap_init= that a patched kernel has.
        """
        self.filler = filler
        self.names = STOCK if filler else series if PARAMETER.exists() else ("base",)

    def with_shared(self) -> "Modes":
        """Return the modes of memory whose sections can share a memmap until they are used."""
        modes = Modes(self.filler, self.names)
        if SHARED.exists():
            modes.names = ("shared", *self.names)
        return modes

    def choose(self, mode: str) -> None:
        """Choose the mode of the next binds."""
        permit_sharing(mode == "shared")
        if mode == "shared":
            mode = self.names[-1]
        if self.filler:
            if mode == "base" and FILLER.exists():
                run("rmmod", "pagemint")
            elif mode != "base":
                if not FILLER.exists():
                    run("insmod", self.filler)
                (FILLER / "enabled").write_text("Y" if mode == "module" else "N")
        elif mode != "base":
            PARAMETER.write_text(mode)
            if PARAMETER.read_text() != f"{mode}\n":
                raise RuntimeError(f"{PARAMETER} does not read back {mode}")


def counts() -> dict[str, int]:
    """Return the counts of the module for stock kernels since its load; empty without it."""
    return {name: int((FILLER / name).read_text()) for name in COUNTS if FILLER.exists()}


def counted(before: dict[str, int]) -> Record:
    """Return the counts of the module for stock kernels since counts() returned `before`."""
    return {name: count - before[name] for name, count in counts().items()}
