# SPDX-License-Identifier: GPL-2.0-only
"""Counted operations: in the result, on the terminal and in the report."""

import dataclasses
import re
from pathlib import Path
from typing import Any, Literal
from unittest.mock import MagicMock, Mock

import count_tables
import fake_result
import pytest
from fake_result import counted_result, counts_of, operation
from stand_ins import Patch

from pagemint.base.errors import Failure
from pagemint.guests.count import counts
from pagemint.guests.outside import x86
from pagemint.report import count_plots, page
from pagemint.results import counted, reader, writer
from pagemint.results.rows import Counts
from pagemint.send import kept
from pagemint.trees.image import Kernel

BOTH: tuple[Literal["base", "patched"], ...] = ("base", "patched")
PAIR = operation("base", 2_000_000), operation("patched", 1_000_000)


def test_counts_survive_writing_and_reading(tmp_path: Path) -> None:
    file = str(tmp_path / "counts.json")
    more = dataclasses.replace(operation("patched", 1, "more"), resident=7, latency=[1, 2, 3])
    writer.write(file, counted_result(*PAIR, more))
    assert reader.read(file).counts == [*PAIR, more]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tree": "stock"}, "Invalid enum value"),
        ({"total": {}}, "missing required field"),
        ({"bytes": -1}, "Expected `int` >= 0"),
        ({"name": "twice"}, "two counts of the same operation"),
    ],
)
def test_wrong_counts_are_refused(change: dict[str, Any], why: str) -> None:
    body = writer.body(counted_result(*PAIR, operation("base", 1, "twice")))
    body["counts"][0] |= change
    with pytest.raises(Failure, match=why):
        fake_result.read(body)


def test_the_largest_functions_are_named() -> None:
    (pair,) = counted.pairs(counted_result(*PAIR))
    assert (pair.before, pair.now) == PAIR
    assert pair.dominating() == {"fill": "60% of instructions", "clear": "100% of bytes stored"}


def test_a_stock_kernel_is_compared_with_the_module() -> None:
    with_module = dataclasses.replace(PAIR[1], tree="module")
    (pair,) = counted.pairs(counted_result(PAIR[0], with_module))
    assert (pair.before, pair.now) == (PAIR[0], with_module)
    (pair,) = counted.pairs(counted_result(PAIR[0]))  # one kernel alone has it
    assert (pair.trees, pair.last) == ((PAIR[0],), PAIR[0])


def test_boots_are_a_table_of_their_own(monkeypatch: Patch) -> None:
    boots = [
        dataclasses.replace(operation("patched", 1, f"boot with {size}, lazy"), bytes=size_bytes)
        for size, size_bytes in (("8 GiB", 8 << 30), ("2 GiB", 2 << 30))
    ]
    boots[0] = dataclasses.replace(boots[0], resident=5 << 20)
    made = dataclasses.replace(counted_result(*PAIR, *boots), file="counts.json")
    assert [pair.last.name for pair in counted.telling(made)] == ["bind fsdax"]
    monkeypatch.setattr(kept, "counts", lambda: made)
    lines = list(count_tables.section())
    at = next(i for i, line in enumerate(lines) if line.startswith("| 2 GiB"))
    assert lines[at + 1] == "| 8 GiB | patched, lazy | 0.000 M | 2.00 MiB | 5.00 MiB |"


def test_latencies_are_a_table_of_their_own(monkeypatch: Patch) -> None:
    slow = operation("patched", 1, "allocate order 9, lazy")
    slow = dataclasses.replace(slow, bytes=4 << 20, latency=[1276, 654700, 1363550])
    mean = slow.total.instructions // 2
    monkeypatch.setattr(
        kept, "counts", lambda: dataclasses.replace(counted_result(*PAIR, slow), file="counts.json")
    )
    row = f"| order 9 | patched, lazy | {mean:,} | 1,276 | 654,700 | 1,363,550 |"
    assert row in count_tables.section()


def test_what_does_not_change_has_no_row(monkeypatch: Patch) -> None:
    nearly = [operation("base", 100, "online"), operation("patched", 104, "online")]
    slower = [operation("base", 100, "offline"), operation("patched", 105, "offline")]
    for waits, ended in zip([*nearly, *slower], (7, 7, 4, 3), strict=True):
        called = dataclasses.replace(counts_of(1, 0), calls=ended)
        waits.functions.update({counted.PERIOD: called, "synchronize_rcu": called})
    made = dataclasses.replace(counted_result(*PAIR, *nearly, *slower), file="counts.json")
    monkeypatch.setattr(kept, "counts", lambda: made)
    lines = list(count_tables.section())
    assert [line.split(" | ")[0] for line in lines if "fline" in line or "online |" in line] == [
        "| offline",
        "| offline",
    ]
    assert "Within 5% before and now: online." in lines
    assert "| offline | 4 | 3 |" in lines


def test_the_table_has_both_trees() -> None:
    lines = fake_result.everything(counted_result(*PAIR)).splitlines()
    (line,) = [line for line in lines if line.startswith("bind fsdax")]
    assert line.split()[2:] == ["200", "100", "2.00", "2.00", "fill"]
    assert max(map(len, lines)) <= 80


def test_the_report_has_bars_for_both_trees() -> None:
    many = [operation(tree, 5, f"operation {i}") for i in range(20) for tree in BOTH]
    text, drawn = page.make([counted_result(*many)])
    # Nine operations a plot, and two measures.
    assert drawn[0].title == "Work of an operation, counted"
    assert [plot.title for plot in drawn[1:]] == [
        f"Operations: {measure}, {number} of 3"
        for measure in ("instructions", "bytes stored")
        for number in (1, 2, 3)
    ]
    assert "1 fill  2 clear" in drawn[1].svg
    # From top to bottom, the name of an operation is between the totals of its bars.
    texts = re.findall(r' y="([\d.]+)"[^>]*>(o|0\.)', drawn[1].svg)
    assert "".join(text for _, text in sorted((float(y), text) for y, text in texts)) == "0.o0." * 9
    assert "operation 19" in text


@pytest.mark.parametrize("console", ["", "Linux version 7.3", f"BUG: bad page\n{x86.NO_INIT}"])
def test_a_boot_that_complains_or_does_not_reach_init_is_refused(
    console: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(counts, "count_plugin", MagicMock())
    monkeypatch.setattr(counts, "_symbols", Mock())
    monkeypatch.setattr(counts, "run_program", lambda *argv, **options: console)
    with pytest.raises(Failure, match=console.partition("\n")[0] or "it wrote nothing"):
        counts.boots(Kernel("base", Path(), Path(), None), 1, [1 << 29])


def test_only_functions_with_a_share_are_kept() -> None:
    functions = {"large": counts_of(10_000, 0), "small": counts_of(1, 0)}
    functions |= {"stores": counts_of(0, 8), "fault": counts_of(9, 0)}
    made = counts.operation("patched", "bind", 4096, functions)
    assert made.total == counts_of(10_010, 8) + Counts(0, 0, 0, 0, 0, 3)
    assert list(made.functions) == ["large", "stores"]


def test_the_report_draws_all_kept_counts() -> None:
    operations = counted.pairs(kept.counts())
    assert len(operations) <= count_plots.MOST_PAIRS * count_plots.MOST_PLOTS
