# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts on results: gains, noise, the best mode, and two results side by side."""

from typing import Any

import fake_result
import pytest
from fake_result import SMALL

from pagemint.results import cases
from pagemint.results.compare import _moved_limits, compare
from pagemint.results.rows import Case, Limit
from pagemint.results.verdict import Judged


def judged(**changes: Any) -> Judged:  # noqa: ANN401 - those of fake_result.body()
    """Return a made result with its verdicts."""
    return Judged(fake_result.result(**changes))


def test_a_difference_as_large_as_that_of_the_same_code_is_noise() -> None:
    variants = {"base": 50.0, "base2": 51.5, "cached": 49.0, "streaming": 30.0}
    result = judged(workloads=("fsdax",), variants=variants, noise=0.001)
    (lines,) = result.lines.values()
    assert {name: line.verdict for name, line in lines.items()} == {
        "base": "",
        "base2": "same",
        "cached": "noise",
        "streaming": "faster",
    }
    assert result.worst_floor == pytest.approx(1.03, abs=0.002)
    assert judged(**SMALL).worst_floor is None


def test_cases_of_more_threads_borrow_base() -> None:
    result = judged(workloads=("fsdax",), threads=(1, 4))
    (alone, shared) = result.lines.values()
    assert shared.keys() == {"base", "base2", "cached", "published", "streaming"}
    assert shared["base"].row.runs_ms == alone["base"].row.runs_ms
    assert shared["base"].row.case.threads == 4
    gain = shared["streaming"].gain
    assert gain and gain.paired.value == pytest.approx(57.5 / 35.3 * 4**0.8, rel=0.02)
    share = shared["streaming"].limit_share
    assert share and share == pytest.approx(34.5 / 35.3, rel=0.02)


def test_a_limit_is_of_the_same_condition() -> None:
    limits = [
        Limit("fill", "avx", size, 1000, [4.0], threads, how)
        for size in (1 << 30, 1 << 31)
        for threads in (1, 2)
        for how in ("plain", "safe")
    ]
    limits.append(Limit("copy", "movsb", 1 << 30, 1000, [1.0], 1, "safe", 2 << 20))
    wanted = Case("fsdax", 1 << 30, 1000, 2, "safe")
    assert cases.limit_of(wanted, limits) == limits[3]
    faster = Limit("fill", "sse2", 1 << 30, 2000, [5.0], 2, "safe")
    assert cases.limit_of(wanted, [*limits, faster]) == faster
    copy = Case("folio", 1 << 30, 1000, 1, "safe", function="folio_copy", folio_bytes=2 << 20)
    assert cases.limit_of(copy, limits) == limits[-1]
    assert cases.limit_of(Case("fsdax", 1 << 29, 1000, 2, "safe"), limits) is None
    assert cases.limit_of(Case("move", 1 << 30, 1000, 2, "safe", function="f"), limits) is None


def test_guests_are_not_paired_and_emulated_times_not_judged() -> None:
    kvm, tcg = judged(accel="kvm"), judged(accel="tcg")
    assert "not pairs" in " ".join(kvm.noise())
    gains = [line.gain for lines in kvm.lines.values() for line in lines.values()]
    assert not any(gain.paired.paired for gain in gains if gain)
    assert all(line.gain for lines in kvm.lines.values() for line in list(lines.values())[1:])
    assert tcg.sentences() == {}
    assert tcg.noise() == ["The guests were emulated: their times mean nothing."]
    assert not any(line.verdict for lines in tcg.lines.values() for line in lines.values())
    assert "emulated" in compare(kvm, tcg).heading


@pytest.mark.parametrize("first", [("stock", "module-off"), ("base", "")])
def test_a_stock_kernel_with_and_without_the_module_is_paired(first: tuple[str, str]) -> None:
    body = fake_result.body(accel="kvm", **SMALL)
    for row, (tree, mode) in zip(body["rows"], (first, ("stock", "module")), strict=True):
        row |= {"tree": tree, "mode": mode}
    result = Judged(fake_result.read(body))
    (lines,) = result.lines.values()
    gain = lines["module"].gain
    assert gain and gain.paired.paired
    assert "within its round" in result.noise()[-1]


def test_two_threads_are_shown_without_one() -> None:
    body = fake_result.body(workloads=("fsdax",), threads=(1, 2))
    # As with --threads 2: one thread has rows of the unpatched tree only.
    body["rows"] = [
        row for row in body["rows"] if row["case"]["threads"] == 2 or row["tree"] != "patched"
    ]
    result = Judged(fake_result.read(body))
    (case,) = result.largest(result.lines)
    assert case.threads == 2
    assert "2 threads" in str(result.sentences())


def test_headlines_say_what_was_gained() -> None:
    (sentence,) = judged(workloads=("fsdax",), noise=0.002).sentences()["fsdax"]
    assert sentence.startswith("fsdax, 100 GB, 1 thread, plain returns: streaming is 1.6")
    assert "x faster (12 pairs: 1.6" in sentence
    assert sentence.endswith("; 0.98 of the limit.")


