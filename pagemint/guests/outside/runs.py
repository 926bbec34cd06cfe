# SPDX-License-Identifier: GPL-2.0-only
"""Runs scenarios in a guest with each kernel, and collects their rows and checks."""

from dataclasses import dataclass, field

from pagemint.base.progress import step
from pagemint.guests.outside import binds, boots, checks, copies, lab
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.scenarios import Record
from pagemint.results.rows import Check, Row
from pagemint.trees.image import Kernel


@dataclass
class Outcome:
    """The results of scenarios.

    Attributes:
        binds: the rows of binds.
        copies: the rows of copies.
        checks: the checks.
        status: 1 if the module for stock kernels filled other pages than it should, else 0.
    """

    binds: list[Row] = field(default_factory=list)
    copies: list[Row] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    status: int = 0

    def judge(self) -> int:
        """Note how the memmaps compare and how the checks ended; return the exit status."""
        return max(self.status, binds.same_hashes(self.binds), checks.judge(self.checks))


def run(
    guest: Guest,
    kernels: list[Kernel],
    scenarios: dict[str, tuple[str, ...]],
    rebinds: int,
    turns: int,
    private: int,
) -> Outcome:
    """Run scenarios on each kernel.

    Args:
        guest: the settings with which guests are run.
        kernels: base and patched, or a stock kernel alone.
        scenarios: by the value of --scenario, those of inside/scenarios.py.
        rebinds: number of rebinds in each mode and turn.
        turns: boots of each kernel. The kernels take turns, so that changes on the machine affect
            both alike. All turns but the first run only the scenarios that time binds.
        private: bytes of device-private memory.

    Raises:
        Failure: a guest fails.
    """
    outcome = Outcome()
    for name, inner in scenarios.items():
        if name == boots.SCENARIO:
            outcome.checks += [boots.check(guest, kernel) for kernel in kernels]
            continue
        records: dict[str, list[Record]] = {kernel.variant: [] for kernel in kernels}
        # A new guest for each scenario: the first bind has to write untouched memory.
        booted = lab.guest_for(name, guest)
        only_binds = tuple(one for one in inner if one in binds.SCENARIOS)
        for names in (inner, *[only_binds] * (turns - 1)):
            for kernel in kernels if names else ():
                what = f"{name}: running the {kernel.variant} kernel in a guest ({guest.accel})"
                with step(what):
                    said, _ = booted.run(kernel, ",".join(names), rebinds, private)
                records[kernel.variant] += said
                outcome.checks += checks.checks_of(kernel.variant, said)
                outcome.status |= binds.judge_counts(said)
        for one in inner:
            size = private if one == "private" else guest.device
            outcome.binds += binds.rows_of(one, records, size)
        outcome.copies += copies.rows_of(records)
    return outcome
