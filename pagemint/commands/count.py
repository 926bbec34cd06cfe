# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint count`: counts the work of whole operations in emulated guests, before and after."""

import argparse
from dataclasses import replace

from pagemint.base import machine
from pagemint.commands import guest_kernels, options
from pagemint.commands.options import check_writable, finish
from pagemint.guests.count import counts
from pagemint.guests.outside.lab import LABS, STOCK
from pagemint.results import rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pagemint count`."""
    options.add_source_arguments(parser, stock=True)
    options.add_limit(parser)
    options.add_result_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Run `pagemint count`."""
    options.check_limit(args.limit)
    # Only the kernel's own tests need the headers of the lab, and they are not built here.
    usual = STOCK if args.stock else LABS["x86"]
    needs = tuple(name for name in usual.needs if not name.endswith(".h"))
    lab = replace(usual, fragments=counts.FRAGMENTS, needs=needs)
    lab.check_programs(())
    check_writable(args)
    if args.stock:
        kernels, about = guest_kernels.stock_kernel(args.stock)
    else:
        built = guest_kernels.pair(args.kernel, args.ksrc, lab)
        kernels, about = built.kernels, built.about
    emulated = counts.emulated()
    counted = counts.run(kernels, args.limit)
    host = {**machine.about(), "accel": "tcg", "times_comparable": False, "emulated": emulated}
    finish(args, rows.Result(rows.Machine(**host), about, [], counts=counted))
    return 0
