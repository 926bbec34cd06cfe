# SPDX-License-Identifier: GPL-2.0-only
"""Result files: writing, reading, converting and refusing them."""

import datetime
import json
import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import fake_result
import pytest
from fake_result import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Capture, Patch, Refused

from pagemint.base import files, machine
from pagemint.base.errors import Failure
from pagemint.bench import timed
from pagemint.results import reader, writer
from pagemint.results.compare import compare
from pagemint.results.rows import SCHEMA, Case, Check, Kernel, Limit, Machine, Result, Row
from pagemint.results.verdict import Judged
from pagemint.send import kept

_QUICK = settings(max_examples=300)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


def refusal(text: bytes) -> str:
    """The one line that says why a result is refused."""
    with pytest.raises(Failure) as caught:
        reader.parse(text, "a.json")
    line = str(caught.value)
    assert line.isprintable() and "a.json" in line, line
    return line


# Written and read again.


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    case = Case("private", 1 << 30, 1 << 18, returns="safe")
    row = Row(
        case,
        "patched",
        "streaming",
        [1.0, 2.0],
        walk_ms=[0.5, 0.6],
        bind_ms=[3.0, 4.0],
        first_ms=9.0,
        first_bind_ms=11.0,
        hash="ab",
    )
    made = Result(
        host=Machine(**machine.about(), accel="kvm"),
        kernel=Kernel("7.3.4", "7.3.4-1", "debian (12ab)", "5f1c", "safe"),
        rows=[Row(case, "base", "", [2.0, 4.0]), row],
        limits=[Limit("fill", "avx", 1 << 30, 1 << 18, [0.9, 1.0], returns="safe")],
        checks=[Check("boot", "base", "memory", "pass", "as before", True)],
    )
    file = tmp_path / "deep/er/a.json"
    writer.check_file(str(file))
    writer.write(str(file), made)
    assert reader.read(str(file)) == replace(made, file=str(file))
    assert [path.name for path in file.parent.iterdir()] == ["a.json"]


def test_the_machine_of_a_result_is_this_one() -> None:
    host = Machine(**machine.about())
    assert host.date.tzinfo == datetime.UTC
    assert "-" not in host.kernel
    assert host.cpu_class in ("erms", "rep_good", "none")


def test_the_cpu_class_is_that_of_the_kernel() -> None:
    flags = ["rep_good erms fsrm", "rep_good erms", "rep_good", "rep_good fsrm", ""]
    classes = [machine.cpu_class(line.split()) for line in flags]
    assert classes == ["erms", "erms", "rep_good", "rep_good", "none"]


def test_figures_for_other_programs_stand_beside_the_runs() -> None:
    case = Case("fsdax", 1 << 30, 1 << 18)
    made = Result(
        host=Machine(**machine.about()),
        kernel=Kernel("7.3.4", "7.3.4-1", "debian (12ab)"),
        rows=[Row(case, "base", "", [4.0, 6.0]), Row(case, "patched", "cached", [2.0, 4.0])],
        limits=[Limit("fill", "avx", 1 << 30, 1 << 18, [1.5, 1.5])],
    )
    base, cached = writer.body(made)["rows"]
    assert (base["gain"], base["limit_share"], base["median_ms"]) == (None, 0.3, 5)
    assert cached["gain"] == {"paired": 1.75, "low": 1.75, "high": 1.75, "fastest": 2.0}
    assert cached["ns_per_page"] == 3e6 / (1 << 18)


def test_standard_output_gets_the_json_alone(capsys: Capture) -> None:
    writer.write("-", fake_result.result())
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == SCHEMA
    assert err == ""
    writer.write(None, fake_result.result())
    assert capsys.readouterr() == ("", "")


def test_each_key_and_each_row_has_a_line_of_its_own(tmp_path: Path) -> None:
    made = fake_result.result(cpu='Zen "5" \N{GREEK SMALL LETTER MU}\n')
    writer.write(str(tmp_path / "a.json"), made)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    body = writer.body(made)
    assert json.loads(text) == body
    lists = [value for value in body.values() if isinstance(value, list) and value]
    objects = sum(isinstance(item, dict) for value in lists for item in value)
    assert all(json.dumps(row, ensure_ascii=False) in text for row in body["rows"])
    assert text.count("\n") == 2 + len(body) + objects + len(lists)


def test_a_file_that_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for name in ("file/a.json", ".", "pipe"):
        with pytest.raises(Failure, match="cannot write"):
            writer.check_file(str(tmp_path / name))


def test_every_kept_result_is_read() -> None:
    assert kept.benches()
    for result in kept.benches():
        assert result.rows and result.limits
        assert {row.tree for row in result.rows} <= {"base", "base2", "patched"}
        assert {row.case.block_bytes for row in result.rows} >= {0, 128 << 20, 2 << 30}
        assert {limit.kind for limit in result.limits} == {"fill", "copy"}
        assert {row.case.threads for row in result.rows if row.tree == "base"} == {1}


