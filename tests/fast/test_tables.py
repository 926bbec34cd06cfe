# SPDX-License-Identifier: GPL-2.0-only
"""A result on the terminal: the first screen, and the tables of every row."""

from typing import Any

import fake_result
import pytest
from fake_result import everything, screen

BENCH: dict[str, Any] = {**fake_result.WHOLE, "noise": 0.002}


def test_the_first_screen_has_lines_of_80_columns() -> None:
    shown = screen(fake_result.result(**BENCH))
    assert [line for line in shown if len(line) > 80] == []
    assert shown[0] == ("Medians in ms for 100 GB, 1 thread; this machine's kernel has Safe RET")
    headings = [number for number, line in enumerate(shown) if "mainline" in line]
    assert [shown[number].split("  ")[0] for number in headings] == ["Safe RET", "plain returns"]
    names = ["fsdax", "devdax", "devdax-1g", "private"]
    names += ["hotplug 128 MiB", "hotplug 2 GiB", "boot"]
    for heading in headings:
        rows = shown[heading + 1 : heading + 8]
        assert [line[:16].rstrip() for line in rows] == names
    assert "\n".join(shown[17:]) == "\n".join(
        [
            "2 MiB folios: 1.21x (folio_mc_copy) to 1.27x (copy_user_large_folio)",
            "1 GiB folios: 1.21x (folio_mc_copy) to 1.27x (copy_user_large_folio)",
            "* Linux 7.4 is expected to have Li Zhe's series; this is a stand-in for it.",
            "Fill limit: 45.3 GB/s, the best plain loop (avx512), 1 thread",
            "Quiet machine: both ratios of each gain agree within 5%.",
            "The same code twice differs by up to 0.9%.",
            "Best mode on this machine: streaming.",
            "Linux 7.3.4, configuration: debian",
            "Every row: --tables. JSON: out/bench.json",
            "Report: out/r/index.html",
        ]
    )


def test_a_line_of_a_workload_has_its_figures() -> None:
    result = fake_result.result(**BENCH)
    (line,) = (line for line in screen(result)[:4] if line.startswith("fsdax"))
    name, before, expected, after, gain, low, to, high, over, share = line.split()
    assert (name, to, share) == ("fsdax", "to", "0.98")
    assert (before, expected, after) == ("264.5", "48.0", "35.3")
    assert over == "1.36x"
    assert float(low.removeprefix("(")) <= float(gain.removesuffix("x")) <= float(high[:-1])


def test_one_kind_of_returns_is_one_block() -> None:
    shown = screen(fake_result.result(**{**BENCH, "returns": ("plain",)}))
    assert sum("mainline" in line for line in shown) == 1
    assert shown[1].startswith("plain returns")


def test_the_folios_are_of_the_class_of_this_machine() -> None:
    own = screen(fake_result.result(**BENCH, cpu_class="none"))
    assert all(" 1.1" in line for line in own if " folios: " in line)
    unknown = [
        line for line in screen(fake_result.result(**BENCH, cpu_class="")) if "folios" in line
    ]
    assert len(unknown) == 2
    assert all(": 1.1" in line and "to 1.2" in line for line in unknown)


def test_a_noisy_machine_is_called_noisy_on_the_first_screen() -> None:
    shown = screen(fake_result.result(**BENCH, outlier=0.7))
    assert [line for line in shown if len(line) > 80] == []
    (noisy,) = (line for line in shown if line.startswith("Noisy machine: "))
    assert "ratios differ by up to 4" in noisy
    assert shown[shown.index(noisy) + 1].startswith("The headline is the smaller one.")


