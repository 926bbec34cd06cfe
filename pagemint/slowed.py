# SPDX-License-Identifier: GPL-2.0-only
"""What the mode auto chooses, and what that costs, where stores are slowed on purpose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from pagemint.measure import NativeRow, Workload, measure, paired
from pagemint.native import Host

KINDS = {
    "streamed": "0 0 0 2000 0 0 0",
    "cached": "0 0 2000 0 0 0 0",
    "delays": "0 0 0 0 50000 20000 73",
}
"""What is slowed, as native/host.c takes it: by 2 ns a page, or all, for 20 us after each 50."""

RUNS = 3
"""Of each, at the most."""

_SINGLE = ("template", "fill")  # the candidates of auto


@dataclass(frozen=True)
class SlowedRow(NativeRow):
    """A row of a host whose patched code has some of its stores slowed; base has not.

    Attributes:
        slowed: a key of KINDS.
    """

    slowed: str


def rounds(runs: int) -> int:
    """Return of how many rounds `measure_slowed` tells."""
    return len(KINDS) * (min(runs, RUNS) + 1)


def measure_slowed(
    host: Host,
    returns: str,
    device: int,
    workloads: Sequence[Workload],
    runs: int,
    done: Callable[[float], None],
) -> list[SlowedRow]:
    """Time base, auto and its candidates on each kind of slow stores; see measure.measure()."""
    rows = []
    for kind, speeds in KINDS.items():
        host.ask("speeds", "real", speeds)
        modes = (*_SINGLE, "auto")
        timed, _ = measure(host, returns, device, workloads, (1,), min(runs, RUNS), done, modes)
        rows += [SlowedRow(**vars(row), slowed=kind) for row in timed]
    return rows


def table(rows: Sequence[NativeRow]) -> Table:
    """Return a table for a terminal: auto beside the rest, in slowed rows and in others."""
    shown = Table(
        title="Mode auto, with stores slowed on purpose, plain returns",
        caption="ms; best is the best single mode; ratios in pairs, over 1 if auto is faster",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("slowed", "workload"):
        shown.add_column(name, no_wrap=True)
    variants = ("base", *_SINGLE, "auto")
    for name in (*variants, "best/auto", "base/auto"):
        shown.add_column(name, justify="right", no_wrap=True)
    found: dict[tuple[str, str], dict[str, NativeRow]] = {}
    for row in rows:
        kind = row.slowed if isinstance(row, SlowedRow) else "nothing"
        found.setdefault((kind, row.workload), {})[row.variant] = row
    for case, by in found.items():
        single = [row for name, row in by.items() if name not in ("base", "auto")]
        best = min(single, key=lambda row: row.median_ms)
        shown.add_row(
            *case,
            *(f"{by[name].median_ms:.2f}" for name in variants),
            f"{paired(best.runs_ms, by['auto'].runs_ms):.2f}",
            f"{by['auto'].speedup:.2f}",
        )
    return shown
