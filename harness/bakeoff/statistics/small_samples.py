"""Intervals and warnings for few queries, or few that differ from the rest, where the bootstrap fails.

If nine of ten values are equal, resamples miss the values that were not drawn. With 20 queries, a 95% interval then
covers the mean in 65 to 80% of cases (docs/internals/scoring-details.md has a table).

The exact interval of one sample models the unknown distribution function by uniform spacings. A mean may also consist
of parts with shares, such as strata of a log or several tasks. The parts' largest means are drawn jointly, so that they
are not all at their worst at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, fact
from bakeoff.statistics.columns import affordable, spread
from bakeoff.statistics.constants import SEED
from bakeoff.statistics.intervals import BLOCK_CELLS, DRAWS, RESAMPLES, bca_intervals

FEWEST_UNLIKE = 10  # values that differ from the mode
FEW_DRAWS = 2_000_000  # queries drawn in total for few queries: ten times the draws give stabler ends
SKEW = 10  # a test of the mean needs about this many times the squared skewness
DIFFERENCES = (-1.0, 1.0)  # the bounds of differences of measures from 0 to 1


def unlike(values: ArrayLike) -> int:
    """How many values differ from the most frequent one."""
    rounded = np.round(np.asarray(values, dtype=np.float64), 12)
    return len(rounded) - int(np.unique(rounded, return_counts=True)[1].max(initial=0))


def mean_intervals(
    table: Values,
    *,
    bounded: bool | Sequence[bool] = True,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Values, Values]:
    """The interval of each column's mean: exact for `bounded` values (0 to 1), else the hull of BCa's and Student's.

    NaN for a single query, and if unbounded values are all equal.
    """
    low, high = np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
    if len(table) < 2:
        return low, high
    within = np.broadcast_to(np.asarray(bounded), table.shape[1]) & (table.min(axis=0) >= 0) & (table.max(axis=0) <= 1)
    if within.any():
        low[within], high[within] = exact_intervals(table[:, within], level=level, draws=resamples, seed=seed)
    if (free := ~within).any():
        low[free], high[free] = bca_intervals(table[:, free], level=level, resamples=resamples, seed=seed)
    for column in np.flatnonzero(free):
        low[column], high[column] = _with_students(table[:, column], low[column], high[column], level)
    return low, high


def _with_students(values: Values, low: float, high: float, level: float) -> tuple[float, float]:
    """The hull of an interval and Student's, for unbounded values."""
    from scipy.special import stdtrit

    if not (sd := spread(values)):
        return np.nan, np.nan
    mean, half = float(values.mean()), float(stdtrit(len(values) - 1, (1 + level) / 2)) * sd / np.sqrt(len(values))
    return min(low, mean - half), max(high, mean + half)


def exact_interval(
    values: ArrayLike,
    bounds: tuple[float, float] = (0.0, 1.0),
    *,
    level: float = 0.95,
    draws: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float]:
    """The interval of the mean of values within the bounds."""
    table = np.asarray(values, dtype=np.float64)[:, None]
    low, high = exact_intervals(table, bounds, level=level, draws=draws, seed=seed)
    return float(low[0]), float(high[0])


def exact_intervals(
    table: Values,
    bounds: tuple[float, float] = (0.0, 1.0),
    *,
    level: float = 0.95,
    draws: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Values, Values]:
    """The interval of each column's mean, for any distribution within the bounds (Learned-Miller & Thomas 2020).

    Uniform order statistics model the unknown distribution function at the values, with the worst case between them.
    For zeros and ones, this is the Clopper–Pearson interval.
    """
    tail, columns, means = (1 - level) / 2, table.shape[1], table.mean(axis=0)
    largest = _largest_means(np.hstack((table - bounds[0], bounds[1] - table)), bounds[1] - bounds[0], draws, seed)
    ends = np.quantile(largest, 1 - tail, axis=0, method="higher")
    return np.minimum(bounds[1] - ends[columns:], means), np.maximum(ends[:columns] + bounds[0], means)