def test_results_of_the_series_as_it_is_come_first(tmp_path: Path, monkeypatch: Patch) -> None:
    now = timed.digests("7.3")
    for name, day, code in (("b", 2, {}), ("c", 1, now), ("a", 3, {**now, "fsdax": ""})):
        body = json.loads(fake_result.text(code=code))
        body["host"]["date"] = f"2026-01-0{day}T00:00:00Z"
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    monkeypatch.setattr(files, "RESULTS", tmp_path)
    assert [Path(result.file).stem for result in kept.benches()] == ["c", "a", "b"]


# Refused.


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "it is empty"),
        (b"{", "not a result"),
        (b"null", "no schema"),
        (b"[]", "no schema"),
        (b'{"schema": 1}', "no schema"),
        (
            b'{"schema": "pagemint/1"}',
            "'pagemint/1', and this pagemint reads 'pagemint/2'; make it",
        ),
        (b'{"schema": "pagemint/2"}', "missing required field `host`"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"schema": ' + b"[" * 500 + b"]" * 500 + b"}", "no schema"),
        (b'{"schema": "pagemint/2", "x": ' + b"[" * 900 + b"]" * 900 + b"}", ""),
        (b'{"schema": "\xff\xfe"}', "UTF-8"),
        (b'{"schema": "pagemint/2", "x": NaN}', "not a result"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(text: bytes, why: str) -> None:
    assert why in refusal(text)


_WRONG: dict[str, dict[str, list[Any]]] = {
    "case": {
        "workload": ["", 7, "w" * 81],
        "threads": [0, True],
        "device_bytes": [1.5],
        "pages": [-1, 10**30],
        "folio_bytes": [-1],
        "block_bytes": ["128 MiB"],
        "cpu_class": [3],
        "returns": [None],
    },
    "row": {
        "case": [{}],
        "tree": [None, ""],
        "mode": [1],
        "runs_ms": [[], [0.0], [1.0, float("nan")], [float("inf")], ["1"], [1.0] * 10_001],
        "walk_ms": [[-1.0]],
        "bind_ms": [None],
        "first_ms": [0],
        "hash": ["h" * 81],
    },
    "limit": {"kind": ["other"], "loop": [""], "runs_ms": [[]], "pages": [0], "threads": ["1"]},
}


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        (part, field, value)
        for part, fields in _WRONG.items()
        for field, values in fields.items()
        for value in values
    ],
)
def test_a_wrong_field_is_refused(part: str, field: str, value: object) -> None:
    body = fake_result.body(**SMALL)
    row, limit = body["rows"][1], body["limits"][0]
    {"case": row["case"], "row": row, "limit": limit}[part][field] = value
    refusal(json.dumps(body).encode())


def test_a_number_too_large_for_a_float_is_refused() -> None:
    text = fake_result.text(**SMALL)
    number = json.dumps(json.loads(text)["rows"][0]["runs_ms"][0]).encode()
    refusal(text.replace(number, b"1e999"))


@pytest.mark.parametrize("field", ["case", "tree", "mode", "runs_ms"])
def test_a_row_without_a_required_field_is_refused(field: str) -> None:
    body = fake_result.body(**SMALL)
    del body["rows"][0][field]
    assert f"`{field}`" in refusal(json.dumps(body).encode())


def test_too_much_or_nothing_is_refused() -> None:
    body = fake_result.body(**SMALL, runs=1)
    row, limit = body["rows"][0], body["limits"][0]
    many = [{**row, "mode": f"m{number}", "runs_ms": [1.0] * 10_000} for number in range(51)]
    for changed, why in (
        ({"rows": []}, "no rows, checks or counts"),
        ({"rows": [row] * 2}, "two rows"),
        ({"rows": [row] * 2001}, "more than 2,000 rows"),
        ({"limits": [limit] * 2001}, "more than 2,000 limits"),
        ({"rows": [{**row, "bind_ms": [1.0], "unbind_ms": [1.0, 2.0]}]}, "differ in number"),
        ({"rows": [{**row, "use_ms": [1.0]}]}, "differ in number"),
        ({"rows": many}, "more than 500,000 runs"),
    ):
        assert why in refusal(json.dumps({**body, **changed}).encode())


def test_a_result_may_have_checks_alone() -> None:
    (check,) = fake_result.check_alone("two\nlines\x1b[31m").checks
    assert check.said == "two\ufffdlines\ufffd[31m"


def test_every_truncation_is_refused() -> None:
    text = fake_result.text(**SMALL, runs=2)
    for length in range(0, len(text) - 1, 7):
        refusal(text[:length])


@given(_ANYTHING)
@_QUICK
def test_anything_is_refused_in_one_line(value: object) -> None:
    refusal(json.dumps(value).encode())
    refusal(json.dumps({"schema": "pagemint/2", "rows": value}).encode())


@st.composite
def _mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A result of which one part, at any depth, is something else, or is missing."""
    body = fake_result.body(**SMALL, runs=7)
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
        result = fake_result.read(body)
    except Failure as failure:
        assert str(failure).isprintable()
        return
    judged = Judged(result)
    assert compare(judged, judged).heading
    lines = [*chain(*judged.sentences().values()), *judged.noise()]
    assert all(line.isprintable() for line in lines)
    json.dumps(writer.body(result), allow_nan=False)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path, refused: Refused) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(1 << 34)
    for file in (tmp_path, tmp_path / "none.json", huge, Path("/dev/zero"), Path("a\0b")):
        refused("report", str(file), "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
