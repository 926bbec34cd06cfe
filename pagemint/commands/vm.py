# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint vm`: binds emulated devices and moves folios in guests, base and patched."""

import argparse
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.commands import count, guest_kernels, options
from pagemint.commands.options import check_writable, finish
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

_REBINDS, _TURNS = 30, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint vm`."""
    options.add_source_arguments(parser, stock=True)
    parser.add_argument(
        "--arch", default="x86", choices=LABS, help="the kernels' architecture (x86)"
    )
    parser.add_argument(
        "--count",
        action="store_true",
        help="the same as pagemint count",
    )
    parser.add_argument(
        "--size",
        metavar="SIZE",
        help="size of the device (100GB with KVM, 4GB without, or less if that does not fit)",
    )
    parser.add_argument(
        "--scenario",
        metavar="S,...",
        help=f"scenarios to run (all of {', '.join(_names(SCENARIOS))}; "
        f"also {', '.join(_names(SCENARIOS, asked=True))}; "
        f"arm64 has {', '.join(BIND_SCENARIOS)}, a stock kernel {', '.join(STOCK.scenarios)})",
    )
    for suite in SUITES:
        parser.add_argument(
            f"--{suite}",
            type=Path,
            metavar="DIR",
            help=f"also run tests of {suite}, which was built there; x86 only",
        )
    parser.add_argument(
        "--rebinds", type=int, metavar="N", help=f"rebinds in each mode ({_REBINDS})"
    )
    parser.add_argument(
        "--turns", type=int, metavar="N", help=f"boots of each kernel, in turn ({_TURNS})"
    )
    parser.add_argument(
        "--accel",
        default="auto",
        choices=("auto", "kvm", "tcg"),
        help="how the guests run (auto: kvm if a guest boots under it)",
    )
    options.add_limit(parser)
    options.add_result_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint vm`."""
    if args.stock and args.arch != "x86":
        raise Failure(f"there is no stock kernel of {args.arch}", "leave --arch out")
    lab = STOCK if args.stock else LABS[args.arch]
    if args.count:
        _check_count(args)
        note("counting is a command of its own: pagemint count")
        return count.main(args)
    scenarios = _chosen(args, lab)
    turns = _TURNS if args.turns is None else args.turns
    options.check_number("--turns", turns, 1, rows.MOST_RUNS // 2)
    rebinds = _REBINDS if args.rebinds is None else args.rebinds
    options.check_number("--rebinds", rebinds, 2, rows.MOST_RUNS // turns)
    options.check_limit(args.limit)
    _check_accel(args, lab)
    suites = _suites(args, scenarios, lab)
    scenarios |= {name: SUITES[name] for name in suites}
    size = room.parse(args.size) if args.size else None
    room.check()
    lab.check_programs(scenarios.values())
    check_writable(args)

    directories = dict(suites)
    if args.stock:
        kernels, about = guest_kernels.stock_kernel(args.stock)
    else:
        wanted = [
            name
            for name in (BASE, PATCHED)
            if any(scenario.boots(name) for scenario in scenarios.values())
        ]
        built = guest_kernels.pair(args.kernel, args.ksrc, lab, wanted)
        kernels, about = built.kernels, built.about
        if lab.native and BASE in wanted:
            directories["selftests"] = image.selftests(built.base, others=FOREIGN in scenarios)
    accel = x86.choose_accel(args.accel, kernels[0].image) if lab.native else "tcg"
    device, private = room.whole_sections(size or room.default(accel))
    guest = Guest(accel, device, args.limit, directories=directories)
    outcome = runs.run(guest, kernels, scenarios, rebinds, turns, private)

    host = {**machine.about(), "accel": accel, "times_comparable": accel == "kvm"}
    result = rows.Result(
        rows.Machine(**host),
        about,
        [*outcome.binds, *outcome.copies],
        checks=outcome.checks,
    )
    finish(args, result)
    return outcome.judge()


def _names(scenarios: Mapping[str, Scenario], *, asked: bool = False) -> list[str]:
    """Return the names of the scenarios that run without --scenario, or of the others."""
    return [name for name, scenario in scenarios.items() if scenario.asked == asked]


def _chosen(args: argparse.Namespace, lab: Lab) -> dict[str, Scenario]:
    """Return the scenarios that --scenario names, or the usual ones that the kernel can run."""
    asked = args.scenario.split(",") if args.scenario else []
    where = "a stock kernel" if args.stock else args.arch
    for name in asked:
        if name not in lab.scenarios:
            raise Failure(
                f"{where} has no scenario {name!r}", f"choose from {', '.join(lab.scenarios)}"
            )
    line = patches.nearest_line(sources.from_tree(args.ksrc).line) if args.ksrc else args.kernel
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


def _suites(args: argparse.Namespace, scenarios: Collection[str], lab: Lab) -> dict[str, Path]:
    """Return the directories of the suites that the options name; say which ones are not run."""
    given: dict[str, Path] = {}
    for name, suite in SUITES.items():
        directory: Path | None = getattr(args, name)
        if not directory:
            if FOREIGN in scenarios:
                note(f"the tests of {name} are not run: --{name} names no directory of theirs")
            continue
        if args.stock or not lab.native:
            raise Failure(f"--{name} needs both kernels of x86", f"leave --{name} out")
        if not (directory / suite.built).exists():
            raise Failure(
                f"{name} was not built in {directory}: {suite.built} is not there",
                f"build it, or leave --{name} out",
            )
        given[name] = directory.resolve()
    return given


def _check_count(args: argparse.Namespace) -> None:
    """Refuse the options that counting has no use for."""
    for name in ("scenario", "size", "rebinds", "turns", *SUITES):
        if getattr(args, name) is not None:
            raise Failure(
                f"--count has its own operations and devices and takes no --{name}",
                f"leave --{name} out",
            )
    if args.arch != "x86":
        raise Failure(f"--count cannot count {args.arch}", "leave --arch out")
    if args.accel == "kvm":
        raise Failure(
            "--count works only in emulated guests, not under KVM", "leave --accel kvm out"
        )


def _check_accel(args: argparse.Namespace, lab: Lab) -> None:
    if args.accel == "kvm" and not lab.native:
        raise Failure(f"guests for {args.arch} are emulated here", "leave --accel kvm out")
    if args.accel == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Failure("/dev/kvm cannot be used", "load the kvm module, or use --accel tcg")