def test_the_headline_of_a_copy_is_about_the_class_that_gains_least() -> None:
    sentences = judged(folio=True, noise=0.002).sentences()["folio"]
    assert [text.split(",")[0] for text in sentences] == 2 * [
        "folio_copy",
        "folio_mc_copy",
        "copy_user_large_folio",
    ]
    assert all("none, 2 MiB folios" in text and "least of 3" in text for text in sentences[:3])
    gains = [text.partition("patched is ")[2][:5] for text in sentences]
    assert gains == 2 * ["1.18x", "1.16x", "1.20x"]


def test_a_noisy_machine_is_told_in_words() -> None:
    quiet = judged(workloads=("fsdax",), noise=0.002)
    assert not quiet.noisy
    assert "quiet" in quiet.noise()[0]
    noisy = judged(workloads=("fsdax",), noise=0.002, outlier=0.8)
    assert noisy.noisy
    assert "This machine is noisy: in 5 of 5 gains" in noisy.noise()[0]
    assert "The headline is the smaller one." in noisy.noise()[0]
    (lines,) = noisy.lines.values()
    gain = lines["streaming"].gain
    assert gain and gain.headline == gain.paired.value < gain.fastest
    assert judged(runs=1).noise()[0].startswith("Too few runs")


@pytest.mark.parametrize(("others", "noisy"), [(3, True), (4, False)])
def test_a_machine_is_noisy_if_a_quarter_of_its_gains_are(others: int, noisy: bool) -> None:
    modes = ("streaming", "cached", "slow", "published", "other")[: 1 + others]
    variants = {"base": 57.0, **{mode: 35.0 for mode in modes}}
    body = fake_result.body(workloads=("fsdax",), variants=variants, noise=0.002)
    body["rows"][1]["runs_ms"][0] *= 0.8
    result = Judged(fake_result.read(body))
    assert result.noisy == noisy
    assert [line.row.variant for line in result.noisy_lines] == ["streaming"]
    word = "noisy" if noisy else "quiet"
    assert f"This machine is {word}: in 1 of {1 + others} gains" in result.noise()[0]
    assert result.sentences()["fsdax"][0].endswith("; noisy.")


@pytest.mark.parametrize(
    ("streaming", "cached", "best"),
    [
        (35.0, 49.0, ["streaming"]),
        (49.0, 35.0, ["cached"]),
        (40.0, 40.2, ["streaming", "cached"]),
        (40.2, 40.0, ["cached", "streaming"]),
    ],
)
def test_the_best_mode_is_beyond_the_noise(
    streaming: float, cached: float, best: list[str]
) -> None:
    variants = {**fake_result.VARIANTS, "streaming": streaming, "cached": cached}
    result = judged(variants=variants, noise=0.001, memory=True)
    assert result.best_modes() == best
    assert judged(**SMALL).best_modes() == []


def test_a_mode_that_is_better_by_one_ratio_alone_ties() -> None:
    body = fake_result.body(workloads=("fsdax",), noise=0.001)
    for row in body["rows"]:
        if row["mode"] == "cached":
            row["runs_ms"][0] = 35.2
    result = Judged(fake_result.read(body))
    assert result.best_modes() == ["streaming", "cached"]


def test_hashes_that_differ_are_told() -> None:
    body = fake_result.body(**SMALL)
    for row in body["rows"]:
        row["hash"] = "ab"
    same = fake_result.read(body)
    assert Judged(same).same_hashes() is True
    body["rows"][1]["hash"] = "ab cd"
    other = fake_result.read(body)
    assert Judged(other).same_hashes() is False
    assert judged().same_hashes() is None


@pytest.mark.parametrize("drift", [1.0, 1.05])
def test_two_results_of_one_machine_and_one_code_differ_by_noise(drift: float) -> None:
    comparison = compare(judged(), judged(seed=2, drift=drift))
    assert {each.verdict for each in comparison.differences} == {"noise"}
    assert "every difference is noise" in comparison.heading


def test_between_two_results_the_drift_of_the_machine_is_noise() -> None:
    before = judged()
    drifted = judged(seed=2, drift=1.05, series="other")
    verdicts = {each.variant: each.verdict for each in compare(before, drifted).differences}
    assert set(verdicts.values()) == {"noise"}
    better = {**fake_result.VARIANTS, "streaming": 30.0}
    after = judged(seed=2, series="other", variants=better)
    verdicts = {each.variant: each.verdict for each in compare(before, after).differences}
    assert verdicts == {name: "noise" for name in fake_result.VARIANTS} | {"streaming": "faster"}


def test_the_drift_has_the_loops_of_each_workload() -> None:
    limits = [{"workload": "fsdax", "runs_ms": [20.0]}, {"workload": "devdax", "runs_ms": [10.0]}]
    limits.append({"loop": "", "runs_ms": [1.0]})
    results = []
    for first in (20.0, 10.0):
        body = fake_result.body(workloads=("fsdax", "devdax"), memory=False)
        limits[0]["runs_ms"] = [first]
        limits[2]["loop"] = f"in one result, {first}"
        body["limits"] = [{**body["limits"][0], **limit} for limit in limits]
        results.append(fake_result.read(body))
    assert sorted(_moved_limits(*results)) == [1.0, 2.0]


def test_different_machines_are_not_judged() -> None:
    comparison = compare(judged(), judged(cpu="Intel Xeon"))
    assert "different machines" in comparison.heading
    assert {each.verdict for each in comparison.differences} == {""}
