# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/results.md and the table of the README, from the results in docs/results."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import count_tables

from pagemint import cli
from pagemint.base import returns
from pagemint.results import cases, headlines
from pagemint.results.headlines import KINDS, Headline
from pagemint.results.rows import Result
from pagemint.results.verdict import Judged
from pagemint.send import kept

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
"""The lines of the README between which the table stands."""

_CORES = {(6, 207): "Emerald Rapids", (25, 1): "Zen 3", (25, 17): "Zen 4", (26, 2): "Zen 5"}
_HEAD = (
    "| memmap of | 7.3 | 7.4's way | ours | over 7.3 | over 7.4's way | share of the limit |",
    "|---|---:|---:|---:|---:|---:|---:|",
)
_EARLIER = "\\*"
_STEPS = ("dax-folio", "device-folio", "driver")
_STEPS_TITLE = """## Steps on device folios, and blocks of 128 MiB of a driver

Times in ns for each, on {}, with its own returns.
"""
_INTRODUCTION = """# Results

`make docs-results` writes this page from the files in `docs/results`. Times are medians in ms for
the memmap of 100 GB, with one thread. A gain is the smaller of two ratios: the median of those
within each round, whose 95% interval is in brackets, and that of the fastest runs. "Equal" is
within the noise of the same code linked twice. The limit is the best plain loop of non-temporal
stores over the same memory. [report.md](report.md) says more.

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
  on a write fault only. Up to 2 MiB, `folio_copy()` takes up to 16% longer on Zen 3, and at 64 KiB
  `folio_mc_copy()` takes 9% longer on Zen 5. CPUs without ERMS still copy page by page, and those
  that use `copy_mc_fragile()` in `folio_mc_copy()` and on write faults.
- The bench times the functions that initialise a memmap, not a whole bind. A bind also allocates
  and maps the memmap and waits for RCU grace periods; `make replicate` times all of it.
- A shared memmap was used in emulated guests only, by the kernel's test driver and by files on
  fsdax. The patch for xe was compiled, but not run on a GPU.
- Hot-added memory whose driver decides which pages go online: virtio-mem was run in emulated
  guests; the changes to Hyper-V and Xen were compiled, but not run.
"""


def page() -> str:
    """Return docs/results.md."""
    benches = kept.benches()
    machines = [line for result in benches for line in _machine(result)]
    steps = _steps(Judged(benches[0]))
    return "\n".join([_INTRODUCTION, *machines, *steps, *count_tables.section(), _LIMITS])


def table() -> str:
    """Return the table of the README: the rows in which ours leads Linux 7.4, then fsdax."""
    kinds = [kind for kind in KINDS if kind.short]
    rows = [count_tables.row("CPU", *(kind.short for kind in kinds)), "|---" * len(kinds) + "|---|"]
    for judged in map(Judged, kept.benches()):
        changed = set(kept.changed(judged.result))
        by_kind = {headlines.kind_of(line.ours.row.case): line for line in headlines.chosen(judged)}
        every = {kind.workload for kind in kinds if kind in by_kind} <= changed
        cells = [_core(judged) + (_EARLIER if every else "")]
        for kind in kinds:
            mark = _EARLIER if kind.workload in changed and not every else ""
            line = by_kind.get(kind)
            if line and line.expected:
                before, ours = line.expected.time.value, line.ours.time.value
                cells.append(f"{before:.0f} to {ours:.0f} ms, {line.over_expected}{mark}")
            else:
                cells.append("-")
        rows.append(count_tables.row(*cells))
    if any(_EARLIER in row for row in rows):
        rows += ["", f"{_EARLIER} An earlier state of the patches. -: not measured."]
    return "\n".join([*rows, ""])


def readme(text: str) -> str:
    """Return the README's text with its table written again."""
    return re.sub(f"(?<={BEGIN}).*(?={END})", table(), text, flags=re.DOTALL)


def _machine(result: Result) -> Iterator[str]:
    judged = Judged(result)
    host, kernel = judged.result.host, judged.result.kernel
    name = Path(judged.result.file).name
    yield f"## {host.cpu} ({_core(judged)})"
    yield ""
    yield (
        f"Linux {kernel.version}, {kernel.config.partition(' (')[0]} configuration, "
        f"{host.compiler}, {host.date:%-d %B %Y}: [{name}](results/{name}).{_changed(judged)}"
    )
    for how in dict.fromkeys((returns.PLAIN, kernel.returns or returns.PLAIN)):
        lines = []
        for line in headlines.chosen(judged, how):
            case = line.ours.row.case
            if headlines.kind_of(case) and case.returns == how and not cases.is_copy(case):
                lines.append(line)
        if lines:
            yield from ("", f"### {cases.returns_of(how)}", "", *_HEAD, *map(_row, lines))
    yield ""


def _changed(judged: Judged) -> str:
    """Return the workloads whose code has changed since, in words."""
    changed = kept.changed(judged.result)
    if not changed:
        return ""
    names = ", ".join(f"`{name}`" for name in changed)
    whole = len(changed) == len({case.workload for case in judged.lines})
    return f" Changed since: {'everything' if whole else names}."


def _row(line: Headline) -> str:
    return count_tables.row(
        line.title,
        f"{line.before.time.value:.1f}",
        f"{line.expected.time.value:.1f}" if line.expected else "-",
        f"{line.ours.time.value:.1f}",
        f"{line.gain.headline:.2f}x ({line.interval})",
        line.over_expected.replace("?", "-"),
        line.share.replace("?", "-"),
    )


def _steps(judged: Judged) -> Iterator[str]:
    """Yield the table of the steps of whole operations."""
    members = [case for case in judged.lines if case.workload in _STEPS]
    if not members:
        return
    yield from (_STEPS_TITLE.format(_core(judged)), "| step | 7.3 | ours |", "|---|---:|---:|")
    for case in members:
        times = (judged.lines[case][variant].time.value for variant in ("base", "patched"))
        yield count_tables.row(
            cases.title(case), *(f"{ms * 1e6 / case.times:,.0f}" for ms in times)
        )
    yield ""


def _core(judged: Judged) -> str:
    family, model, *_ = judged.result.host.family_model_stepping
    return _CORES[family, model]


def main() -> int:
    """Write both; return 0."""
    (ROOT / "docs/results.md").write_text(page())
    file = ROOT / "README.md"
    file.write_text(readme(file.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(cli.guarded(main))
