# SPDX-License-Identifier: GPL-2.0-only
"""Medians, ratios, their intervals and verdicts: every ratio of the lab is computed here.

The percentile bootstrap of a median is a few lines of numpy, which plotting needs anyway. scipy
would add 100 MB and a second of import time.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pagemint.results.rows import Limit, Row
from pagemint.words import PAGE, STRUCT_PAGE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST = 6
"""The fewest runs with a 95% interval. Five runs all lie on one side of the true median once in 16
times."""

NOISY = 1.05
"""A gain is called noisy if its two ratios differ by more than this factor."""

_RESAMPLES = 4000
_SEED = 73  # fixed, so that the same result gives the same report
_BLOCK = 1 << 20  # samples drawn at once
_PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True)
class Estimate:
    """A median, or a ratio of medians, with its 95% interval.

    Attributes:
        value: the median.
        low: lower end of the interval; `value` if there are too few runs for one.
        high: upper end, likewise.
        count: the runs, or pairs of runs; the shorter count if two series are not pairs.
        paired: whether it is a median of ratios within rounds.
    """

    value: float
    low: float
    high: float
    count: int
    paired: bool = False

    @property
    def known(self) -> bool:
        """Whether there are enough runs for an interval."""
        return self.count >= FEWEST

    def inverse(self) -> "Estimate":
        """Return the estimate of one over this."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low, self.count, self.paired)

    def times(self, factor: float) -> "Estimate":
        """Return the estimate in another unit."""
        value, low, high = (factor * each for each in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.count, self.paired)


@dataclass(frozen=True)
class Gain:
    """How many times as fast one series of runs is as another.

    Attributes:
        paired: the median of the ratios within rounds; for runs that are not pairs, the ratio of
            the medians.
        fastest: the ratio of the fastest runs, which a quiet machine would give.
    """

    paired: Estimate
    fastest: float

    @property
    def headline(self) -> float:
        """The smaller of the two ratios, which is the one to quote."""
        return min(self.paired.value, self.fastest)

    @property
    def noisy(self) -> bool:
        """Whether the two ratios differ by more than 5%."""
        return self.disagreement > NOISY

    @property
    def disagreement(self) -> float:
        """The larger of the two ratios over the smaller one."""
        return max(self.paired.value, self.fastest) / self.headline


def median(runs: Sequence[float], *, paired: bool = False) -> Estimate:
    """Return the median of runs, or of ratios computed from pairs of runs."""
    middle = statistics.median(runs)
    if len(runs) < FEWEST:
        return Estimate(middle, middle, middle, len(runs), paired)
    low, high = _interval(tuple(runs), ())
    return Estimate(middle, low, high, len(runs), paired)


def gain(base_ms: Sequence[float], ms: Sequence[float], *, paired: bool) -> Gain:
    """Return the factor by which the runs `ms` are faster than the runs `base_ms`.

    Args:
        base_ms: the runs to compare with.
        ms: the other runs.
        paired: whether run i of both was timed in the same round. The ratios are then taken
            within the rounds, and whole rounds are resampled. Otherwise each series is resampled
            by itself.
    """
    fastest = min(base_ms) / min(ms)
    if paired and len(base_ms) == len(ms):
        ratios = [base / mine for base, mine in zip(base_ms, ms, strict=True)]
        return Gain(median(ratios, paired=True), fastest)
    value = statistics.median(base_ms) / statistics.median(ms)
    count = min(len(base_ms), len(ms))
    if count < FEWEST:
        return Gain(Estimate(value, value, value, count), fastest)
    low, high = _interval(tuple(base_ms), tuple(ms))
    return Gain(Estimate(value, low, high, count), fastest)


def limit_ms(limit: Limit, pages: int) -> float:
    """Return the milliseconds that `pages` take at the limit."""
    return statistics.median(limit.runs_ms) * pages / limit.pages


def share_of_limit(limit: Limit, row: Row) -> float:
    """Return the time at the limit over the time of the row: 1 is the limit itself."""
    return limit_ms(limit, row.case.pages) / statistics.median(row.runs_ms)


