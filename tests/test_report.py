# SPDX-License-Identifier: GPL-2.0-only
"""The report: what it reads and refuses, and what it makes of it."""

import argparse
import dataclasses
import html.parser
import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import fake_result
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pagemint import cli
from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.guests.binds import BindRow
from pagemint.native.device import NativeRow
from pagemint.report import page, plots
from pagemint.report.write import after_run, directory
from pagemint.results import estimates, reader, verdict
from pagemint.results.verdict import Judged

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
SMALL: dict[str, Any] = {"workloads": ("fsdax",), "modes": {"base": 57.0, "streaming": 35.0}}
_SLOW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_QUICK = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


def judged(**changes: object) -> Judged:
    """What can be said of a made result."""
    return Judged(reader.parse(fake_result.text(**changes), "a.json"))


def refusal(text: bytes) -> str:
    """The one line that says why a result is refused."""
    with pytest.raises(Failure) as caught:
        reader.parse(text, "a.json")
    said = str(caught.value)
    assert said.isprintable() and "a.json" in said, said
    return said


# What is read, and what is refused.


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "it is empty"),
        (b"{", "not a result"),
        (b"null", "no schema"),
        (b"[]", "no schema"),
        (b'{"schema": 1}', "no schema"),
        (b'{"schema": "pagemint/0"}', "'pagemint/0', and this pagemint reads 'pagemint/2'"),
        (b'{"schema": "pagemint/1"}', "missing required field `host`"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"schema": ' + b"[" * 500 + b"]" * 500 + b"}", "no schema"),
        (b'{"schema": "\xff\xfe"}', "UTF-8"),
        (b'{"schema": "pagemint/1", "x": NaN}', "not a result"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(text: bytes, why: str) -> None:
    assert why in refusal(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workload", ""),
        ("workload", 7),
        ("workload", "w" * 81),
        ("variant", None),
        ("threads", 0),
        ("threads", True),
        ("device_bytes", 1.5),
        ("pages", -1),
        ("pages", 10**30),
        ("runs_ms", []),
        ("runs_ms", [0.0]),
        ("runs_ms", [1.0, float("nan")]),
        ("runs_ms", [float("inf")]),
        ("runs_ms", ["1"]),
        ("runs_ms", [1.0] * 10_001),
        ("median_ms", -1.0),
        ("speedup", "2x"),
        ("limit_ratio", 0),
        ("folio_bytes", -1),
        ("cpu_class", 3),
    ],
)
def test_a_row_with_a_wrong_field_is_refused(field: str, value: object) -> None:
    body = fake_result.body(**SMALL)
    body["rows"][1][field] = value
    refusal(json.dumps(body).encode())


def test_a_number_too_large_for_a_float_is_refused() -> None:
    text = fake_result.text(**SMALL)
    number = json.dumps(json.loads(text)["rows"][0]["median_ms"]).encode()
    refusal(text.replace(number, b"1e999"))


@pytest.mark.parametrize("field", ["workload", "runs_ms", "pages", "limit_ratio"])
def test_a_row_without_a_required_field_is_refused(field: str) -> None:
    body = fake_result.body(**SMALL)
    del body["rows"][0][field]
    assert f"`{field}`" in refusal(json.dumps(body).encode())


def test_two_rows_of_the_same_are_refused_but_not_if_words_tell_them_apart() -> None:
    body = fake_result.body(**SMALL)
    body["rows"].append(dict(body["rows"][0]))
    assert "two rows" in refusal(json.dumps(body).encode())
    body["rows"][-1] |= {"phase": "onlining", "events": 12}
    rows = reader.parse(json.dumps(body).encode(), "a.json").rows
    assert verdict.title(rows[-1].case) == "fsdax, phase onlining"


def test_what_bench_and_vm_write_is_read() -> None:
    common: dict[str, Any] = {"workload": "fsdax", "variant": "base", "threads": 1}
    common |= {"device_bytes": 1 << 30, "pages": 1 << 18, "runs_ms": [1.0, 2.0], "median_ms": 1.5}
    common |= {"ns_per_page": 5.7, "speedup": 1.0}
    native = NativeRow(**common, limit_ratio=0.9, returns="plain")
    guest = BindRow(
        **{**common, "variant": "slow"},
        limit_ratio=None,
        bind_ms=[3.0, 4.0],
        first_bind_ms=None,
        mean_ms=1.5,
        first_ms=None,
        hash="ab",
    )
    body = fake_result.body()
    body["host"] = machine.about()
    body["rows"] = [dataclasses.asdict(native), dataclasses.asdict(guest)]
    found = reader.parse(json.dumps(body).encode(), "a.json")
    assert (found.rows[0].returns, found.rows[1].bind_ms) == ("plain", [3.0, 4.0])
    assert "-" not in found.host.kernel
    assert "3.50" in page.make([found])[0]


def test_every_truncation_is_refused() -> None:
    text = fake_result.text(**SMALL, runs=2)
    for length in range(0, len(text) - 1, 7):
        refusal(text[:length])


@given(_ANYTHING)
@_QUICK
def test_anything_is_refused_in_one_line(value: object) -> None:
    refusal(json.dumps(value).encode())
    refusal(json.dumps({"schema": "pagemint/1", "rows": value}).encode())


@st.composite
def _mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A result of which one part, at any depth, is something else, or is missing."""
    body: dict[str, Any] = fake_result.body(**SMALL, runs=7)
    body["rows"] = body["rows"][:2]
    at: Any = body
    while True:
        key = draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        inner = at[key]
        if isinstance(inner, dict | list) and inner and draw(st.booleans()):
            at = inner
        elif draw(st.booleans()):
            del at[key]
            return body
        else:
            at[key] = draw(_ANYTHING)
            return body


@given(_mutated())
@_QUICK
def test_a_result_with_any_part_changed_is_refused_or_judged(body: dict[str, Any]) -> None:
    try:
        result = reader.parse(json.dumps(body).encode(), "a.json")
    except Failure as failure:
        assert str(failure).isprintable()
        return
    one = Judged(result)
    assert verdict.compare(one, one).heading
    assert all(line.isprintable() for line in [*one.headlines(), *one.noise()])


def test_files_that_cannot_be_read_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(1 << 34)
    for file in (tmp_path, tmp_path / "none.json", huge, Path("/dev/zero"), Path("a\0b")):
        assert cli.main(["report", str(file), "-o", str(tmp_path / "out")]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("pagemint: ") and "internal" not in line
    assert not (tmp_path / "out").exists()


# Statistics.


def test_a_bootstrap_interval_holds_the_median_as_often_as_it_says() -> None:
    draw = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        estimate = estimates.median(list(draw.lognormal(0, 0.1, 25)))
        held += estimate.low <= 1 <= estimate.high
    assert 0.90 < held / 300 < 0.99


def test_pairing_is_kept() -> None:
    rounds = [10.0, 20.0, 40.0, 80.0, 10.0, 30.0, 50.0, 70.0]
    half = [each / 2 for each in rounds]
    paired = estimates.ratio(rounds, half, paired=True)
    assert (paired.value, paired.low, paired.high, paired.count) == (2, 2, 2, 8)
    apart = estimates.ratio(rounds, half, paired=False)
    assert apart.value == 2
    assert apart.high - apart.low > 1
    assert not estimates.ratio(rounds, half[1:], paired=True).paired


def test_the_sentence_is_plain() -> None:
    assert (
        estimates.sentence(estimates.Estimate(2.1, 2.08, 2.13, 30, True), 1.0)
        == "2.10x faster, 95% interval 2.08 to 2.13, 30 pairs"
    )
    assert (
        estimates.sentence(estimates.Estimate(0.5, 0.4, 0.625, 30), 1.0)
        == "2.00x slower, 95% interval 1.60 to 2.50, 30 runs of each"
    )
    assert estimates.sentence(estimates.Estimate(1.01, 0.99, 1.03, 30, True), 1.0).startswith(
        "no difference beyond the noise"
    )
    assert "too few" in estimates.sentence(estimates.Estimate(2, 2, 2, 5), 1.0)


@pytest.mark.parametrize(
    ("low", "high", "floor", "word"),
    [
        (1.01, 1.03, 1.0, "faster"),
        (1.01, 1.03, 1.02, "noise"),
        (0.99, 1.03, 1.0, "noise"),
        (0.90, 0.95, 1.02, "slower"),
        (0.97, 0.99, 1.04, "noise"),
    ],
)
def test_an_interval_that_holds_1_or_the_floor_is_noise(
    low: float, high: float, floor: float, word: str
) -> None:
    assert estimates.judge(estimates.Estimate((low + high) / 2, low, high, 10), floor) == word


def test_a_difference_as_large_as_that_of_the_same_code_is_noise() -> None:
    modes = {"base": 50.0, "base2": 51.5, "cached": 49.0, "streaming": 30.0}
    (lines,) = judged(workloads=("fsdax",), modes=modes, noise=0.001).lines.values()
    assert {name: line.verdict for name, line in lines.items()} == {
        "base": "",
        "base2": "same",
        "cached": "noise",
        "streaming": "faster",
    }


def test_a_result_of_the_first_schema_has_the_modes_of_today() -> None:
    modes = {"base": 50.0, "slow": 51.5, "template": 49.0, "streaming": 45.0}
    modes |= {"fill": 30.0, "auto": 31.0}
    body = fake_result.body(workloads=("fsdax",), modes=modes, noise=0.001)
    body |= {"schema": "pagemint/1", "slowed": [{"variant": "auto"}]}
    (lines,) = Judged(reader.parse(json.dumps(body).encode(), "a.json")).lines.values()
    medians = {name: round(line.time.value) for name, line in lines.items()}
    assert medians == {"base": 50, "slow": 52, "cached": 49, "published": 45, "streaming": 30}
    # There, mainline's own loop in the patched tree showed the noise.
    assert {name: line.verdict for name, line in lines.items()} == {
        "base": "",
        "slow": "same",
        "cached": "noise",
        "published": "faster",
        "streaming": "faster",
    }


def test_guests_are_not_paired_and_emulated_times_not_judged() -> None:
    kvm, tcg = judged(accel="kvm"), judged(accel="tcg")
    assert "no pairs" in " ".join(kvm.noise())
    speedups = [line.speedup for lines in kvm.lines.values() for line in lines.values()]
    assert not any(each.paired for each in speedups if each)
    assert tcg.headlines() == []
    assert not any(line.verdict for lines in tcg.lines.values() for line in lines.values())
    assert "emulated" in verdict.compare(kvm, tcg).heading
    text, drawn = page.make([tcg.result])
    assert "emulated" in text
    assert drawn == []


def test_headlines_say_what_was_gained() -> None:
    (said,) = judged(workloads=("fsdax",), noise=0.002).headlines()
    assert said.startswith("fsdax, 100 GB, 1 thread, plain returns: streaming is 1.6")
    assert "faster, 95% interval 1." in said
    assert "12 pairs; 0.98 of the limit." in said


def test_the_headline_of_a_copy_is_about_the_class_that_gains_least() -> None:
    said = judged(folio=True, noise=0.002).headlines()[2:]
    assert [text.split(",")[0] for text in said] == ["folio_copy", "folio_mc_copy"]
    assert all("none, 2 MiB folios" in text and "least of 4" in text for text in said)
    assert all("patched is 1.1" in text for text in said)


@pytest.mark.parametrize("drift", [1.0, 1.05])
def test_two_results_of_one_machine_and_one_code_differ_by_noise(drift: float) -> None:
    found = verdict.compare(judged(), judged(seed=2, drift=drift))
    assert {each.verdict for each in found.differences} == {"noise"}
    assert "whatever differs is noise" in found.heading


def test_between_two_results_what_the_machine_drifts_is_noise() -> None:
    before = judged()
    drifted = judged(seed=2, drift=1.05, series="other")
    found = {(e.variant): e.verdict for e in verdict.compare(before, drifted).differences}
    assert set(found.values()) == {"noise"}
    better = {**fake_result.MODES, "streaming": 30.0}
    found = {
        e.variant: e.verdict
        for e in verdict.compare(before, judged(seed=2, series="other", modes=better)).differences
    }
    assert found == {name: "noise" for name in fake_result.MODES} | {"streaming": "faster"}


def test_different_machines_are_not_judged() -> None:
    found = verdict.compare(judged(), judged(cpu="Intel Xeon"))
    assert "different machines" in found.heading
    assert {each.verdict for each in found.differences} == {""}


def test_hashes_that_differ_are_told() -> None:
    body = fake_result.body(**SMALL)
    for row in body["rows"]:
        row["hash"] = "ab"
    same = reader.parse(json.dumps(body).encode(), "a.json")
    assert Judged(same).same_hashes() is True
    body["rows"][1]["hash"] = "ab cd"
    other = reader.parse(json.dumps(body).encode(), "a.json")
    assert Judged(other).same_hashes() is False
    assert judged().same_hashes() is None


# The page.


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


_PLAIN = _Elements(page.make([reader.parse(fake_result.text(), "a.json")])[0])


def _with_texts(text: str) -> dict[str, Any]:
    """A result with `text` wherever it may have words of its own."""
    body = fake_result.body(**SMALL, runs=7)
    for name in ("cpu", "kernel", "compiler"):
        body["host"][name] = text
    for name in body["kernel"]:
        body["kernel"][name] = text
    for row in body["rows"]:
        row |= {"workload": text[:80] or "w", "returns": text, "note": text}
    body["rows"][1]["variant"] = text[:80] or "v"
    return body


@given(st.text(max_size=200))
@example(HOSTILE)
@example("$\\frac{$ \0\x1b[31m ]]> & \u202e \ud7ff\uffff")
@example("_legend")
@_SLOW
def test_no_text_in_a_result_becomes_an_element(text: str) -> None:
    made, drawn = page.make([reader.parse(json.dumps(_with_texts(text)).encode(), "a.json")])
    found = _Elements(made)
    assert "script" not in found.names
    assert found.names <= _PLAIN.names | {"h3"}
    assert not {name for name in found.attributes if name.startswith("on")}
    assert {value[:5] for value in found.attributes["href"]} <= {"data:"} | {
        f"{plot.name}."[:5] for plot in drawn
    } | {value[:5] for value in found.attributes["href"] if value.endswith((".svg", ".png"))}
    for plot in drawn:
        names = {element.tag.rpartition("}")[2] for element in ET.fromstring(plot.file).iter()}
        assert not names & {"script", "foreignObject", "image", "a"}


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(fake_result.text(folio=True))
    assert cli.main(["report", str(file), "-o", str(tmp_path / "r")]) == 0
    text = (tmp_path / "r/index.html").read_text()
    assert "default-src 'none'" in text
    found = _Elements(text)
    for value in found.attributes["href"] | found.attributes.get("xlink:href", set()):
        assert value.startswith(("#", "data:")) or (tmp_path / "r" / value).exists()
    assert not found.names & {"script", "img", "iframe", "object"}
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert {"bring-up-plain.svg", "bring-up-plain.png", "published.svg"} <= names


def test_a_plot_without_data_is_left_out() -> None:
    few = page.make([reader.parse(fake_result.text(sizes=(10**9,)), "a.json")])[1]
    assert {plot.name for plot in few} == {"bring-up-plain", "speed-up-plain", "samples-plain"}
    many = fake_result.text(sizes=(10**9, 100 * 10**9), threads=(1, 2), folio=True)
    names = {plot.name for plot in page.make([reader.parse(many, "a.json")])[1]}
    assert {"size-fsdax-plain", "threads-devdax-plain", "copy-2-mib-folios-plain"} <= names
    assert {
        "published",
        "published-copy",
        "samples-plain",
        "samples-copy-2-mib-folios-plain",
    } <= names


def test_a_result_of_thousands_of_workloads_still_makes_a_page() -> None:
    body = fake_result.body(**SMALL, runs=1)
    row = body["rows"][0]
    body["rows"] = [{**row, "workload": f"w{number}"} for number in range(2000)]
    text, drawn = page.make([reader.parse(json.dumps(body).encode(), "a.json")])
    assert len(drawn) < 10
    assert "w1999" in text


def test_the_same_result_makes_the_same_page() -> None:
    result = reader.parse(fake_result.text(), "a.json")
    assert page.make([result]) == page.make([result])


def _luminance(colour: str) -> float:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_series_can_be_told_without_colour(scheme: str) -> None:
    looks = [*plots.LOOKS.values(), *plots.OTHERS]
    for a, b in itertools.combinations(looks, 2):
        shades = [look.colour if scheme == "light" else plots.DARK[look.colour] for look in (a, b)]
        apart = abs(_luminance(shades[0]) - _luminance(shades[1]))
        assert a.hatch != b.hatch or apart > 0.25, (a, b)
        assert a.marker != b.marker, (a, b)


# The report at the end of a run.


def test_the_report_of_a_run_stands_beside_its_result(tmp_path: Path) -> None:
    assert directory("vm", "out/vm.json") == Path("out/vm-report")
    state = tmp_path / "state-home/pagemint/bench-report"
    assert directory("bench", None) == directory("bench", "-") == state
    body = fake_result.body(**SMALL)
    del body["schema"]
    args = argparse.Namespace(command="bench", json=None, no_report=True)
    after_run(args, body)
    assert not state.exists()
    args.no_report = False
    after_run(args, body)
    assert (state / "index.html").exists()


def test_a_report_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(fake_result.text(**SMALL))
    assert cli.main(["report", str(file), "-o", str(file)]) == 1
    assert "cannot write the report" in capsys.readouterr().err
    assert cli.main(["report", *[str(file)] * 9, "-o", str(tmp_path)]) == 1
    assert "too many" in capsys.readouterr().err


def test_nothing_that_draws_is_loaded_before_a_measurement() -> None:
    program = (
        "import sys; from pagemint import cli; from pagemint.commands import bench, vm; "
        "cli.parser(); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pagemint.report" in loaded
    assert not {"matplotlib", "numpy", "jinja2", "pagemint.page"} & set(loaded)


# The plot of the README.


def test_the_plot_of_the_readme_is_that_of_the_result_kept() -> None:
    docs = Path(__file__).parent.parent / "docs"
    kept = max((docs / "results").glob("*.json"))
    drawn = {plot.name: plot for plot in page.make([reader.read(str(kept))])[1]}
    (shown,) = docs.glob("*.svg")
    # If this fails because plots look different now: make readme-plot
    assert shown.read_text() == drawn[shown.stem].file
