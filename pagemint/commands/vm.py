# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint vm`: binds emulated devices and moves folios in guests, base and patched."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.base.request import option
from pagemint.commands import guest_kernels, options
from pagemint.guests.outside import room, runs, x86
from pagemint.guests.outside.guest import Guest
from pagemint.guests.outside.lab import (
    BIND_SCENARIOS,
    FOREIGN,
    LABS,
    SCENARIOS,
    STOCK,
    SUITES,
    Lab,
    Scenario,
)
from pagemint.results import rows
from pagemint.trees import image, patches, sources
from pagemint.words import BASE, PATCHED

_SUITE = "also run tests of {}, which was built there; x86 only"


def _names(scenarios: Mapping[str, Scenario], *, asked: bool = False) -> list[str]:
    """Return the names of the scenarios that run without --scenario, or of the others."""
    return [name for name, scenario in scenarios.items() if scenario.asked == asked]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint vm`."""

    source: options.GuestSource
    arch: str = option("x86", "the kernels' architecture (x86)", choices=tuple(LABS))
    size: str | None = option(
        None,
        "size of the device (100GB with KVM, 4GB without, or less if that does not fit)",
        "SIZE",
    )
    scenario: str | None = option(
        None,
        f"scenarios to run (all of {', '.join(_names(SCENARIOS))}; "
        f"also {', '.join(_names(SCENARIOS, asked=True))}; "
        f"arm64 has {', '.join(BIND_SCENARIOS)}, a stock kernel {', '.join(STOCK.scenarios)})",
        "S,...",
    )
    xfstests: Path | None = option(None, _SUITE.format("xfstests"), "DIR")
    ndctl: Path | None = option(None, _SUITE.format("ndctl"), "DIR")
    rebinds: int = option(30, "rebinds in each mode (30)", "N")
    turns: int = option(1, "boots of each kernel, in turn (1)", "N")
    accel: str = option(
        "auto",
        "how the guests run (auto: kvm if a guest boots under it)",
        choices=("auto", "kvm", "tcg"),
    )
    limit: options.Limit
    output: options.Output


def main(request: Request) -> int:
    """Run `pagemint vm`."""
    source = request.source
    if source.stock and request.arch != "x86":
        raise Failure(f"there is no stock kernel of {request.arch}", "leave --arch out")
    lab = STOCK if source.stock else LABS[request.arch]
    scenarios = _chosen(request, lab)
    rebinds, turns = request.rebinds, request.turns
    options.check_number("--turns", turns, 1, rows.MOST_RUNS // 2)
    options.check_number("--rebinds", rebinds, 2, rows.MOST_RUNS // turns)
    limit = request.limit.checked
    if request.accel == "kvm" and not lab.native:
        raise Failure(f"guests for {request.arch} are emulated here", "leave --accel kvm out")
    if request.accel == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Failure("/dev/kvm cannot be used", "load the kvm module, or use --accel tcg")
    suites = _suites(request, scenarios, lab)
    scenarios |= {name: SUITES[name] for name in suites}
    size = room.parse(request.size) if request.size else None
    room.check()
    lab.check_programs(scenarios.values())
    request.output.check()

    directories = dict(suites)
    wanted = [
        name
        for name in (BASE, PATCHED)
        if any(scenario.boots(name) for scenario in scenarios.values())
    ]
    built = guest_kernels.build(source, lab, wanted)
    if built.base and lab.native and BASE in wanted:
        directories["selftests"] = image.selftests(built.base, others=FOREIGN in scenarios)
    accel = x86.choose_accel(request.accel, built.kernels[0].image) if lab.native else "tcg"
    device, private = room.whole_sections(size or room.default(accel))
    guest = Guest(accel, device, limit, directories=directories)
    special = {name: scenario for name, scenario in scenarios.items() if scenario.fragments}
    usual = {name: scenario for name, scenario in scenarios.items() if name not in special}
    outcome = runs.run(guest, built.kernels, usual, rebinds, turns, private)
    for name, scenario in special.items():
        configured = replace(lab, fragments=(*lab.fragments, *scenario.fragments))
        kernels = guest_kernels.build(source, configured).kernels
        outcome.checks += runs.run(guest, kernels, {name: scenario}, rebinds, 1, private).checks

    host = {**machine.about(), "accel": accel, "times_comparable": accel == "kvm"}
    result = rows.Result(
        rows.Machine(**host),
        built.about,
        [*outcome.binds, *outcome.copies, *outcome.boots],
        checks=outcome.checks,
    )
    request.output.finish(result)
    return outcome.judge()


def _chosen(request: Request, lab: Lab) -> dict[str, Scenario]:
    """Return the scenarios that --scenario names, or the usual ones that the kernel can run."""
    source = request.source
    asked = request.scenario.split(",") if request.scenario else []
    where = "a stock kernel" if source.stock else request.arch
    for name in asked:
        if name not in lab.scenarios:
            raise Failure(
                f"{where} has no scenario {name!r}", f"choose from {', '.join(lab.scenarios)}"
            )
    line = source.kernel
    if source.ksrc:
        line = patches.nearest_line(sources.from_tree(source.ksrc).line)
    chosen = {}
    for name in asked or _names(lab.scenarios):
        scenario = lab.scenarios[name]
        able = patches.lines(scenario.topic or "*")
        # A line that the series does not know at all is refused with the source.
        if line in able or line not in patches.lines():
            chosen[name] = scenario
            continue
        lacks = f"the topic {scenario.topic} has no edits for Linux {line}"
        if asked:
            remedy = f"leave {name} out, or use --kernel {' or '.join(able)}"
            raise Failure(f"{name} cannot run: {lacks}", remedy)
        note(f"{name} is left out: {lacks}")
    return chosen


def _suites(request: Request, scenarios: Collection[str], lab: Lab) -> dict[str, Path]:
    """Return the directories of the suites that the options name; say which ones are not run."""
    given: dict[str, Path] = {}
    for name, suite in SUITES.items():
        directory: Path | None = getattr(request, name)
        if not directory:
            if FOREIGN in scenarios:
                note(f"the tests of {name} are not run: --{name} names no directory of theirs")
            continue
        if request.source.stock or not lab.native:
            raise Failure(f"--{name} needs both kernels of x86", f"leave --{name} out")
        if not (directory / suite.built).exists():
            raise Failure(
                f"{name} was not built in {directory}: {suite.built} is not there",
                f"build it, or leave --{name} out",
            )
        given[name] = directory.resolve()
    return given
