# SPDX-License-Identifier: GPL-2.0-only
"""The texts of the series and the figures in them."""

import copy
import json
import re
import shutil
import statistics
from pathlib import Path

import fake_result
import pytest

from pagemint.base import files
from pagemint.base.errors import Failure
from pagemint.results import estimates, reader
from pagemint.send import kept, messages
from pagemint.trees import patches

_KEPT = Path(kept.benches()[0].file)
_COUNT = re.compile(
    r"\d+(\.\d+)?\s(M|MiB|GiB)\b|^  .*map=(mem|dev).*$"
    r"|^  (device-private|bind|allocation|unbind)( +[\d.]+){4}$",
    re.MULTILINE,
)
_NAMES = [step.path for step in patches.of(patches.lines()[-1])]
_NAMES += [f"{topic.name}/{patches.COVER}" for topic in patches.topics()]


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The message of a topic with one step, whose cover letter has no figures."""
    folder = tmp_path / "kernel/series/all/01-one"
    folder.mkdir(parents=True)
    (folder / "7.3.diff").touch()
    (folder.parent / "cover").write_text("all: do it\n\nIn one step.\n")
    (folder.parent.parent / "topics").write_text("all\n")
    monkeypatch.setattr(files, "KERNEL", tmp_path / "kernel")
    return folder / "message"


def _result(path: Path, **changes: object) -> str:
    path.write_bytes(fake_result.text(**changes))
    return str(path)


def _body(template: Path, text: str, *results: str) -> str:
    template.write_text(f"one: do it\n\n{text}\n")
    filled = messages.filled(results)["all/01-one"]
    return filled.removeprefix("one: do it\n\n").removesuffix("\n")


@pytest.mark.parametrize("name", _NAMES)
def test_a_text_has_a_subject_and_a_body_and_short_lines(name: str) -> None:
    subject, blank, *body = messages.filled(())[name].split("\n")
    assert re.fullmatch(r"\S+: [^A-Z].*[^.]", subject)
    assert blank == ""
    assert body[-1] == ""
    assert body[0] and body[-2]
    assert [line for line in (subject, *body) if len(line) > 75] == []
    assert "Signed-off-by" not in "".join(body)
    assert not re.search(r"\{[{%]|[}%]\}|  +\n", "\n".join(body))


def test_every_figure_is_of_the_results_that_are_given(tmp_path: Path) -> None:
    """Each figure moves with the results: none was typed."""
    changed = json.loads(_KEPT.read_text())
    for row in changed["rows"]:
        factor = {"base": 2, "base2": 5}.get(row["tree"], 3)
        for name in ("runs_ms", "walk_ms"):
            row[name] = [factor * each for each in row[name]]
    for limit in changed["limits"]:
        limit["runs_ms"] = [7 * each for each in limit["runs_ms"]]
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    told = messages.filled([str(_KEPT)])
    moved = messages.filled([str(tmp_path / "changed.json")])
    assert messages.filled(()) == told
    # Counts of instructions and bytes do not depend on the machine.
    told, moved = (
        {name: _COUNT.sub("", text) for name, text in texts.items()} for texts in (told, moved)
    )
    decimal = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")
    measured = {name for name in told if decimal.search(told[name])}
    wanted = {"device/03-zone-device", "copies/02-folio-copy", "online/03-deferred"}
    assert measured >= {*wanted, "device/cover", "online/cover"}
    for name in measured:
        was, now = decimal.findall(told[name]), decimal.findall(moved[name])
        assert len(was) == len(now)
        still = [a for a, b in zip(was, now, strict=True) if a == b]
        # The size of the code that padata keeps does not depend on the machine.
        assert still == (["1.3"] if name == "threads/01-padata" else []), name


def test_a_row_is_that_of_one_thread_and_plain_returns_unless_told(
    template: Path, tmp_path: Path
) -> None:
    result = _result(tmp_path / "a.json", threads=(1, 4), returns=("safe", "plain"))
    rows = reader.read(result).rows

    def of(threads: int, returns: str) -> str:
        (row,) = [
            row
            for row in rows
            if (row.case.workload, row.variant) == ("devdax", "streaming")
            and (row.case.threads, row.case.returns) == (threads, returns)
        ]
        return f"{statistics.median(row.runs_ms):.1f}"

    text = "{{ ms('devdax', 'streaming') }} {{ ms('devdax', 'streaming', threads=most_threads()) }}"
    text += " {{ ms('devdax', 'streaming', returns='safe') }}"
    assert _body(template, text, result) == f"{of(1, 'plain')} {of(4, 'plain')} {of(1, 'safe')}"


def test_the_largest_device_is_taken(template: Path, tmp_path: Path) -> None:
    result = _result(tmp_path / "a.json", sizes=(10**12, 10**9))
    assert _body(template, "{{ size() }} {{ ms('fsdax', 'base') }}", result).startswith("1 TB 5")


@pytest.mark.parametrize("named", ["block='2 GiB'", "block_bytes=2147483648"])
def test_the_memory_block_of_a_row_names_it(template: Path, tmp_path: Path, named: str) -> None:
    result = _result(tmp_path / "a.json", memory=True, returns=("safe", "plain"))
    (row,) = [
        row
        for row in reader.read(result).rows
        if (row.case.workload, row.variant) == ("hotplug", "streaming")
        and (row.case.block_bytes, row.case.returns) == (2 << 30, "plain")
    ]
    ns = statistics.median(row.runs_ms) * 1e6 / row.case.pages
    text = f"{{{{ ns('hotplug', 'streaming', {named}) }}}}"
    assert _body(template, text, result) == f"{ns:.1f}"


@pytest.mark.parametrize("outlier", [0.7, 1.2])
def test_the_speedup_is_the_smaller_ratio(template: Path, tmp_path: Path, outlier: float) -> None:
    result = _result(tmp_path / "a.json", threads=(1, 2), outlier=outlier)
    rows = reader.read(result).rows
    base = next(row for row in rows if row.variant == "base")
    mine = next(row for row in rows if row.variant == "streaming" and row.case.threads == 2)
    gain = estimates.gain(base.runs_ms, mine.runs_ms, paired=True)
    text = "{{ speedup('fsdax', 'streaming', threads=2) }}"
    assert _body(template, text, result) == f"{min(gain.paired.value, gain.fastest):.2f}"


def test_the_limit_and_the_share_of_it(template: Path, tmp_path: Path) -> None:
    result = _result(tmp_path / "a.json", noise=0.0001)
    text = "{{ fill_limit() }} {{ of_limit('fsdax', 'streaming') }}"
    assert _body(template, text, result) == "45.3 GB/s 0.98"


def test_the_figures_of_a_text_are_of_one_result(template: Path, tmp_path: Path) -> None:
    one = _result(tmp_path / "one.json", cpu="One", workloads=("fsdax",))
    two = _result(tmp_path / "two.json", cpu="Two")
    text = "{{ machine() }} {{ speedup('fsdax', 'streaming') }}"
    assert "(One, " in _body(template, text, one, two)
    assert "(Two, " in _body(template, f"{text} {{{{ ms('devdax', 'streaming') }}}}", one, two)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{ ms('private', 'streaming') }}", "the row private streaming"),
        ("{{ ns('fsdax', 'streaming', threads=7) }}", "the row fsdax streaming, threads 7"),
        ("{{ walk_ns('fsdax', 'streaming') }}", "the walk of the row fsdax streaming"),
    ],
)
def test_a_figure_that_is_missing_is_one_line(
    template: Path, tmp_path: Path, text: str, wanted: str
) -> None:
    result = _result(tmp_path / "a.json")
    with pytest.raises(Failure) as raised:
        _body(template, text, result)
    assert str(raised.value) == (
        f"the message of all/01-one needs {wanted}, which no result has ({result}); "
        "make one with: pagemint bench --json FILE"
    )


def test_no_result_at_all_is_one_line(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RESULTS", tmp_path)
    with pytest.raises(Failure, match="all/01-one needs a figure, which no result has"):
        _body(template, "{{ machine() }}")


def test_a_result_of_another_state_of_the_series_is_noted(
    template: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    template.write_text("one: do it\n")
    now = _result(tmp_path / "now.json", series=patches.digest("7.3", code=True))
    then = _result(tmp_path / "then.json", series="then")
    _body(template, "{{ machine() }}", now, then)
    assert capfd.readouterr().err == ""
    _body(template, "{{ machine() }}", then, now)
    assert capfd.readouterr().err == (f"{then} was measured with another state of the series\n")


def test_times_of_an_emulated_guest_are_refused(template: Path, tmp_path: Path) -> None:
    result = _result(tmp_path / "a.json", accel="tcg")
    with pytest.raises(Failure, match="an emulated guest, whose times mean nothing"):
        _body(template, "{{ machine() }}", result)


def test_a_file_that_is_no_result_is_refused(template: Path, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="is not a file"):
        _body(template, "{{ machine() }}", str(tmp_path / "none.json"))


def test_paragraphs_are_wrapped_and_tables_are_not(template: Path, tmp_path: Path) -> None:
    result = _result(tmp_path / "a.json")
    table = "  a   1\n  b   2\n\n  c   3"
    long = "memmap_init_zone_device() " * 5
    body = _body(template, f"{long}\n{long}\n\n{table}", result)
    lines = body.split("\n")
    assert body.endswith(f"\n\n{table}")
    assert len(lines) == 5 + 5
    assert {line for line in lines[:5]} == {"memmap_init_zone_device() memmap_init_zone_device()"}


def test_machines_are_named(template: Path, tmp_path: Path) -> None:
    body = copy.deepcopy(fake_result.body())
    body["host"] |= {"virtual": False, "cpus": 1}
    (tmp_path / "a.json").write_text(json.dumps(body))
    assert _body(template, "{{ machine() }}", str(tmp_path / "a.json")) == (
        "a machine with 1 CPU (AMD EPYC 9B45, family 26, model 2)"
    )


def test_the_newest_result_of_the_repository_comes_first(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RESULTS", tmp_path)
    for name, day, cpu in (("a", 2, "New"), ("b", 1, "Old")):
        body = json.loads(fake_result.text(cpu=cpu))
        body["host"]["date"] = f"2026-01-0{day}T00:00:00Z"
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    shutil.copy(_KEPT, tmp_path / "not-a-result.txt")
    assert "(New, " in _body(template, "{{ machine() }}")
