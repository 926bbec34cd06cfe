# SPDX-License-Identifier: GPL-2.0-only
"""`pagemint count`: counts the work of whole operations in emulated guests, before and after."""

from dataclasses import dataclass, replace

from pagemint.base import machine
from pagemint.commands import guest_kernels, options
from pagemint.guests.count import counts
from pagemint.guests.outside.lab import LABS, STOCK
from pagemint.results import rows


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `pagemint count`."""

    source: options.GuestSource
    limit: options.Limit
    output: options.Output


def main(request: Request) -> int:
    """Run `pagemint count`."""
    source, limit = request.source, request.limit.checked
    # Only the kernel's own tests need the headers of the lab, and they are not built here.
    usual = STOCK if source.stock else LABS["x86"]
    needs = tuple(name for name in usual.needs if not name.endswith(".h"))
    lab = replace(usual, fragments=counts.FRAGMENTS, needs=needs)
    lab.check_programs(())
    request.output.check()
    built = guest_kernels.build(source, lab)
    emulated = counts.emulated()
    counted = counts.run(built.kernels, limit)
    host = {**machine.about(), "accel": "tcg", "times_comparable": False, "emulated": emulated}
    request.output.finish(rows.Result(rows.Machine(**host), built.about, [], counts=counted))
    return 0
