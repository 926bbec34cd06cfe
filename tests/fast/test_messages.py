# SPDX-License-Identifier: GPL-2.0-only
"""The texts of the series and the figures in them."""

import json
import re
import shutil
import statistics
from pathlib import Path

import fake_result
import figures
import pytest
from stand_ins import Patch

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.results import estimates, reader
from pagemint.trees import sources

_TEXTS = sorted((files.KERNEL / "series").glob("*/*/message"))
_TEXTS += sorted((files.KERNEL / "series").glob("*/cover"))
_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.]| GiB)")
_TYPED = {"threads/01-padata/message": ["1.3"]}
"""Decimals that come from no result: the size of the code that padata keeps."""

_LINES = [sources.EXPECTED_FROM, sources.EXPECTED.partition("-")[0]]
"""The kernels that texts name."""


def _name(path: Path) -> str:
    return str(path.relative_to(files.KERNEL / "series"))


@pytest.mark.parametrize("path", _TEXTS, ids=_name)
def test_a_text_has_a_subject_and_a_body_and_short_lines(path: Path) -> None:
    subject, blank, *body = path.read_text().split("\n")
    assert re.fullmatch(r"\S+: [^A-Z].*[^.]", subject)
    assert blank == ""
    assert body[-1] == ""
    assert body[0] and body[-2]
    assert [line for line in (subject, *body) if len(line) > figures.WIDTH] == []
    assert "Signed-off-by" not in "".join(body)
    assert "  \n" not in path.read_text()


@pytest.mark.parametrize("listed", figures.lists(), ids=_name)
def test_each_figure_is_that_of_the_result_it_names(listed: Path) -> None:
    text, again = figures.written_again(listed)
    assert listed.read_text() == again, "run: make figures"
    assert figures.text_of(listed).read_text() == text, "run: make figures"


