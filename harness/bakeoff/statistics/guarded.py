"""Intervals, p and equivalence of two rows, guarded against rare failures by imagined queries.

With 20 queries, a failure on every twentieth query stays unseen in 36% of samples, and the spread gives no warning of
it. So each side on which few queries differ much gets one more, imagined query, on which the better-looking row fails.
Interval and p are Student's on the same samples, so they never contradict each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, across, spread, without_noise
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.design import fewest_queries
from bakeoff.statistics.intervals import PAIRS_AT_ONCE
from bakeoff.statistics.small_samples import DIFFERENCES, FEWEST_UNLIKE, exact_interval, exact_p_below

FAR = 0.25  # from the median: a side is thin if fewer than FEWEST_UNLIKE differences lie beyond
WORST = 1.0  # the largest cost of a failure


@dataclass(frozen=True, slots=True)
class Differences:
    """For each pair: the interval of the mean difference, and the two-sided p of its being 0."""

    low: Values
    high: Values
    p: Values


def guard_differences(
    table: Values, pairs: Pairs, *, bounded: bool = True, heaviest: float = 1.0, level: float = 1 - ALPHA
) -> Differences:
    """Compares pairs of columns (queries × rows). p is at most 1 − level if the interval excludes 0.

    Only `bounded` measures (0 to 1) are guarded. Others get Student's interval, and none if all differences are equal.
    With unequal weights, the imagined failure has the weight `heaviest`.
    """
    low, high, p = (np.full(len(pairs), np.nan) for _ in range(3))
    means = table.mean(axis=0)
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        one, other = np.array(pairs[part], dtype=np.intp).reshape(-1, 2).T
        d = without_noise(across(table.T, pairs[part]))
        low[part], lower = _end(d, heaviest * means[other], FAR * heaviest, level, bounded=bounded)
        high[part], upper = _end(-d, heaviest * means[one], FAR * heaviest, level, bounded=bounded)
        p[part] = np.minimum(1.0, 2 * np.minimum(lower, upper))
    high = -high
    for at in np.flatnonzero(np.isnan(low)).tolist() if bounded and len(table) > 1 else ():
        i, j = pairs[at]
        low[at], high[at], p[at] = _of_alike(without_noise(table[:, i] - table[:, j]), level)
    return Differences(low, high, np.where(np.isnan(p), 1.0, p))


def guard_mean(d: Values, *, heaviest: float = 1.0, level: float = 1 - ALPHA) -> tuple[float, float, float]:
    """The same for one sample of differences from −1 to 1 with unknown scores: a failure has the maximum cost.

    NaN, NaN and 1 if there is no spread.
    """
    failure = np.array([heaviest * WORST])
    low, lower = _end(d[None, :], failure, FAR * heaviest, level, bounded=True)
    high, upper = _end(-d[None, :], failure, FAR * heaviest, level, bounded=True)
    p = 2 * min(float(lower[0]), float(upper[0]))
    return float(low[0]), -float(high[0]), 1.0 if math.isnan(p) else min(1.0, p)


def _end(d: Values, failures: Values, far: float, level: float, *, bounded: bool) -> tuple[Values, Values]:
    """The lower end of each row's mean and the one-sided p of its being ≤ 0, the more cautious of both samples.

    NaN if there is no spread.
    """
    low, p = _student(d, level)
    if bounded:
        few = (d < np.median(d, axis=1, keepdims=True) - far).sum(axis=1) < FEWEST_UNLIKE
        guarded_low, guarded_p = _student(np.hstack((d, -failures[:, None])), level)
        low, p = np.where(few, np.minimum(low, guarded_low), low), np.where(few, np.maximum(p, guarded_p), p)
    return low, p


def _student(d: Values, level: float) -> tuple[Values, Values]:
    from scipy.special import stdtr, stdtrit

    n, mean = d.shape[1], d.mean(axis=1)
    if n < 2:
        return np.full(len(d), np.nan), np.full(len(d), np.nan)
    error = np.where(np.ptp(d, axis=1) > 0, d.std(axis=1, ddof=1), np.nan) / math.sqrt(n)
    return mean - float(stdtrit(n - 1, (1 + level) / 2)) * error, stdtr(n - 1, -mean / error)


def _of_alike(d: Values, level: float) -> tuple[float, float, float]:
    """The exact interval of a bounded difference that is equal on every query."""
    if np.ptp(d) > 0 or d.min() < DIFFERENCES[0] or d.max() > DIFFERENCES[1]:
        return math.nan, math.nan, math.nan
    low, high = exact_interval(d, DIFFERENCES, level=level)
    return low, high, min(1.0, 2 * min(exact_p_below(side, 0.0, DIFFERENCES) for side in (d, -d)))


def equivalence_p(differences: ArrayLike, margin: float, *, worst: float | None = WORST) -> float:
    """p of two one-sided tests (Schuirmann, 1987): small if the true mean is within ± the margin.

    Each side has one imagined query with the worst difference, however many queries differ, since a rule that counts
    them would miss losses as large as the margin. With unequal weights, `worst` is the number of queries times the
    largest share. It is None for unbounded values, which show nothing without a spread.
    """
    from scipy.special import stdtr

    d = np.asarray(differences, dtype=np.float64)
    largest = 0.0
    for side in (d, -d):
        guarded = side if worst is None else np.append(side, -worst)
        if not (sd := spread(guarded)):
            return 1.0
        error = sd / math.sqrt(len(guarded))
        largest = max(largest, float(stdtr(len(guarded) - 1, -(float(guarded.mean()) + margin) / error)))
    return largest


def queries_for_equivalence(
    margin: float, sd: float = 0.0, *, worst: float = WORST, power: float = 0.8, alpha: float = ALPHA
) -> int | None:
    """How many queries show two equivalent rows to be so with this power, for differences of this sd.

    Without a spread, the fewest that can show equivalence at all. None if no number would do.
    """
    from scipy.special import ndtri, stdtrit

    reach = float(ndtri((1 + power) / 2))

    def enough(n: int) -> bool:
        error = math.sqrt((sd**2 * (n - 1) + worst**2 * n / (n + 1)) / n / (n + 1))
        return worst / (n + 1) + float(stdtrit(n, 1 - alpha)) * error + reach * sd / math.sqrt(n) < margin

    return fewest_queries(enough)
