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
_STEPS = ("dax-folio", "device-folio", "driver", "grow")
_STEPS_TITLE = """## Steps on device folios, and blocks of 128 MiB of a driver

Times in ns for each, on {}, with the returns of its kernel.
"""
_FOLIOS = ("folio_copy", "folio_mc_copy", "copy_user_large_folio")
_FOLIO_SIZES = (64 << 10, 2 << 20, 1 << 30)
_COPIES = """## Folio copies

Speed of the patched kernel's copy over mainline's; below 1 it takes longer. CPUs without ERMS, and
those that use `copy_mc_fragile()`, still copy page by page. On write faults of up to 2 MiB they
gain by the order.

| CPU | function | 64 KiB | 2 MiB | 1 GiB |
|---|---|---:|---:|---:|"""
_INTRODUCTION = """# Results

`make docs-results` writes this page from the files in `docs/results`. Times are medians in ms for
the memmap of 100 GB, with one thread. A gain is the smaller of two ratios: the median of those
within each round, whose 95% interval is in brackets, and that of the fastest runs. "Equal" is
within the noise of the same code linked twice. The limit is the best plain loop of non-temporal
stores over the same memory. [report.md](report.md) says more.

Linux 7.4 is expected to have [Li Zhe's series](prior-work.md). The topic `published` stands for
it, written from the description of v5. Where that series changes nothing, 7.3 stands for 7.4.

Mainline calls a function for each page, so its speed depends on the return instruction. The kernels
of these AMD machines use Safe RET, a mitigation; CPUs without the flaw use a plain return. The
kernel of the Intel machine mitigates ITS in its returns, which the bench does not patch in:
mainline takes longer there than these tables say.
"""

_LIMITS = """## Limits

- The bench is for x86-64.
- arm64 was tested under emulation only, where `stnp` is a store like any other: the memmaps are
  right, the gain is unknown. On other architectures the copies are written through the cache.
- Two threads took about half the time of one on Emerald Rapids. On the AMD machines it changed
  from minute to minute: half the time, or no gain. A host may run both CPUs of such a machine on
  one core.
- The bench times the functions that initialise a memmap, not a whole bind. A bind also allocates
  and maps the memmap and waits for RCU grace periods; `make replicate` times all of it.
- A driver that keeps all pages of a block when it goes online, as Xen's does, waits longer: see
  "driver, all kept". `online` writes the struct pages for the allocator, and then once more.
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
    copies = [row for result in benches for row in _copies(Judged(result))]
    return "\n".join(
        [_INTRODUCTION, *machines, _COPIES, *copies, "", *steps, *count_tables.section(), _LIMITS]
    )


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
    what = "all timed code" if whole else f"the code of {names}"
    return f" Changed since: {what}."


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


def _copies(judged: Judged) -> Iterator[str]:
    """Yield the rows of the folio copies."""
    for function in _FOLIOS:
        gains = {
            case.folio_bytes: f"{line.gain.headline:.2f}"
            for case in judged.lines
            if case.function == function and case.cpu_class == judged.result.host.cpu_class
            for line in judged.shown(case)
            if line.gain
        }
        if gains:
            cells = (gains.get(size, "-") for size in _FOLIO_SIZES)
            yield count_tables.row(_core(judged), f"`{function}()`", *cells)


def _steps(judged: Judged) -> Iterator[str]:
    """Yield the table of the steps of whole operations."""
    own = judged.result.kernel.returns
    members = [case for case in judged.lines if case.workload in _STEPS and case.returns == own]
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