@pytest.mark.parametrize("path", _TEXTS, ids=_name)
def test_no_decimal_was_typed(path: Path) -> None:
    listed = path.with_name("figures")
    known = _DECIMAL.findall(listed.read_text()) if listed.exists() else []
    known += [*_TYPED.get(_name(path), []), *_LINES]
    assert [figure for figure in _DECIMAL.findall(path.read_text()) if figure not in known] == []


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A list of figures beside a message, in a series of its own."""
    folder = tmp_path / "kernel/series/all/01-one"
    folder.mkdir(parents=True)
    monkeypatch.setattr(files, "KERNEL", tmp_path / "kernel")
    monkeypatch.setattr(files, "RESULTS", tmp_path)
    return folder / "figures"


def _again(listed: Path, text: str, *calls: str, **changes: object) -> str:
    """Return a message with new figures, whose subject is left out."""
    (listed.parents[4] / "a.json").write_bytes(fake_result.text(**changes))
    listed.with_name("message").write_text(f"one: do it\n\n{text}\n")
    listed.write_text("\n".join(["a.json", *calls, ""]))
    return figures.written_again(listed)[0].removeprefix("one: do it\n\n").removesuffix("\n")


def test_new_figures_keep_the_columns_of_a_table_and_wrap_paragraphs(listed: Path) -> None:
    table = "  fsdax     9.9     1.0\n  devdax    9.9     1.0"
    calls = ['9.9 = ms("fsdax", "base")', '1.0 = ms("fsdax", "streaming")']
    calls += ['9.9 = ms("devdax", "base")', '1.0 = ms("devdax", "streaming")']
    lines = _again(listed, table, *calls).split("\n")
    assert [len(line) for line in lines] == [len(line) for line in table.split("\n")]
    assert re.fullmatch(r"  fsdax    \d\d\.\d    \d\d\.\d", lines[0])
    long = "it was measured on a machine, " * 2 + "x. " + "And more words follow here. " * 3
    body = _again(listed, long, "a machine = machine()")
    assert max(map(len, body.split("\n"))) <= figures.WIDTH
    assert "a virtual machine with" in " ".join(body.split())


def test_a_figure_is_found_in_the_order_of_the_text(listed: Path) -> None:
    calls = ['1.0 = ms("fsdax", "base")', '1.0 = ms("fsdax", "streaming")']
    base, ours = _again(listed, "From 1.0 to 1.0 ms.", *calls).split()[1:4:2]
    assert float(base) > float(ours)
    with pytest.raises(Failure, match=r"01-one/message lacks the figure 1\.0"):
        _again(listed, "From 1.0 to 12.0 ms.", *calls)


def _row(listed: Path, **case: object) -> float:
    """Return the median of the one row of `_again` with these fields."""
    (runs,) = (
        row.runs_ms
        for row in reader.read(str(listed.parents[4] / "a.json")).rows
        if all(getattr(row.case, name, row.variant) == value for name, value in case.items())
    )
    return statistics.median(runs)


def test_a_row_is_that_of_one_thread_and_plain_returns_unless_told(listed: Path) -> None:
    calls = ['1 = ms("devdax", "streaming")', '2 = ms("devdax", "streaming", threads=4)']
    calls += ['3 = ms("devdax", "streaming", returns="safe")', "4 = most_threads()"]
    shown = _again(listed, "1 2 3 4", *calls, threads=(1, 4), returns=("safe", "plain"))
    case = {"workload": "devdax", "variant": "streaming"}
    times = [
        _row(listed, threads=threads, returns=returns, **case)
        for threads, returns in ((1, "plain"), (4, "plain"), (1, "safe"))
    ]
    assert shown == " ".join([*(f"{time:.1f}" for time in times), "4"])


def test_the_largest_device_is_taken(listed: Path) -> None:
    shown = _again(listed, "7 8", "7 = size()", "8 = pages()", sizes=(10**12, 10**9))
    assert shown == "1 TB 244,140,625"


@pytest.mark.parametrize("named", ['block="2 GiB"', "block_bytes=2147483648"])
def test_the_memory_block_of_a_row_names_it(listed: Path, named: str) -> None:
    call = f'1 = ms("hotplug", "streaming", {named})'
    shown = _again(listed, "1", call, memory=True, returns=("safe", "plain"))
    case = {"workload": "hotplug", "block_bytes": 2 << 30, "returns": "plain"}
    assert shown == f"{_row(listed, variant='streaming', **case):.1f}"


@pytest.mark.parametrize("outlier", [0.7, 1.2])
def test_the_speedup_is_the_smaller_ratio(listed: Path, outlier: float) -> None:
    call = '1 = speedup("fsdax", "streaming", threads=2)'
    shown = _again(listed, "1", call, threads=(1, 2), outlier=outlier)
    rows = reader.read(str(listed.parents[4] / "a.json")).rows
    base = next(row for row in rows if row.variant == "base")
    mine = next(row for row in rows if row.variant == "streaming" and row.case.threads == 2)
    gain = estimates.gain(base.runs_ms, mine.runs_ms, paired=True)
    assert shown == f"{min(gain.paired.value, gain.fastest):.2f}"


def test_the_limit_and_the_share_of_it(listed: Path) -> None:
    calls = ["1 GB/s = fill_limit()", '0.5 = of_limit("fsdax", "streaming")']
    assert _again(listed, "1 GB/s, 0.5", *calls, noise=0.0001) == "45.3 GB/s, 0.98"


@pytest.mark.parametrize(
    "call",
    [
        'ms("private", "streaming")',
        'ns("fsdax", "base", threads=7)',
        'walk_ns("fsdax", "streaming")',
    ],
)
def test_a_figure_that_is_missing_is_one_line(listed: Path, call: str) -> None:
    with pytest.raises(Failure, match=f"names results without {re.escape(call)}"):
        _again(listed, "1", f"1 = {call}")
    with pytest.raises(Failure, match=r"no result has stored\(\)"):
        _again(listed, "1", '1 = stored("bind fsdev", "base")')


def test_machines_are_named(listed: Path) -> None:
    body = fake_result.body()
    body["host"] |= {"virtual": False, "cpus": 1}
    _again(listed, "a machine", "a machine = machine()")
    (listed.parents[4] / "a.json").write_text(json.dumps(body))
    shown, _ = figures.written_again(listed)
    assert "a machine with 1 CPU (AMD EPYC 9B45, family 26, model 2)" in shown


def test_a_result_that_moves_is_seen(listed: Path, tmp_path: Path) -> None:
    """Each list that times name moves with its result."""
    root = Path(__file__).parents[2]
    kept = root / "kernel/series/device/03-zone-device"
    bench = (kept / "figures").read_text().splitlines()[0]
    changed = json.loads((root / "docs/results" / bench).read_text())
    for row in changed["rows"]:
        row["runs_ms"] = [3 * each for each in row["runs_ms"]]
    (tmp_path / bench).write_text(json.dumps(changed))
    for name in ("message", "figures"):
        shutil.copy(kept / name, listed.parent)
    text, again = figures.written_again(listed)
    assert text != (kept / "message").read_text()
    assert again != (kept / "figures").read_text()