def test_a_single_noisy_gain_is_marked_in_its_own_row() -> None:
    body = fake_result.body(noise=0.002)
    row = next(row for row in body["rows"] if row["mode"] == "streaming")
    row["runs_ms"][0] *= 0.8
    result = fake_result.read(body)
    shown = screen(result)
    assert [line.split()[0] for line in shown if ")!" in line or ") !" in line] == ["fsdax"]
    assert any(line.startswith("Quiet machine but for gains with !: ") for line in shown)
    told = everything(result)
    assert [line.split()[0] for line in told.splitlines() if "x!" in line] == ["streaming"]
    assert "!: a noisy gain" in told
    assert "!" not in everything(fake_result.result(noise=0.002))


def test_a_row_of_another_size_says_its_size() -> None:
    body = fake_result.body(noise=0.002)
    for row in body["rows"]:
        if row["case"]["workload"] == "devdax":
            row["case"] |= {"device_bytes": 1 << 26, "pages": 1 << 14}
    shown = screen(fake_result.read(body))
    assert shown[0].startswith("Medians in ms for 100 GB, 1 thread;")
    assert [line[:16].rstrip() for line in shown[2:4]] == ["fsdax", "devdax 67.1 MB"]


def test_the_first_screen_says_where_everything_is() -> None:
    result = fake_result.result()
    path = "/" + "long/" * 30
    for json_file, report, ends in (
        (None, "", ["JSON: not kept (--json FILE)", "Report: left out (--no-report)"]),
        ("-", "r", ["JSON: standard output", "Report: r/index.html"]),
        (f"{path}a.json", f"{path}r", [f"JSON: {path}a.json", f"Report: {path}r/index.html"]),
    ):
        for line, end in zip(screen(result, json_file, report)[-2:], ends, strict=True):
            assert line.endswith(end)


def test_many_trees_have_a_line_each() -> None:
    names = tuple(f"t{number}" for number in range(20))
    variants = {"base": 57.5, "base2": 58.0} | dict.fromkeys(names, 35.0)
    body = fake_result.body(trees=names, variants=variants, folio=True)
    copies = [row for row in body["rows"] if row["tree"] == "patched"]
    body["rows"] = [row for row in body["rows"] if row["tree"] != "patched"]
    body["rows"] += [row | {"tree": name} for name in names for row in copies]
    for tree in body["trees"]:
        tree |= {"identical": False, "difference": "page 3"}
    shown = screen(fake_result.read(body))
    assert [line for line in shown if len(line) > 80] == []
    for start in ("fsdax ", "2 MiB folios, "):
        told = [line for line in shown if line.startswith(start)]
        assert [name for name in names if not any(name in line for line in told)] == []
    assert len([line for line in shown if line.endswith(" more")]) == 1  # memmaps that differ


def test_a_bench_of_a_part_has_a_first_screen() -> None:
    folio = {"workloads": (), "folio": True, "memory": False}
    for changes in ({}, folio, {"workloads": ("fsdax",), "variants": {"base": 5.0}}, {"runs": 1}):
        shown = screen(fake_result.result(**changes))
        assert len(shown) > 2


def test_steps_of_operations_are_on_the_first_screen_if_they_are_asked_for() -> None:
    alone = screen(fake_result.result(workloads=(), steps=True), steps=True)
    assert (
        alone[0] == "Steps of operations, ns each   mainline       ours mode          gain  fastest"
    )
    assert [line[:28].rstrip() for line in alone[1:3]] == [
        "dax-folio, init, cold",
        "dax-folio, put, cold",
    ]
    _, mainline, ours, mode, paired, fastest = alone[2].rsplit(maxsplit=5)
    assert float(mainline.replace(",", "")) == pytest.approx(0.5e6 / 128, rel=0.05)
    assert float(ours.replace(",", "")) == pytest.approx(0.25e6 / 128, rel=0.05)
    assert mode == "patched"
    assert [float(ratio.rstrip("x")) for ratio in (paired, fastest)] == pytest.approx([2, 2], 0.05)

    # They are not memmaps, so they neither lead the screen nor get a line with a limit.
    some = screen(fake_result.result(workloads=("fsdax",), steps=True), steps=True)
    assert [line.split()[0] for line in some[2:6]] == ["fsdax", "Steps", "dax-folio,", "dax-folio,"]

    whole = fake_result.result(**BENCH, steps=True)
    assert screen(whole) == screen(fake_result.result(**BENCH))
    assert "dax-folio, put, cold" in everything(whole)


