# SPDX-License-Identifier: GPL-2.0-only
"""The report: the page and its plots, and the report at the end of a run."""

import html.parser
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fake_result
import pytest
from fake_result import SMALL, counted_result
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stand_ins import Patch, Refused, pagemint

from pagemint import cli
from pagemint.base.errors import Failure
from pagemint.commands.options import Output
from pagemint.report import drawings, page
from pagemint.report.plots import style
from pagemint.report.plots.sheet import errors
from pagemint.report.write import directory
from pagemint.results import headlines, reader
from pagemint.results.estimates import FEWEST, Estimate
from pagemint.results.rows import Result
from pagemint.results.verdict import Judged

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
_SLOW = settings(max_examples=8)


class _Elements(html.parser.HTMLParser):
    """Collects the names of elements, and those of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


_PLAIN = _Elements(page.make([fake_result.result()])[0])


def _with_texts(text: str) -> dict[str, Any]:
    """A result with `text` wherever it may have a text of its own."""
    body = fake_result.body(**SMALL, runs=7)
    short = text[:80]
    for name in ("cpu", "kernel", "compiler"):
        body["host"][name] = text
    body["kernel"] = dict.fromkeys(("version", "source", "config", "series", "returns"), text)
    body["kernel"]["code"] = {short or "w": short}
    for row in body["rows"]:
        row["case"] |= {"workload": short or "w", "returns": short, "function": short}
        row["case"] |= {"cpu_class": short}
    body["rows"][1]["mode"] = short or "v"
    body["limits"][0] |= {"loop": short or "l", "returns": short}
    return body


@given(st.text(max_size=200))
@example(HOSTILE)
@example("$\\frac{$ \0\x1b[31m ]]> & \u202e \ud7ff\uffff")
@example("_legend")
@_SLOW
def test_no_text_in_a_result_becomes_an_element(text: str) -> None:
    made, drawn = page.make([fake_result.read(_with_texts(text))])
    elements = _Elements(made)
    assert "script" not in elements.names
    assert elements.names <= _PLAIN.names | {"b"}
    assert not {name for name in elements.attributes if name.startswith("on")}
    files = {f"{plot.name}{kind}" for plot in drawn for kind in (".svg", ".png")}
    assert all(href in files or href[:5] == "data:" for href in elements.attributes["href"])
    for plot in drawn:
        names = {element.tag.rpartition("}")[2] for element in ET.fromstring(plot.file).iter()}
        assert not names & {"script", "foreignObject", "image", "a"}


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(fake_result.text(folio=True))
    assert cli.main(["report", str(file), "-o", str(tmp_path / "r")]) == 0
    text = (tmp_path / "r/index.html").read_text()
    assert "default-src 'none'" in text
    elements = _Elements(text)
    for value in elements.attributes["href"] | elements.attributes.get("xlink:href", set()):
        assert value.startswith(("#", "data:")) or (tmp_path / "r" / value).exists()
    assert not elements.names & {"script", "img", "iframe", "object"}
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert {"summary.svg", "time-fsdax.svg", "time-fsdax.png"} <= names


def test_a_plot_without_data_is_left_out() -> None:
    few = page.make([fake_result.result(sizes=(10**9,), workloads=("fsdax",))])[1]
    assert [plot.name for plot in few] == ["summary", "time-fsdax", "runs-fsdax"]
    many = fake_result.result(sizes=(10**9, 100 * 10**9), threads=(1, 2), folio=True)
    names = {plot.name for plot in page.make([many])[1]}
    assert {"size-fsdax", "threads-devdax", "time-folio", "time-folio-2"} <= names


_WHOLE: dict[str, Any] = {**fake_result.WHOLE, "steps": True}
_OPERATIONS = [
    *(fake_result.operation("base", 12, f"bind {number}") for number in range(12)),
    *(fake_result.operation("patched", 12 - number, f"bind {number}") for number in range(12)),
]


def _machines(count: int) -> list[Result]:
    return [fake_result.result(**_WHOLE, cpu=f"CPU {number}") for number in range(count)]


@pytest.mark.parametrize(
    ("results", "rows"),
    [
        ([fake_result.result(**_WHOLE)], 8),
        ([fake_result.result(**SMALL)], 1),
        ([fake_result.result(workloads=(), steps=True)], 2),
        ([fake_result.result(workloads=(), folio=True)], 2),
        ([fake_result.result(**SMALL, runs=1)], 1),
        ([fake_result.result(trees=("a", "b"), variants={"base": 57.0, "a": 35.0, "b": 48.0})], 4),
        (_machines(2), 8),
        (_machines(4), 8),
        (_machines(8), 8),
        ([counted_result(*_OPERATIONS)], 9),
    ],
)
def test_a_page_opens_with_a_picture_and_a_table(
    monkeypatch: Patch, results: list[Result], rows: int
) -> None:
    monkeypatch.setattr(drawings, "draw", lambda *arguments: [])  # slow
    text, drawn = page.make(results)
    before, _, rest = text.partition("<body>")[2].partition("<svg")
    assert len(re.sub("<[^>]*>", " ", before).split()) <= 60
    table = rest.partition("</svg>")[2].partition("</table>")[0]
    assert table.count("<tr") - 1 == rows <= headlines.MOST
    assert rest.find("<table") < rest.find("<details")
    assert drawn[0].name == "summary"


def test_the_first_table_has_the_figures_of_linux_7_4(monkeypatch: Patch) -> None:
    monkeypatch.setattr(drawings, "draw", lambda *arguments: [])
    variants = {**fake_result.VARIANTS, "published": 35.4}
    text, _ = page.make([fake_result.result(**_WHOLE | {"variants": variants, "noise": 0.002})])
    rows = re.findall(r'<tr class="first">(.*?)</tr>', text.partition("</table>")[0])
    cells = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    assert [row[0] for row in cells] == [
        kind.title for kind in headlines.KINDS if kind.workload not in ("vmemmap", "folio")
    ] + ["1 GiB folios: folio_mc_copy"]
    assert {row[0]: row[5] for row in cells}["fsdax"] == "equal"
    assert cells[0][5] == cells[0][4].partition("<")[0]  # 7.3 stands for 7.4


def test_each_workload_has_its_sentence_and_plots_in_a_part_that_folds() -> None:
    text, _ = page.make([fake_result.result(**_WHOLE)])
    parts = text.split("<details>")[1:]
    names = ["hotplug", "boot", "private", "fsdax", "devdax", "devdax-1g", "folio", "dax-folio"]
    assert len(parts) == len(names)
    for name, part in zip(names, parts, strict=True):
        summary, _, rest = part.partition("</summary>")
        assert "fastest runs: " in summary
        assert f'id="time-{name}' in rest and f'id="runs-{name}' in rest
    assert text.index("<h2>Noise") < text.index("<details>") < text.index("<h2>Machine")
    assert text.index("<h2>Machine") < text.index("<h2>Method")


def test_both_ratios_stand_wherever_a_gain_does() -> None:
    results = [fake_result.result(noise=0.002, outlier=0.8, seed=seed) for seed in (1, 2)]
    text, _ = page.make(results)
    assert text.count("<th>Fastest runs</th>") == text.count("<th>Gain</th>") + 1 == 2 * 2 + 1
    assert "This machine is noisy" in text
    assert text.count(", noisy</span>") == 2 * 2 * 5
    gain = Judged(results[0]).lines[results[0].rows[0].case]["streaming"].gain
    assert gain
    both = [f"{ratio:.2f}x" for ratio in (gain.paired.value, gain.fastest)]
    assert both[0] != both[1]
    for ratio in both:
        assert f">{ratio}<" in text


def test_results_of_two_machines_share_a_page_which_is_always_the_same() -> None:
    results = [fake_result.result(), fake_result.result(cpu="Intel(R) Xeon(R) 6972P")]
    text, drawn = page.make(results)
    assert page.make(results) == (text, drawn)
    names = [plot.name for plot in drawn]
    assert len(set(names)) == len(names)
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(set(ids)) == len(ids)
    assert "These are different machines" in text


def test_every_plot_has_a_heading_units_and_a_legend() -> None:
    both = ("plain", "safe")
    made = fake_result.result(threads=(1, 2), returns=both, memory=True, folio=True, steps=True)
    drawn = page.make([made])[1]
    assert len(drawn) > 10
    for plot in drawn:
        texts: dict[str, list[str]] = {"title": [], "unit": [], "legend": []}
        root = ET.fromstring(plot.svg)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for text in root.findall(".//{*}text"):
            x, y = map(float, re.findall(r"[\d.-]+", text.attrib["transform"])[-2:])
            assert 0 < x < width and 0 < y < height, (plot.name, text.text)
        for group in root.iter():
            if (kind := group.get("class", "")) in texts:
                texts[kind] += [text.text or "" for text in group.findall(".//{*}text")]
        assert texts["title"] == [plot.title]
        assert texts["unit"] and all("(" in unit for unit in texts["unit"]), plot.name
        assert len(texts["legend"]) == (plot.series if plot.series > 1 else 0), plot.name


def test_steps_of_operations_have_plots_of_their_own() -> None:
    text, drawn = page.make([fake_result.result(steps=True, noise=0)])
    plots = {plot.name: plot.svg for plot in drawn}
    assert {"time-dax-folio", "runs-dax-folio", "time-fsdax"} <= plots.keys()
    for step in ("init, cold", "put, cold"):
        assert f">{step}</text>" in plots["time-dax-folio"]
    # 0.5 ms for 128 folios.
    assert "<td>3906.25</td>" in text


def test_an_interval_has_a_bar_if_it_is_known() -> None:
    few, enough = (Estimate(3, 1, 7, count) for count in (FEWEST - 1, FEWEST))
    assert repr(errors([few, enough])) == "[[nan, 2], [nan, 4]]"


def test_a_page_without_rows_is_made() -> None:
    assert page.make([fake_result.check_alone()])[1] == []


def test_a_result_of_thousands_of_workloads_still_makes_a_page() -> None:
    body = fake_result.body(**SMALL, runs=1)
    row = body["rows"][0]
    body["rows"] = [
        {**row, "case": {**row["case"], "workload": f"w{number}"}} for number in range(2000)
    ]
    text, drawn = page.make([fake_result.read(body)])
    assert len(drawn) < 40
    assert "w1999" in text


def _luminance(colour: str) -> float:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_series_can_be_told_without_colour(scheme: str) -> None:
    looks = [*style.LOOKS.values(), *style.OTHERS]
    for a, b in itertools.combinations(looks, 2):
        shades = [look.colour if scheme == "light" else style.DARK[look.colour] for look in (a, b)]
        apart = abs(_luminance(shades[0]) - _luminance(shades[1]))
        assert a.hatch != b.hatch or apart > 0.25, (a, b)
        assert a.marker != b.marker, (a, b)


def test_checks_of_guests_are_in_a_table() -> None:
    body = fake_result.body(**SMALL, accel="tcg")
    common = {"scenario": "migrate", "said": "a <b> c"}
    body["checks"] = [
        {**common, "name": name, "tree": tree, "outcome": outcome, "must_pass": must_pass}
        for name, must_pass, base, patched in (
            ("data", True, "pass", "pass"),
            ("leak", True, "skip", "skip"),
            ("move", False, "pass", "fail"),
            ("broken", False, "fail", "fail"),
            ("fine", False, "pass", "pass"),
            ("left-out", False, "skip", "skip"),
        )
        for tree, outcome in (("base", base), ("patched", patched))
    ]
    body["checks"].append({**common, "name": "alone", "tree": "base", "outcome": "pass"})
    body["checks"][-1]["must_pass"] = False
    text, _ = page.make([fake_result.read(body)])
    table = text.partition('<table class="checks">')[2].partition("</table>")[0]
    rows = [
        re.sub(r"a &lt;b&gt; c|</?(?!td)[^>]*>", "", row).replace("</td>", "").split("<td")
        for row in table.split("<tr")[2:]
    ]
    assert [[re.sub("^.*>", "", cell.strip()) for cell in row] for row in rows] == [
        ["datamigrate", "pass", "pass", "✓ pass"],
        ["leakmigrate", "skip", "skip", "✗ skip"],
        ["movemigrate", "pass", "fail", "✗ differs"],
        ["brokenmigrate", "fail", "fail", "= both fail"],
        ["alonemigrate", "pass", "did not run", "✗ differs"],
    ]
    assert "1 fail, 1 pass, 1 skip, on both kernels alike" in text
    assert "Checks in guests" not in page.make([fake_result.result()])[0]


# The report at the end of a run.


def test_the_report_of_a_run_stands_beside_its_result(tmp_path: Path) -> None:
    assert directory("vm", "out/vm.json") == Path("out/vm-report")
    state = tmp_path / "state-home/pagemint/bench-report"
    assert directory("bench", None) == directory("bench", "-") == state
    Output(command="bench", no_report=True).report(fake_result.result(**SMALL))
    assert not state.exists()
    Output(command="bench").report(fake_result.result(**SMALL))
    assert (state / "index.html").exists()


def test_a_result_is_kept_though_nobody_reads_its_tables(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    broken_pipe = Mock(side_effect=SystemExit(1))  # as rich does
    monkeypatch.setattr("pagemint.report.tables.show_all", broken_pipe)
    file = str(tmp_path / "a.json")
    with pytest.raises(SystemExit):
        Output(command="vm", json=file, no_report=True).finish(fake_result.result(**SMALL))
    assert reader.read(file).rows


def test_a_report_is_written_in_any_locale(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(fake_result.text(**SMALL))
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = pagemint("report", file, "-o", tmp_path / "page", **ascii_only)
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "page/index.html").read_text(encoding="utf-8").isascii()


def test_a_run_does_not_begin_if_its_report_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state-home").touch()
    with pytest.raises(Failure, match=r"cannot write the report .*give --no-report, or --json"):
        Output(command="bench").check()
    Output(command="bench", no_report=True).check()
    Output(command="bench", json=str(tmp_path / "a/b.json")).check()
    assert not (tmp_path / "a").exists()


def test_a_report_that_cannot_be_written_is_one_line_and_not_drawn(
    tmp_path: Path, monkeypatch: Patch, refused: Refused
) -> None:
    monkeypatch.setattr("pagemint.report.page.make", None)
    file = tmp_path / "a.json"
    file.write_bytes(fake_result.text(**SMALL))
    for target in (file, "/proc/nowhere"):
        assert f"cannot write the report to {target}" in refused("report", file, "-o", target)
    assert "too many" in refused("report", *[file] * 9, "-o", tmp_path)


def test_nothing_that_draws_is_loaded_before_a_measurement() -> None:
    program = (
        "import sys; from pagemint import cli; from pagemint.commands import bench, vm; "
        "from pagemint.report import tables, write; from pagemint.results import reader, writer; "
        "cli.parser(); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pagemint.report" in loaded
    assert not {"matplotlib", "numpy", "jinja2", "pagemint.report.page"} & set(loaded)
