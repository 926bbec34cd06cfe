# SPDX-License-Identifier: GPL-2.0-only
"""The modes of a kernel: of one with the series, or of the module for stock kernels."""

from pathlib import Path
from typing import Any

from devices import run

PARAMETER = Path("/sys/module/kernel/parameters/memmap_init")
SERIES = ("slow", "cached", "published", "streaming")
FILLER = Path("/sys/module/pagemint/parameters")
# Filling, switched off, and not loaded, as in the beginning.
STOCK = ("module", "module-off", "base")
COUNTS = ("calls", "pages_filled", "pages_original", "mismatches", "microseconds")

Record = dict[str, Any]


class Modes:
    """What memory maps can be brought up by.

    Attributes:
        names: the modes; a kernel without the series has none to choose. The last one is the
            default on x86-64.
    """

    def __init__(self, filler: str) -> None:
        """Find the modes; `filler` is pagemint.ko on a stock kernel, "" on others."""
        self.filler = filler
        self.names = STOCK if filler else SERIES if PARAMETER.exists() else ("base",)

    def choose(self, mode: str) -> None:
        """Choose the mode of the binds to come."""
        if self.filler:
            self._load(mode != "base")
            if mode != "base":
                (FILLER / "enabled").write_text("Y" if mode == "module" else "N")
        elif mode != "base":
            PARAMETER.write_text(mode)

    def _load(self, wanted: bool) -> None:
        """Load the module for stock kernels, or unload it, unless that is so already."""
        if FILLER.exists() and not wanted:
            run("rmmod", "pagemint")
        elif wanted and not FILLER.exists():
            run("insmod", self.filler)


def counts() -> dict[str, int]:
    """Return what the module for stock kernels counted since it was loaded; nothing without it."""
    return {name: int((FILLER / name).read_text()) for name in COUNTS if FILLER.exists()}


def counted(before: dict[str, int]) -> Record:
    """Return what the module for stock kernels counted since counts() was `before`."""
    return {name: count - before[name] for name, count in counts().items()}
