# SPDX-License-Identifier: GPL-2.0-only
"""What can be said of timed runs: medians, their bootstrap intervals, and a verdict.

The percentile bootstrap of a median is a few lines of numpy, which plotting needs anyway. scipy's
would bring 100 MB and a second of import, for variants that a median has no use for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 6
"""Runs below which no 95% interval is given: all 5 of 5 hold the true median between them 15
times in 16."""

_RESAMPLES = 4000
_SEED = 73  # so that a report of the same result is the same
_BLOCK = 1 << 20  # samples drawn at once
_PERCENTILES = (2.5, 97.5)

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A median, or a ratio of medians, with its 95% interval.

    Attributes:
        value: the median.
        low: lower end of the interval, `value` if there are too few runs for one.
        high: its upper end, likewise.
        count: the runs, or pairs of runs; of two series, the shorter one's.
        paired: whether it is a median of ratios within rounds.
    """

    value: float
    low: float
    high: float
    count: int
    paired: bool = False

    @property
    def known(self) -> bool:
        """Whether there are runs enough for an interval."""
        return self.count >= FEWEST

    def inverse(self) -> "Estimate":
        """Return the estimate of one over this."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low, self.count, self.paired)

    def times(self, factor: float) -> "Estimate":
        """Return the estimate in another unit."""
        value, low, high = (factor * each for each in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.count, self.paired)


def median(runs: Sequence[float], *, paired: bool = False) -> Estimate:
    """Return the median of runs, or of what was computed from pairs of them."""
    taken = np.asarray(runs, dtype=np.float64)
    middle = float(np.median(taken))
    if len(taken) < FEWEST:
        return Estimate(middle, middle, middle, len(taken), paired)
    low, high = np.percentile(_medians(taken, np.random.default_rng(_SEED)), _PERCENTILES)
    return Estimate(middle, float(low), float(high), len(taken), paired)


def ratio(over: Sequence[float], under: Sequence[float], *, paired: bool) -> Estimate:
    """Return how often the median of `under` goes into that of `over`.

    Args:
        over: the runs of one variant.
        under: those of the other.
        paired: whether member i of both was timed in the same round. If so this is the median
            of the ratios within the rounds, and whole rounds are resampled; if not, it is the
            ratio of the medians, and each series is resampled by itself.
    """
    if paired and len(over) == len(under):
        return median([a / b for a, b in zip(over, under, strict=True)], paired=True)
    a, b = np.asarray(over, dtype=np.float64), np.asarray(under, dtype=np.float64)
    value = float(np.median(a) / np.median(b))
    count = min(len(a), len(b))
    if count < FEWEST:
        return Estimate(value, value, value, count)
    draw = np.random.default_rng(_SEED)
    low, high = np.percentile(_medians(a, draw) / _medians(b, draw), _PERCENTILES)
    return Estimate(value, float(low), float(high), count)


def spread(runs: Sequence[float]) -> float:
    """Return the share of the median that lies between the slowest run and the fastest."""
    return (max(runs) - min(runs)) / float(np.median(runs))


def judge(speedup: Estimate, floor: float) -> str:
    """Return faster, slower, noise, or few if there are too few runs to tell.

    Args:
        speedup: the ratio of times, above 1 where there is a gain.
        floor: the ratio, 1 or more, by which the same code can differ from itself here.
    """
    if not speedup.known:
        return "few"
    if speedup.low > floor:
        return "faster"
    return "slower" if speedup.high < 1 / floor else "noise"


def sentence(speedup: Estimate, floor: float) -> str:
    """Say in words what `judge` says: "2.10x faster, 95% interval 2.08 to 2.13, 30 pairs"."""
    verdict = judge(speedup, floor)
    runs = f"{speedup.count} {'pairs' if speedup.paired else 'runs of each'}"
    if verdict == "few":
        return f"{speedup.value:.2f}x in {runs}: too few to tell, {FEWEST} are needed"
    shown = speedup.inverse() if verdict == "slower" else speedup
    measured = f"95% interval {shown.low:.2f} to {shown.high:.2f}, {runs}"
    if verdict == "noise":
        return f"no difference beyond the noise: {shown.value:.2f}x, {measured}"
    return f"{shown.value:.2f}x {verdict}, {measured}"


def _medians(runs: _Array, draw: np.random.Generator) -> _Array:
    """Return the medians of as many resamples of `runs` as are taken."""
    found = []
    rows = max(1, _BLOCK // len(runs))
    for start in range(0, _RESAMPLES, rows):
        shape = (min(rows, _RESAMPLES - start), len(runs))
        found.append(np.median(runs[draw.integers(0, len(runs), shape)], axis=1))
    return np.concatenate(found)