def test_every_row_is_in_the_tables() -> None:
    result = fake_result.result(**BENCH)
    shown = everything(result)
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "…" not in shown
    for row in result.rows:
        assert (row.case.function or row.case.workload) in shown
    # The tables of two threads have rows of base and base2, too.
    lines = shown.partition("Limits: ")[0].splitlines()
    assert sum(" base " in line for line in lines) == 2 * 2 * 4 + 2 * 3 + 2 * 3 * 3
    assert sum(" streaming " in line for line in lines) == 2 * 2 * 4 + 2 * 3
    for title in (
        "Times for 100 GB, 1 thread, Safe RET (this machine's)",
        "Memmap of ordinary memory, 100 GB, 1 thread, plain returns",
        "Copies of 2 MiB folios",
        "Copies of 1 GiB folios",
        "Limits: the best plain loops over the same memory",
    ):
        assert title in shown
    ordinary = shown.split("Memmap of ordinary memory")[1].split("Times for ")[0]
    assert "boot" in ordinary and "hotplug" in ordinary


def test_binds_of_guests_are_in_the_tables() -> None:
    body = fake_result.body(accel="kvm", folio=True, workloads=("fsdax",))
    for number, row in enumerate(body["rows"]):
        if row["case"]["workload"] == "fsdax":
            row["bind_ms"] = [2 * each + number for each in row["runs_ms"]]
    body["rows"][5] |= {"first_ms": 123.4, "first_bind_ms": 234.5}
    shown = everything(fake_result.read(body))
    binds, memmaps = shown.split("Memmaps in these binds")
    assert "Binds, ms, 100 GB, 1 thread, plain returns (this machine's), in a guest (kvm)" in (
        " ".join(binds.split())
    )
    assert "234" in binds and "123" in memmaps
    assert "fastest" in binds and "fastest" in memmaps
    assert "not pairs" in shown


def test_whole_operations_have_the_share_of_each_part() -> None:
    body = fake_result.body(accel="kvm", workloads=("fsdax",))
    for row in body["rows"]:
        runs = row["runs_ms"]
        row |= {"bind_ms": [2 * ms for ms in runs], "unbind_ms": [ms / 2 for ms in runs]}
        row["use_ms"] = [1.5 * ms for ms in runs]
    shown = everything(fake_result.read(body))
    _, table = shown.split("Bind, first use and unbind")
    shares = [line.split()[-7:-3] for line in table.splitlines() if " streaming " in line]
    assert shares == [["25%", "25%", "38%", "12%"]]
    assert all(len(line) <= 80 for line in table.splitlines())
    body["rows"][0]["unbind_ms"] = []
    assert "first use" not in everything(fake_result.read(body))


def test_emulated_guests_have_tables_without_gains() -> None:
    body = fake_result.body(accel="tcg", folio=True)
    for row in body["rows"]:
        row["bind_ms"] = row["runs_ms"]
    shown = everything(fake_result.read(body))
    assert "Emulated: the times cannot be compared." in shown
    assert "gain" not in shown and "fastest" not in shown


def test_a_result_of_checks_alone_has_no_tables() -> None:
    result = fake_result.check_alone()
    assert "Memmap" not in everything(result)
    assert screen(result)[-1].startswith("Report: ")


def test_markup_in_a_result_is_shown_as_it_is() -> None:
    name = "[bold]w[/bold]"
    result = fake_result.result(workloads=(name,))
    assert name in everything(result)
    assert any(line.startswith(name) for line in screen(result))


def test_a_few_runs_say_nothing_about_the_machine() -> None:
    shown = screen(fake_result.result(**{**BENCH, "runs": 1}))
    assert "Too few runs to say whether the machine is quiet." in shown
