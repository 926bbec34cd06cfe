# SPDX-License-Identifier: GPL-2.0-only
"""Statistics: intervals, both ratios of a gain, and the verdict on it."""

import numpy as np
import pytest

from pagemint.results import estimates
from pagemint.results.estimates import Estimate, Gain
from pagemint.results.rows import Case, Limit, Row


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
    paired = estimates.gain(rounds, half, paired=True).paired
    assert (paired.value, paired.low, paired.high, paired.count) == (2, 2, 2, 8)
    assert paired.paired
    apart = estimates.gain(rounds, half, paired=False).paired
    assert apart.value == 2
    assert apart.high - apart.low > 1
    assert not estimates.gain(rounds, half[1:], paired=True).paired.paired


def test_a_gain_has_the_ratio_of_the_fastest_runs() -> None:
    gain = estimates.gain([12.0, 10.0, 11.0], [6.0, 8.0, 5.0], paired=True)
    assert (gain.paired.value, gain.fastest) == (2, 2)
    assert gain.headline == 2
    noisy = estimates.gain([12.0, 8.0, 20.0], [6.0, 6.0, 10.0], paired=True)
    assert (noisy.paired.value, noisy.fastest, noisy.headline) == (2, 8 / 6, 8 / 6)


@pytest.mark.parametrize(
    ("median", "fastest", "noisy"),
    [(2.0, 2.0, False), (2.0, 2.09, False), (2.0, 2.11, True), (2.0, 1.89, True), (0.5, 0.9, True)],
)
def test_two_ratios_that_differ_by_more_than_5_percent_are_noisy(
    median: float, fastest: float, noisy: bool
) -> None:
    gain = Gain(Estimate(median, median, median, 10), fastest)
    assert gain.noisy == noisy
    assert gain.headline == min(median, fastest)


def test_a_share_of_the_limit_is_for_the_same_pages() -> None:
    case = Case("devdax", 1 << 30, 500)
    limit = Limit("fill", "avx", 1 << 30, 1000, [3.0, 4.0, 5.0])
    row = Row(case, "patched", "cached", [8.0, 2.0, 4.0])
    assert estimates.limit_ms(limit, case.pages) == 2
    assert estimates.share_of_limit(limit, row) == 0.5
    assert estimates.limit_bytes_per_s(limit) == 64 * 1000 / 4e-3
    copy = Limit("copy", "movsb", 1 << 30, 1000, [4.0], folio_bytes=2 << 20)
    assert estimates.limit_bytes_per_s(copy) == 4096 * 1000 / 4e-3


def test_the_sentence_is_plain() -> None:
    faster = Gain(Estimate(2.1, 2.08, 2.13, 30, True), 2.0)
    assert estimates.sentence(faster, 1.0) == (
        "2.00x faster (30 pairs: 2.10x, 95% interval 2.08 to 2.13; fastest runs: 2.00x)"
    )
    slower = Gain(Estimate(0.5, 0.4, 0.625, 30), 0.8)
    assert estimates.sentence(slower, 1.0) == (
        "2.00x slower (30 runs of each: 2.00x, 95% interval 1.60 to 2.50; fastest runs: 1.25x)"
    )
    noise = Gain(Estimate(1.01, 0.99, 1.03, 30, True), 1.02)
    assert estimates.sentence(noise, 1.0) == (
        "no difference beyond the noise "
        "(30 pairs: 1.01x, 95% interval 0.99 to 1.03; fastest runs: 1.02x)"
    )
    few = Gain(Estimate(2, 2, 2, 5), 1.9)
    assert estimates.sentence(few, 1.0) == "1.90x in 5 runs of each: too few to tell, 6 are needed"


@pytest.mark.parametrize(
    ("low", "high", "fastest", "floor", "word"),
    [
        (1.01, 1.03, 1.02, 1.0, "faster"),
        (1.01, 1.03, 1.02, 1.02, "noise"),
        (1.20, 1.30, 1.01, 1.02, "noise"),
        (0.99, 1.03, 1.02, 1.0, "noise"),
        (0.90, 0.95, 0.94, 1.02, "slower"),
        (0.90, 0.95, 0.99, 1.02, "noise"),
        (0.97, 0.99, 0.98, 1.04, "noise"),
    ],
)
def test_a_verdict_needs_the_interval_and_the_fastest_runs(
    low: float, high: float, fastest: float, floor: float, word: str
) -> None:
    gain = Gain(Estimate((low + high) / 2, low, high, 10), fastest)
    assert estimates.judge(gain, floor) == word
