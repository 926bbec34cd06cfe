# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/results.md and the table of the README, from the results in docs/results."""

import re
from collections.abc import Iterator
from pathlib import Path

import count_tables

from pagemint.base import returns
from pagemint.results import cases
from pagemint.results.rows import Case, Result
from pagemint.results.verdict import Judged, Line
from pagemint.send import kept

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
"""The lines of the README between which the table stands."""

_CORES = {(6, 207): "Emerald Rapids", (25, 1): "Zen 3", (25, 17): "Zen 4", (26, 2): "Zen 5"}
_ROWS = {
    ("fsdax", 0): "fsdax",
    ("devdax", 0): "devdax, 2 MiB compounds",
    ("devdax-1g", 0): "devdax, 1 GiB compounds",
    ("private", 0): "device-private",
    ("vmemmap", 0): "device-private, with the allocation of its memmap",
    ("hotplug", 128 << 20): "hot-added, blocks of 128 MiB",
    ("hotplug", 2 << 30): "hot-added, blocks of 2 GiB",
    ("boot", 0): "deferred to after boot",
}
"""The rows of a table, by workload and block size."""

_README = (("hotplug", 2 << 30), ("boot", 0), ("vmemmap", 0), ("fsdax", 0))
_README_HEAD = (
    "| CPU | hot-added memory | deferred memory | private device, whole | pmem (fsdax) |",
    "|---|---|---|---|---|",
)
_HEAD = (
    "| memmap of | 7.3 | 7.4's way | ours | over 7.3 | over 7.4's way | share of the limit |",
    "|---|---:|---:|---:|---:|---:|---:|",
)
_FOLIOS = ("dax-folio", "device-folio")
_STEPS = "### Steps on device folios, ns each"
_INTRODUCTION = """# Results

`make docs-results` writes this page from the files in `docs/results`. Times are medians in ms for
the memmap of 100 GB, with one thread. A gain is the smaller of two ratios: the median of those
within each round, whose 95% interval is in brackets, and that of the fastest runs. "Equal" is
within the noise of the same code linked twice. The limit is the best plain loop of non-temporal
stores over the same memory. [replicate.md](replicate.md) says more.

Linux 7.4 is expected to have [Li Zhe's series](prior-work.md). The topic `published` stands for
it, written from the description of v5. Where that series changes nothing, 7.3 stands for 7.4.

Mainline returns from a function for each page, so it pays for how the kernel returns. Safe RET is
a mitigation that the kernels of these AMD machines use. Plain returns are those of a CPU that
needs none. The kernel of the Intel machine mitigates ITS in its returns, which the bench does not
patch in: mainline takes longer there than these tables say.
"""

_LIMITS = """## Limits

- The bench is for x86-64.
- arm64 was tested under emulation only, where `stnp` is a store like any other: the memmaps are
  right, the gain is unknown. On other architectures the copies are written through the cache.
- Two threads took about half the time of one on Emerald Rapids. On the AMD machines it changed
  from minute to minute: half the time, or no gain. A host may run both CPUs of such a machine on
  one core.
- Folio copies gain at 1 GiB. Folios of 2 MiB gain on Zen 5 and Emerald Rapids. On Zen 4 they gain
  on a write fault only. On Zen 3 `folio_copy()` takes about 5% longer, and in the kept result 2%
  to 16%. CPUs without ERMS still copy page by page, and those that use `copy_mc_fragile()` in
  `folio_mc_copy()` and on write faults.
- The bench times the functions that initialise a memmap, not a whole bind. A bind also allocates
  and maps the memmap and waits for RCU grace periods; `make replicate` times all of it.
- A shared memmap was used in emulated guests only, by the kernel's test driver and by files on
  fsdax. The patch for xe was compiled, but not run on a GPU.
- Hot-added memory whose driver decides which pages go online: virtio-mem was run in emulated
  guests; the changes to Hyper-V and Xen were compiled, but not run.
"""


def page() -> str:
    """Return docs/results.md."""
    machines = [line for one in kept.benches() for line in _machine(one)]
    return "\n".join([_INTRODUCTION, *machines, *count_tables.section(), _LIMITS])


