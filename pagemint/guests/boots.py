# SPDX-License-Identifier: GPL-2.0-only
"""Boots: a kernel that initialises memory late is left with the same memory in every mode."""

from dataclasses import replace

from pagemint.base.memmap import MODES
from pagemint.base.progress import step
from pagemint.guests.guest import Guest, Record
from pagemint.kernels.image import Kernel


def boots(guest: Guest, kernel: Kernel) -> dict[str, Record]:
    """Boot a kernel once in each of its modes, and return what each boot made of the memory.

    Raises:
        Failure: a guest fails.
    """
    found = {}
    for mode in MODES if kernel.variant == "patched" else ("base",):
        append = "" if mode == "base" else f"memmap_init={mode}"
        with step(f"boot: booting the {kernel.variant} kernel ({mode}, {guest.accel})"):
            (found[mode],), _ = replace(guest, append=append).run(kernel, "boot", 2, guest.device)
    return found


def judge(found: dict[str, Record]) -> tuple[str, str]:
    """Return pass or fail for the boots of a kernel, and what there is to say."""
    first = next(iter(found))
    for mode, record in found.items():
        if not record["deferred_nodes"]:
            return "fail", f"{mode}: no memory was left for later"
        for what in ("mem_total_kib", "zones"):
            if record[what] != found[first][what]:
                return (
                    "fail",
                    f"{what}: {record[what]} ({mode}), not {found[first][what]} ({first})",
                )
    memory, nodes = (found[first][what] for what in ("mem_total_kib", "deferred_nodes"))
    return "pass", f"{memory} KiB, on {nodes} nodes initialised late, {', '.join(found)} alike"
