"""Intervals and warnings for what a bootstrap can't see: few queries, or few that differ from the rest.

Where nine of ten values are the same, the resamples know nothing of the values that did not happen to be drawn: at 20
queries a 95% interval then covers the mean in 65 to 80% of cases (docs/scoring.md has the table).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, across, spread, without_noise
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.intervals import PAIRS_AT_ONCE, RESAMPLES, bca_intervals

FEWEST_QUERIES = 15
FEWEST_UNLIKE = 10  # values that differ from the most frequent one
SKEW = 10  # a test of the mean needs about so many times the squared skewness of the differences
DIFFERENCES = (-1.0, 1.0)  # the bounds of differences of measures from 0 to 1


def unlike(values: ArrayLike) -> int:
    """How many values differ from the most frequent one."""
    rounded = np.round(np.asarray(values, dtype=np.float64), 12)
    return len(rounded) - int(np.unique(rounded, return_counts=True)[1].max(initial=0))


def too_few(values: Values) -> bool:
    """Whether a bootstrap interval of the mean covers it less often than it says."""
    return len(values) < FEWEST_QUERIES or unlike(values) < FEWEST_UNLIKE


def mean_intervals(
    table: Values,
    *,
    bounded: bool | Sequence[bool] = True,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Values, Values]:
    """Of each column's mean: BCa, and where that does not hold the exact one, which needs `bounded` values (0 to 1).

    Other values have what BCa and Student's interval span. NaN for a single query, and where such values are all alike.
    """
    low, high = bca_intervals(table, level=level, resamples=resamples, seed=seed)
    if len(table) < 2:
        return low, high
    within = np.broadcast_to(np.asarray(bounded), table.shape[1]) & (table.min(axis=0) >= 0) & (table.max(axis=0) <= 1)
    for column, values in enumerate(table.T):
        if not within[column]:
            low[column], high[column] = _with_students(values, low[column], high[column], level)
        elif too_few(values):
            low[column], high[column] = exact_interval(values, level=level, draws=resamples, seed=seed)
    return low, high


def _with_students(values: Values, low: float, high: float, level: float) -> tuple[float, float]:
    """What an interval and Student's span: no bounds tell what values without a spread hide."""
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
    """Of the mean of values that can't leave the bounds, whatever their distribution (Learned-Miller & Thomas 2020).

    Uniform order statistics stand for the unknown distribution function at the values, and the worst that it can do
    between them is assumed. For zeros and ones this is the interval of Clopper and Pearson.
    """
    x, tail = np.sort(np.asarray(values, dtype=np.float64)), (1 - level) / 2
    width = bounds[1] - bounds[0]
    high = _quantile(_largest_means(x - bounds[0], width, draws, seed), 1 - tail) + bounds[0]
    low = bounds[1] - _quantile(_largest_means(bounds[1] - x[::-1], width, draws, seed), 1 - tail)
    return float(min(low, x.mean())), float(max(high, x.mean()))


def exact_p_below(
    values: ArrayLike, limit: float, bounds: tuple[float, float], *, draws: int = RESAMPLES, seed: int = SEED
) -> float:
    """p against a true mean of the limit or more: the level at which the exact interval ends below the limit."""
    x = np.sort(np.asarray(values, dtype=np.float64)) - bounds[0]
    means = _largest_means(x, bounds[1] - bounds[0], draws, seed)
    return float((np.count_nonzero(means >= limit - bounds[0]) + 1) / (len(means) + 1))


def _quantile(means: Values, level: float) -> float:
    return float(np.quantile(means, level, method="higher"))


def _largest_means(ordered: Values, most: float, draws: int, seed: int) -> Values:
    """Means of values from 0 to `most` as large as drawn order statistics allow; only gaps between values matter."""
    n, gaps = len(ordered), np.diff(np.append(ordered, most))
    places = np.flatnonzero(gaps > NOISE)
    if not len(places):
        return np.full(draws, most)
    shapes = np.diff(np.concatenate(([0], places + 1, [n + 1])))
    spacings = np.cumsum(np.random.default_rng(seed).gamma(shapes, size=(draws, len(shapes))), axis=1)
    means: Values = most - (spacings[:, :-1] / spacings[:, -1:]) @ gaps[places]
    return means


def difference_intervals(
    table: Values,
    pairs: Pairs,
    *,
    bounded: bool = True,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Values, Values]:
    """Of the mean difference of each pair: what BCa and Student's interval span, as each is too short at times.

    BCa is where most queries tie, Student's where the differences are skewed. Where all are alike, neither has a width:
    then the exact interval counts, which needs `bounded` values (0 to 1). NaN where there is none, as of one query.
    """
    from scipy.special import stdtrit

    low, high = bca_intervals(table, pairs, level=level, resamples=resamples, seed=seed)
    n = len(table)
    if n < 2:
        return low, high
    quantile = stdtrit(n - 1, (1 + level) / 2)
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        differences = without_noise(across(table.T, pairs[part]))
        half = quantile * differences.std(axis=1, ddof=1) / np.sqrt(n)
        means = differences.mean(axis=1)
        low[part], high[part] = np.minimum(low[part], means - half), np.maximum(high[part], means + half)
        for at in (start + np.flatnonzero(np.ptp(differences, axis=1) <= NOISE)).tolist():
            columns = table[:, list(pairs[at])]
            low[at], high[at] = _of_alike(columns, level, resamples, seed) if bounded else (np.nan, np.nan)
    return low, high


def _of_alike(columns: Values, level: float, draws: int, seed: int) -> tuple[float, float]:
    """Of a difference that is the same on every query: only their number bounds what others would show."""
    if columns.min() < 0 or columns.max() > 1:
        return np.nan, np.nan
    return exact_interval(columns[:, 0] - columns[:, 1], DIFFERENCES, level=level, draws=draws, seed=seed)


def doubt(differences: Values) -> str:
    """Why neither the interval nor the p of these differences can be relied on; empty where nothing is seen."""
    n = len(differences)
    if n < 2 or not np.any(differences):
        return ""
    different = unlike(differences)
    if different < FEWEST_UNLIKE:
        return (
            f"only {different} of {n} queries differ from the most frequent difference: interval and p may be too sure"
        )
    centred = differences - differences.mean()
    skew = float((centred**3).mean() / (centred**2).mean() ** 1.5)
    if n < SKEW * skew**2:
        return f"the differences are strongly skewed ({skew:+.1f}) for {n} queries: p may be too small"
    return ""