def table() -> str:
    """Return the table of the README: the rows in which ours leads Linux 7.4, then fsdax."""
    rows = []
    for judged in map(Judged, kept.benches()):
        cells = [_cell(judged, *key) for key in _README]
        rows.append(f"| {' | '.join([_core(judged), *cells])} |")
    return "\n".join([*_README_HEAD, *rows, ""])


def readme(text: str) -> str:
    """Return the README's text with its table written again."""
    return re.sub(f"(?<={BEGIN}).*(?={END})", table(), text, flags=re.DOTALL)


def _machine(result: Result) -> Iterator[str]:
    judged = Judged(result)
    host, kernel = judged.result.host, judged.result.kernel
    name = Path(judged.result.file).name
    yield f"## {host.cpu} ({_core(judged)})"
    yield ""
    earlier = "" if kept.is_current(judged.result) else " What it times has changed since."
    yield (
        f"Linux {kernel.version}, {kernel.config.partition(' (')[0]} configuration, "
        f"{host.compiler}, {host.date:%-d %B %Y}: [{name}](results/{name}).{earlier}"
    )
    for kind in dict.fromkeys((returns.PLAIN, kernel.returns or returns.PLAIN)):
        lines = [(title, _line(judged, *key, kind)) for key, title in _ROWS.items()]
        rows = [_row(judged, title, line) for title, line in lines if line]
        if rows:
            yield from ("", f"### {cases.returns_of(kind)}", "", *_HEAD, *rows)
    yield from _steps(judged)
    yield ""


def _row(judged: Judged, title: str, line: Line) -> str:
    base, expected = judged.over(line.row.case), judged.expected(line.row.case)
    assert base and line.gain
    paired = line.gain.paired
    cells = [
        title,
        f"{base.time.value:.1f}",
        f"{expected.time.value:.1f}" if expected else "-",
        f"{line.time.value:.1f}",
        f"{line.gain.headline:.2f}x ({paired.low:.2f} to {paired.high:.2f})",
        judged.over_expected(line).replace("?", "-"),
        f"{line.limit_share:.2f}" if line.limit_share else "-",
    ]
    return f"| {' | '.join(cells)} |"


def _steps(judged: Judged) -> Iterator[str]:
    """Yield the table of the steps on device folios."""
    members = [case for case in judged.lines if case.workload in _FOLIOS]
    if not members:
        return
    yield from ("", _STEPS, "", "| step | 7.3 | ours |", "|---|---:|---:|")
    for case in members:
        before, now = (_ns(judged, case, variant) for variant in ("base", "patched"))
        yield f"| {cases.title(case)} | {before} | {now} |"


def _ns(judged: Judged, case: Case, variant: str) -> str:
    return f"{judged.lines[case][variant].time.value * 1e6 / case.times:,.0f}"


def _core(judged: Judged) -> str:
    family, model, *_ = judged.result.host.family_model_stepping
    return _CORES[family, model]


def _cell(judged: Judged, workload: str, block: int) -> str:
    """Return the times and the gain over Linux 7.4, or a dash if the result lacks the workload."""
    line = _line(judged, workload, block, returns.PLAIN)
    expected = judged.expected(line.row.case) if line else None
    if not line or not expected:
        return "-"
    over = judged.over_expected(line)
    return f"{expected.time.value:.0f} to {line.time.value:.0f} ms, {over}"


def _line(judged: Judged, workload: str, block: int, kind: str) -> Line | None:
    """Return the line of ours with one thread on the largest device; None if there is none."""
    members = (
        case
        for case in judged.lines
        if (case.workload, case.returns, case.threads) == (workload, kind, 1)
        and case.block_bytes in (block, 0)
    )
    for case in judged.largest(members):
        for line in judged.shown(case):
            return line
    return None


def main() -> None:
    """Write both."""
    (ROOT / "docs/results.md").write_text(page())
    file = ROOT / "README.md"
    file.write_text(readme(file.read_text()))


if __name__ == "__main__":
    main()
