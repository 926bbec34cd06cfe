# SPDX-License-Identifier: GPL-2.0-only
"""The settings of inside/scenarios.py, which outside/scenarios.py writes as a JSON file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagemint.guests.inside.modes import Modes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The scenarios to run, and what they need. The paths are those that the program sees."""

    scenarios: Sequence[str]  # names, in the order in which they run
    rebinds: int  # in each mode
    private_size: int  # bytes of device-private memory
    series: Sequence[str]  # memmap_init= of a patched kernel, the value of the first bind last
    output: str  # the file for the records
    module: str  # pagemint_guest.ko
    folio_module: str  # pagemint_folio.ko
    hmm_module: str  # test_hmm.ko
    filler: str  # pagemint.ko on a stock kernel, "" on others
    headers: str  # of the running kernel
    directories: Mapping[str, str]  # those that only some scenarios need, by their names
    bare: bool  # no guest: its drivers are loaded, and pagemint's modules are unloaded at the end
    device: str  # the device of a bare machine that `existing` rebinds

    @property
    def modes(self) -> Modes:
        """The ways in which the kernel can write a memmap."""
        return Modes(self.filler, tuple(self.series))

    def directory(self, name: str) -> Path:
        """Return a directory that a scenario needs."""
        if name not in self.directories:
            raise RuntimeError(f"the settings name no directory {name}")
        return Path(self.directories[name])
