# SPDX-License-Identifier: GPL-2.0-only
"""Prints the table of the README: a row for each result in docs/results, newest first."""

from pagemint.base import files
from pagemint.kernels import steps
from pagemint.native.device import paired
from pagemint.results import reader
from pagemint.results.reader import Result, Row

_CORES = {(25, 1): "Zen 3", (25, 17): "Zen 4", (26, 2): "Zen 5"}
_HEAD = (
    "| CPU | fsdax | devdax, 2 MiB | hot-added, 2 GiB blocks | deferred | fsdax with Safe RET |",
    "|---|---|---|---|---|---|",
)


def table() -> str:
    """Return the table in Markdown."""
    kept = sorted(files.RESULTS.glob("*.json"), reverse=True)
    return "\n".join([*_HEAD, *(_line(reader.read(str(file)), file.name) for file in kept)])


def _line(result: Result, name: str) -> str:
    family, model, *_ = result.host.family_model_stepping
    cpu = f"[{result.host.cpu} ({_CORES[family, model]})](docs/results/{name})"
    if result.kernel.series not in {steps.digest(line, code=True) for line in steps.lines()}:
        cpu += ", an earlier state of the series"
    cells = [
        _cell(result, "fsdax", "plain", ()),
        _cell(result, "devdax", "plain", ()),
        _cell(result, "hotplug", "plain", ("block 2 GiB",)),
        _cell(result, "boot", "plain", ("block 4 MiB",)),
        _cell(result, "fsdax", "safe", ()),
    ]
    return f"| {' | '.join([cpu, *cells])} |"


def _cell(result: Result, workload: str, returns: str, more: tuple[str, ...]) -> str:
    rows = {
        row.variant: row
        for row in result.rows
        if (row.workload, row.returns, row.more, row.threads) == (workload, returns, more, 1)
    }
    base, mine = rows["base"], rows["streaming"]
    return f"{base.median_ms:.0f} to {mine.median_ms:.0f} ms, {gain(base, mine):.2f}x"


def gain(base: Row, mine: Row) -> float:
    """Return the smaller of the paired median and the ratio of the fastest runs."""
    return min(paired(base.runs_ms, mine.runs_ms), min(base.runs_ms) / min(mine.runs_ms))


if __name__ == "__main__":
    print(table())