def limit_bytes_per_s(limit: Limit) -> float:
    """Return the bytes of memmap, or of copied pages, per second at the limit."""
    size = STRUCT_PAGE if limit.kind == "fill" else PAGE
    return bytes_per_s(statistics.median(limit.runs_ms), size * limit.pages)


def bytes_per_s(ms: float, size: int) -> float:
    """Return the bytes a second when `size` bytes take `ms` milliseconds."""
    return size / ms * 1e3


def wholes(row: Row) -> list[float]:
    """Return the ms of each bind with its first use and unbind; nothing if these are not known."""
    parts = [part for part in (row.bind_ms, row.use_ms, row.unbind_ms) if part]
    return [sum(run) for run in zip(*parts, strict=True)] if row.unbind_ms else []


def shares(row: Row) -> list[float]:
    """Return the shares of a whole operation, by median times.

    These are the memmap, the rest of the bind, the first use, and the unbind.
    """
    memmap, bind, unbind = map(statistics.median, (row.runs_ms, row.bind_ms, row.unbind_ms))
    use = statistics.median(row.use_ms) if row.use_ms else 0
    parts = [memmap, bind - memmap, use, unbind]
    return [part / sum(parts) for part in parts]


def apart(value: float) -> float:
    """Return a ratio or its inverse, whichever is 1 or more."""
    return max(value, 1 / value)


def spread(runs: Sequence[float]) -> float:
    """Return the difference between the slowest and the fastest run as a share of the median."""
    return (max(runs) - min(runs)) / statistics.median(runs)


def judge(gain: Gain, floor: float) -> str:
    """Return faster, slower, noise, or few if there are too few runs to tell.

    Args:
        gain: the gain to judge. It counts only if its interval and its fastest runs agree.
        floor: the ratio, 1 or more, by which the same code differs from itself on this machine.
    """
    if not gain.paired.known:
        return "few"
    if min(gain.paired.low, gain.fastest) > floor:
        return "faster"
    return "slower" if max(gain.paired.high, gain.fastest) < 1 / floor else "noise"


def sentence(gain: Gain, floor: float) -> str:
    """Return the verdict of `judge` in words: "2.10x faster (30 pairs: 2.11x, 95% ...)"."""
    verdict = judge(gain, floor)
    paired = gain.paired
    runs = f"{paired.count} {'pairs' if paired.paired else 'runs of each'}"
    if verdict == "few":
        return f"{gain.headline:.2f}x in {runs}: too few to tell, {FEWEST} are needed"
    headline, fastest = gain.headline, gain.fastest
    if verdict == "slower":
        headline, fastest, paired = 1 / headline, 1 / fastest, paired.inverse()
    measured = (
        f"{runs}: {paired.value:.2f}x, 95% interval {paired.low:.2f} to {paired.high:.2f}; "
        f"fastest runs: {fastest:.2f}x"
    )
    if verdict == "noise":
        return f"no difference beyond the noise ({measured})"
    return f"{headline:.2f}x {verdict} ({measured})"


@lru_cache(maxsize=4096)
def _interval(over: tuple[float, ...], under: tuple[float, ...]) -> tuple[float, float]:
    """Return the 95% interval of the median of `over`, divided by that of `under` if it has any.

    Cached, because the same intervals are written, printed and plotted.
    """
    # Imported late: commands import this module before they measure.
    import numpy as np

    draw = np.random.default_rng(_SEED)
    medians = _medians(np.asarray(over, dtype=np.float64), draw)
    if under:
        medians = medians / _medians(np.asarray(under, dtype=np.float64), draw)
    low, high = np.percentile(medians, _PERCENTILES)
    return float(low), float(high)


def _medians(runs: "NDArray[np.float64]", draw: "np.random.Generator") -> "NDArray[np.float64]":
    """Return the medians of the resamples of `runs`."""
    import numpy as np

    medians = []
    rows = max(1, _BLOCK // len(runs))
    for start in range(0, _RESAMPLES, rows):
        shape = (min(rows, _RESAMPLES - start), len(runs))
        medians.append(np.median(runs[draw.integers(0, len(runs), shape)], axis=1))
    return np.concatenate(medians)