def exact_p_below(
    values: ArrayLike, limit: float, bounds: tuple[float, float], *, draws: int = RESAMPLES, seed: int = SEED
) -> float:
    """The p of a true mean at or above the limit: the level at which the exact interval ends below it."""
    x = np.asarray(values, dtype=np.float64)[:, None] - bounds[0]
    means = _largest_means(x, bounds[1] - bounds[0], draws, seed)
    return float((np.count_nonzero(means >= limit - bounds[0]) + 1) / (len(means) + 1))


def _largest_means(table: Values, most: float, draws: int, seed: int) -> Values:
    """Draws × columns: the largest means of values from 0 to `most` that the drawn order statistics allow.

    All columns share the draws.
    """
    gaps = np.diff(np.vstack((np.sort(table, axis=0), np.full(table.shape[1], most))), axis=0)
    n, rng = len(table), np.random.default_rng(seed)
    draws = max(affordable(draws, n, DRAWS), min(10 * draws, FEW_DRAWS // n))
    means = np.empty((draws, table.shape[1]))
    block = max(1, BLOCK_CELLS // n)
    for start in range(0, draws, block):
        spacings = np.cumsum(rng.standard_exponential((min(block, draws - start), n + 1)), axis=1)
        means[start : start + block] = most - (spacings[:, :-1] / spacings[:, -1:]) @ gaps
    return means


def doubt(differences: Values) -> Fact | None:
    """Why interval and p of these differences are unreliable; None if there is no sign of it."""
    n = len(differences)
    if n < 2 or not np.any(differences):
        return None
    different = unlike(differences)
    if different < FEWEST_UNLIKE:
        return fact("few_differ", differing=different, queries=n)
    centred = differences - differences.mean()
    skew = float((centred**3).mean() / (centred**2).mean() ** 1.5)
    if n < SKEW * skew**2:
        return fact("skewed", skew=skew, queries=n)
    return None


@dataclass(frozen=True, slots=True)
class Part:
    """Sampled values and their weights, which sum to the part's share. A `whole` part is fully sampled."""

    values: Values
    weights: Values
    whole: bool = False


def exact_interval_of_parts(
    parts: Sequence[Part],
    bounds: tuple[float, float],
    *,
    level: float = 0.95,
    draws: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float]:
    """The interval of a weighted mean of values within the bounds. One part with equal weights gives the plain one."""
    tail, share = (1 - level) / 2, round(sum(float(part.weights.sum()) for part in parts), 12)
    mean = sum(float(part.weights @ part.values) for part in parts)
    high = float(np.quantile(largest_means(parts, bounds[1], draws, seed), 1 - tail, method="higher"))
    mirrored = [Part(-part.values, part.weights, part.whole) for part in parts]
    low = -float(np.quantile(largest_means(mirrored, -bounds[0], draws, seed), 1 - tail, method="higher"))
    return max(min(low, mean), share * bounds[0]), min(max(high, mean), share * bounds[1])


def largest_means(parts: Sequence[Part], most: float, draws: int, seed: int) -> Values:
    """The largest means of values up to `most` that the drawn spacings allow.

    Values of unequal weight have the effective sample size (Σw)² / Σw².
    """
    rng, means = np.random.default_rng(seed), np.zeros(draws)
    for part in parts:
        share = float(part.weights.sum())
        if part.whole:
            means += float(part.weights @ part.values)
            continue
        values, place = np.unique(np.round(part.values, 12), return_inverse=True)
        worth = share**2 / float((part.weights**2).sum())
        shapes = np.append(np.bincount(place, part.weights) / share * worth, 1.0)
        spacings = rng.gamma(shapes, size=(draws, len(shapes)))
        means += share * (spacings @ np.append(values, most)) / spacings.sum(axis=1)
    return means
