# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint vm`: binds emulated devices and moves folios in guests, base and patched."""

import argparse
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.base.progress import note
from pagemint.commands import counting, options
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
from pagemint.trees import image, sources, stock, trees
from pagemint.trees import patches as steps
from pagemint.trees.image import Kernel

_REBINDS, _TURNS = 30, 1
_LONGEST = 1_000_000  # seconds of a guest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint vm`."""
    options.add_source_arguments(parser, stock=True)
    parser.add_argument(
        "--arch", default="x86", choices=LABS, help="the kernels' architecture (x86)"
    )
    parser.add_argument(
        "--count",
        action="store_true",
        help="count the instructions and bytes of whole operations, emulated, instead of scenarios",
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
    parser.add_argument(
        "--limit",
        type=float,
        default=3600,
        metavar="S",
        help="seconds that a guest may take in all (3600)",
    )
    options.add_result_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint vm`."""
    if args.stock and args.arch != "x86":
        raise Failure(f"there is no stock kernel of {args.arch}", "leave --arch out")
    lab = STOCK if args.stock else LABS[args.arch]
    if args.count:
        lab = counting.lab(args, lab)
    scenarios = _chosen(args, lab)
    turns = _TURNS if args.turns is None else args.turns
    options.check_number("--turns", turns, 1, rows.MOST_RUNS // 2)
    rebinds = _REBINDS if args.rebinds is None else args.rebinds
    options.check_number("--rebinds", rebinds, 2, rows.MOST_RUNS // turns)
    if not 0 < args.limit <= _LONGEST:
        raise Failure(f"--limit {args.limit:g}: not a valid time", f"give up to {_LONGEST} s")
    _check_accel(args, lab)
    suites = _suites(args, scenarios, lab)
    scenarios |= {name: SUITES[name] for name in suites}
    size = room.parse(args.size) if args.size else None
    room.check()
    lab.check_programs(scenarios.values())
    check_writable(args)

    if args.stock:
        built = _build_stock(args.stock)
    else:
        tests = lab.native and not args.count
        built = _build_pair(args.kernel, args.ksrc, lab, scenarios, tests=tests)
    if args.count:
        return counting.run(args, built.kernels, built.about)
    accel = x86.choose_accel(args.accel, built.kernels[0].image) if lab.native else "tcg"
    device, private = room.whole_sections(size or room.default(accel))
    guest = Guest(accel, device, args.limit, directories=built.directories | suites)
    outcome = runs.run(guest, built.kernels, scenarios, rebinds, turns, private)

    host = {**machine.about(), "accel": accel, "times_comparable": accel == "kvm"}
    result = rows.Result(
        rows.Machine(**host),
        built.about,
        [*outcome.binds, *outcome.copies],
        checks=outcome.checks,
    )
    finish(args, result)
    return outcome.judge()


@dataclass(frozen=True)
class _Built:
    """The kernels that guests boot.

    Attributes:
        kernels: base and patched, those of them that the scenarios boot, or a stock kernel alone.
        about: their description in the result.
        directories: the directory with the programs of the kernel's own tests, if there are any,
            as Guest has it.
    """

    kernels: list[Kernel]
    about: rows.Kernel
    directories: dict[str, Path]


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
    line = steps.nearest_line(sources.from_tree(args.ksrc).line) if args.ksrc else args.kernel
    chosen = {}
    for name in asked or _names(lab.scenarios):
        scenario = lab.scenarios[name]
        able = steps.lines(scenario.topic or "*")
        # A line that the series does not know at all is refused with the source.
        if line in able or line not in steps.lines():
            chosen[name] = scenario
            continue
        lacks = f"the topic {scenario.topic} has no edits for Linux {line}"
        if asked:
            remedy = f"leave {name} out, or use --kernel {' or '.join(able)}"
            raise Failure(f"{name} cannot run: {lacks}", remedy)
        if not args.count:
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
        if args.stock or args.count or not lab.native:
            raise Failure(f"--{name} needs both kernels of x86", f"leave --{name} out")
        if not (directory / suite.built).exists():
            raise Failure(
                f"{name} was not built in {directory}: {suite.built} is not there",
                f"build it, or leave --{name} out",
            )
        given[name] = directory.resolve()
    return given


def _check_accel(args: argparse.Namespace, lab: Lab) -> None:
    if args.accel == "kvm" and not lab.native:
        raise Failure(f"guests for {args.arch} are emulated here", "leave --accel kvm out")
    if args.accel == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Failure("/dev/kvm cannot be used", "load the kvm module, or use --accel tcg")


def _build_stock(line: str) -> _Built:
    kernel = stock.kernel(line)
    return _Built([kernel], rows.Kernel(kernel.release, kernel.built.name, "debian"), {})


def _build_pair(
    line: str, ksrc: Path | None, lab: Lab, scenarios: Mapping[str, Scenario], *, tests: bool
) -> _Built:
    """Build the kernels that the scenarios boot, and with `tests` the kernel's own tests."""
    found = steps.source_for(line, ksrc)
    base, patched = (replace(tree, arch=lab.arch) for tree in trees.pair(found))
    booted = [
        tree
        for tree in (base, patched)
        if any(scenario.boots(tree.name) for scenario in scenarios.values())
    ]
    tests = tests and base in booted
    return _Built(
        [image.kernel(tree, lab.fragments) for tree in booted],
        rows.Kernel(
            found.version,
            base.key,
            "+".join(lab.fragments),
            series=steps.digest(found.line, code=True),
        ),
        {"selftests": image.selftests(base, others=FOREIGN in scenarios)} if tests else {},
    )
