# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint vm --count`: counts the work of whole operations, before and after."""

import argparse
from dataclasses import replace

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.commands.options import finish
from pagemint.guests.count import counts
from pagemint.guests.outside.lab import Lab
from pagemint.results import rows
from pagemint.trees.image import Kernel


def lab(args: argparse.Namespace, usual: Lab) -> Lab:
    """Return the lab with the kernels whose work is counted.

    Raises:
        Failure: the arguments ask for something that --count does not have.
    """
    for name in ("scenario", "size", "rebinds", "turns"):
        if getattr(args, name) is not None:
            raise Failure(
                f"--count has its own operations and devices and takes no --{name}",
                f"leave --{name} out",
            )
    if not usual.native:
        raise Failure(f"--count cannot count {args.arch}", "leave --arch out")
    if args.accel == "kvm":
        raise Failure(
            "--count works only in emulated guests, not under KVM", "leave --accel kvm out"
        )
    # Only the kernel's own tests need the headers, and --count does not build these tests.
    return replace(usual, fragments=counts.FRAGMENTS, headers={})


def run(args: argparse.Namespace, kernels: list[Kernel], about: rows.Kernel) -> int:
    """Count the operations on the kernels, and show and write the result.

    Raises:
        Failure: a guest fails.
    """
    emulated = counts.emulated()
    counted = counts.run(kernels, args.limit)
    host = {**machine.about(), "accel": "tcg", "times_comparable": False, "emulated": emulated}
    result = rows.Result(rows.Machine(**host), about, [], counts=counted)
    finish(args, result)
    return 0
