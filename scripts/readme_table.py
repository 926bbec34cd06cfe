# SPDX-License-Identifier: GPL-2.0-only
"""Prints the table of the README: a row for each result in docs/results.

With the argument folios, it prints the table of device folios in docs/operations.md.
"""

import argparse
from pathlib import Path

from pagemint.results.verdict import Judged, Line
from pagemint.send import kept

_CORES = {(6, 207): "Emerald Rapids", (25, 1): "Zen 3", (25, 17): "Zen 4", (26, 2): "Zen 5"}
_HEAD = (
    "| CPU | fsdax | devdax, 2 MiB | hot-added, 2 GiB blocks | deferred | fsdax with Safe RET |",
    "|---|---|---|---|---|---|",
)
_BLOCK = 2 << 30  # bytes of the memory blocks that are shown
_FOLIOS = ("dax-folio", "device-folio")


def table() -> str:
    """Return the table in Markdown."""
    return "\n".join([*_HEAD, *(_line(Judged(one)) for one in kept.benches())])


def folios() -> str:
    """Return the table of the steps of device folios in Markdown: ns before and now."""
    found = [
        one
        for one in map(Judged, kept.benches())
        if any(case.workload in _FOLIOS for case in one.lines)
    ]
    heads = [_core(one) + ("" if kept.is_current(one.result) else ", earlier") for one in found]
    rows = [f"| step | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    names = {
        case.workload + ", " + case.operation: None
        for one in found
        for case in one.lines
        if case.workload in _FOLIOS
    }
    rows += [f"| {name} | {' | '.join(_step(one, name) for one in found)} |" for name in names]
    return "\n".join(rows)


def _step(judged: Judged, name: str) -> str:
    for case, lines in judged.lines.items():
        if f"{case.workload}, {case.operation}" == name and {"base", "patched"} <= lines.keys():
            before, now = (
                f"{lines[tree].time.value * 1e6 / case.times:,.0f}" for tree in ("base", "patched")
            )
            return f"{before} to {now}"
    return "-"


def _core(judged: Judged) -> str:
    family, model, *_ = judged.result.host.family_model_stepping
    return _CORES[family, model]


def _line(judged: Judged) -> str:
    name = Path(judged.result.file).name
    cpu = f"[{judged.result.host.cpu} ({_core(judged)})](docs/results/{name})"
    if not kept.is_current(judged.result):
        cpu += ", an earlier state of the series"
    cells = [
        _cell(judged, "fsdax", "plain", 0),
        _cell(judged, "devdax", "plain", 0),
        _cell(judged, "hotplug", "plain", _BLOCK),
        _cell(judged, "boot", "plain", 0),
        _cell(judged, "fsdax", "safe", 0),
    ]
    return f"| {' | '.join([cpu, *cells])} |"


def _cell(judged: Judged, workload: str, returns: str, *blocks: int) -> str:
    """Return both times and the headline, or a dash if the result lacks the workload."""
    lines = _lines(judged, workload, returns, blocks)
    gain = lines["streaming"].gain if "streaming" in lines else None
    if gain is None:
        return "-"
    base, mine = lines["base"].time.value, lines["streaming"].time.value
    return f"{base:.0f} to {mine:.0f} ms, {gain.headline:.2f}x"


def _lines(judged: Judged, workload: str, returns: str, blocks: tuple[int, ...]) -> dict[str, Line]:
    wanted = (workload, returns, 1)
    for case, lines in judged.lines.items():
        if (case.workload, case.returns, case.threads) == wanted and case.block_bytes in blocks:
            return lines
    return {}


if __name__ == "__main__":
    tables = {"devices": table, "folios": folios}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=tables, default="devices")
    print(tables[parser.parse_args().table]())
