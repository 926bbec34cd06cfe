# SPDX-License-Identifier: GPL-2.0-only
"""Runs scenarios in a guest with each kernel, and collects their rows and checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pagemint.base.progress import step
from pagemint.guests.outside import binds, checks, lab
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import Scenario
from pagemint.guests.outside.scenarios import Record
from pagemint.results.rows import Check, Row
from pagemint.trees.image import Kernel
from pagemint.words import BASE, DEFERRED_INIT, SECTION_BYTES

_BOOT, _BACKGROUND = "boot", "background"  # their names in inside/scenarios.py


@dataclass
class Outcome:
    """The results of scenarios.

    Attributes:
        binds: the rows of binds.
        boots: the rows of boots.
        copies: the rows of copies.
        checks: the checks.
        status: 1 if the module for stock kernels filled other pages than it should, else 0.
    """

    binds: list[Row] = field(default_factory=list)
    boots: list[Row] = field(default_factory=list)
    copies: list[Row] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    status: int = 0

    def judge(self) -> int:
        """Note how the memmaps compare and how the checks ended; return the exit status."""
        return max(self.status, binds.same_hashes(self.binds), checks.judge(self.checks))


def run(
    guest: Guest,
    kernels: list[Kernel],
    scenarios: Mapping[str, Scenario],
    rebinds: int,
    turns: int,
    private: int,
) -> Outcome:
    """Run scenarios on each kernel.

    Args:
        guest: the settings with which guests are run.
        kernels: base and patched, or a stock kernel alone.
        scenarios: those to run, by their names.
        rebinds: number of rebinds in each mode and turn.
        turns: boots of each kernel. The kernels take turns, so that changes on the machine affect
            both alike. All turns but the first run only the parts of scenarios that time binds.
        private: bytes of device-private memory.

    Raises:
        Failure: a guest fails.
    """
    outcome = Outcome()
    for name, scenario in scenarios.items():
        if name == _BOOT:
            # A boot initialises ordinary memory alone, so that is large, and the device small.
            large = max(guest.high, guest.device)
            given = replace(guest, device=SECTION_BYTES, high=large)
            by_turn = [
                {kernel.variant: boot(given, kernel) for kernel in kernels} for _ in range(turns)
            ]
            outcome.boots += binds.boot_rows(by_turn, large)
            # Further turns are for times alone.
            outcome.checks += [judge_boots(tree, modes) for tree, modes in by_turn[0].items()]
            continue
        able = [kernel for kernel in kernels if scenario.boots(kernel.variant)]
        # A new guest for each scenario: the first bind has to write untouched memory.
        given = replace(guest, **scenario.guest)
        if name == _BACKGROUND:
            for kernel in able:
                outcome.checks += check_background(given, kernel)
            continue
        by_kernel: dict[str, list[Record]] = {kernel.variant: [] for kernel in able}
        binds_alone = tuple(part for part in scenario.parts if part in lab.TIMED)
        later = [binds_alone] * (turns - 1) if binds_alone else []
        for names in (scenario.parts, *later):
            for kernel in able:
                by_mode = {}
                for mode in kernel.deferred_init if scenario.boot_memory else DEFERRED_INIT[:1]:
                    what = f"{name}: running the {kernel.variant} kernel"
                    with step(f"{what} ({mode}, {guest.accel})"):
                        booted = _with(given, f"deferred_init={mode}")
                        records, _ = booted.run(kernel, ",".join(names), rebinds, private)
                    by_kernel[kernel.variant] += records
                    by_mode[mode] = checks.checks_of(kernel.variant, records)
                    outcome.status |= binds.judge_counts(records)
                outcome.checks += checks.alike(by_mode)
        for part in scenario.parts:
            size = private if part == "private" else given.device
            outcome.binds += binds.rows_of(part, by_kernel, size)
        outcome.copies += binds.copy_rows(by_kernel)
    return outcome


def boot(guest: Guest, kernel: Kernel) -> dict[str, Record]:
    """Boot a kernel with deferred struct page init; return a record for each mode that it has.

    The modes are those of memmap_init=, or "base" for a kernel without any, and those of
    deferred_init= except eager.

    Raises:
        Failure: a guest fails.
    """
    words = {mode: f"memmap_init={mode}" for mode in kernel.modes} or {BASE: ""}
    words |= {mode: f"deferred_init={mode}" for mode in kernel.deferred_init[1:]}
    by_mode: dict[str, Record] = {}
    for mode, append in words.items():
        with step(f"boot: booting the {kernel.variant} kernel ({mode}, {guest.accel})"):
            booted = _with(guest, append)
            (by_mode[mode],), _ = booted.run(kernel, _BOOT, 2, guest.device)
    return by_mode


def check_background(guest: Guest, kernel: Kernel) -> list[Check]:
    """Use memory after a boot in each mode of deferred_init=, and compare the memory at the end.

    Raises:
        Failure: a guest fails.
    """
    by_mode: dict[str, Record] = {}
    done: list[Check] = []
    for mode in kernel.deferred_init:
        with step(f"{_BACKGROUND}: using memory that was booted {mode} ({guest.accel})"):
            booted = _with(guest, f"deferred_init={mode}")
            (*records, by_mode[mode]), _ = booted.run(kernel, _BACKGROUND, 2, guest.device)
        done += checks.checks_of(kernel.variant, records)
    alike = judge_boots(kernel.variant, by_mode, _BACKGROUND)
    base = replace(alike, tree=BASE, outcome="skip", said=by_mode["eager"]["base"])
    return [*done, base, alike]


def _with(guest: Guest, words: str) -> Guest:
    """Return a guest whose kernel's command line has further words."""
    return replace(guest, append=f"{guest.append} {words}")


def judge_boots(tree: str, by_mode: dict[str, Record], scenario: str = _BOOT) -> Check:
    """Return the check of a tree, from the record of each mode that was booted."""
    if problem := _difference(by_mode):
        return Check(scenario, tree, "memory", "fail", problem, must_pass=True)
    first = next(iter(by_mode.values()))
    memory, nodes = first["mem_total_kib"], first["deferred_nodes"]
    alike = f"{memory} KiB, {nodes} nodes with deferred init, {', '.join(by_mode)} alike"
    return Check(scenario, tree, "memory", "pass", alike, must_pass=True)


def _difference(by_mode: dict[str, Record]) -> str:
    """Return how the boots differ, or "" if they do not."""
    first = next(iter(by_mode))
    for mode, record in by_mode.items():
        if not record["deferred_nodes"]:
            return f"{mode}: no memory was deferred"
        for fact in ("mem_total_kib", "zones"):
            if record[fact] != by_mode[first][fact]:
                return f"{fact}: {record[fact]} ({mode}), not {by_mode[first][fact]} ({first})"
    return ""
