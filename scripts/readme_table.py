# SPDX-License-Identifier: GPL-2.0-only
"""Prints the table of the README: a row for each result in docs/results, newest first."""

from pagemint.kernels import steps
from pagemint.results import kept, reader
from pagemint.results.verdict import Judged, Line

_CORES = {(6, 207): "Emerald Rapids", (25, 1): "Zen 3", (25, 17): "Zen 4", (26, 2): "Zen 5"}
_HEAD = (
    "| CPU | fsdax | devdax, 2 MiB | hot-added, 2 GiB blocks | deferred | fsdax with Safe RET |",
    "|---|---|---|---|---|---|",
)
_BLOCK = 2 << 30  # bytes of the memory blocks that are shown
_CHUNK = 4 << 20  # the block size of deferred memory in results of pagemint/1


def table() -> str:
    """Return the table in Markdown."""
    return "\n".join(
        [*_HEAD, *(_line(Judged(reader.read(str(file))), file.name) for file in kept.benches())]
    )


def _line(judged: Judged, name: str) -> str:
    host = judged.result.host
    family, model, *_ = host.family_model_stepping
    cpu = f"[{host.cpu} ({_CORES[family, model]})](docs/results/{name})"
    if judged.result.kernel.series not in steps.digests():
        cpu += ", an earlier state of the series"
    cells = [
        _cell(judged, "fsdax", "plain", 0),
        _cell(judged, "devdax", "plain", 0),
        _cell(judged, "hotplug", "plain", _BLOCK),
        _cell(judged, "boot", "plain", 0, _CHUNK),
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
    print(table())
