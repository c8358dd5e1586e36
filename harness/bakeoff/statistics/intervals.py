"""Bootstrap intervals, bias-corrected and accelerated (Efron 1987), always seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, across, affordable
from bakeoff.statistics.constants import NOISE, SEED

RESAMPLES = 10_000
DRAWS = 20_000_000  # queries drawn in total: beyond 2,000 queries, fewer resamples suffice
BLOCK_CELLS = 1 << 17  # draws that fit the processor's cache
PAIRS_AT_ONCE = 256  # pairs whose resamples are held at once


def bca_intervals(
    values: Values,
    pairs: Pairs | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Values, Values]:
    """Intervals of the mean difference of each pair of columns, or of each column's mean. All share the resamples.

    NaN for a single query.
    """
    n, count = len(values), values.shape[1] if pairs is None else len(pairs)
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    if n < 2:
        return low, high
    from_mean = values - values.mean(axis=0)
    draws = resamples_of(n, affordable(resamples, n, DRAWS), seed)
    columns = np.concatenate([counts @ from_mean for counts in draws]).T / n
    for start in range(0, count, PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        some = None if pairs is None else pairs[part]
        rows = part if pairs is None else slice(None)
        low[part], high[part] = _bca(across(values.T[rows], some), across(columns[rows], some), level)
    return low, high


def _bca(differences: Values, drawn: Values, level: float) -> tuple[Values, Values]:
    """The interval of each row's mean. `drawn` holds resampled means minus the mean."""
    means = differences.mean(axis=1)
    low, high = means.copy(), means.copy()
    for row in np.flatnonzero(np.ptp(differences, axis=1) > NOISE):
        centred = differences[row] - means[row]
        acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
        low[row], high[row] = means[row] + np.quantile(drawn[row], _bca_levels(drawn[row], acceleration, level))
    return low, high


def bca_of_sums(
    parts: Values,
    statistic: Callable[[Values], Values],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float, float]:
    """A statistic of column sums (rows of sums → values), with its BCa interval over the resampled rows of `parts`.

    Resamples in which it is undefined (NaN) are left out.
    """
    total = parts.sum(axis=0)
    value = float(statistic(total[None, :])[0])
    if len(parts) < 2 or math.isnan(value):
        return value, math.nan, math.nan
    drawn = np.concatenate([statistic(counts @ parts) for counts in resamples_of(len(parts), resamples, seed)])
    drawn = np.sort(drawn[~np.isnan(drawn)] - value)
    drawn[np.abs(drawn) <= NOISE] = 0.0
    without = statistic(total - parts)
    leaning = np.nanmean(without) - without[~np.isnan(without)]
    spread = float((leaning**2).sum())
    acceleration = float((leaning**3).sum()) / (6 * spread**1.5) if spread > NOISE**2 else 0.0
    first, last = _bca_levels(drawn, acceleration, level)
    return value, value + float(np.quantile(drawn, first)), value + float(np.quantile(drawn, last))


def _bca_levels(drawn: Values, acceleration: float, level: float) -> tuple[float, float]:
    """The quantiles of the resampled means that correct for bias and skew (Efron 1987)."""
    normal = NormalDist()
    below = (np.count_nonzero(drawn < -NOISE) + np.count_nonzero(drawn <= NOISE)) / 2 / len(drawn)
    bias = normal.inv_cdf(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    levels = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        moved = bias + normal.inv_cdf(tail)
        divisor = 1 - acceleration * moved  # past its pole, the correction has left the resamples
        levels.append(normal.cdf(bias + moved / divisor if divisor > 0 else math.copysign(math.inf, moved)))
    return levels[0], levels[1]


def resamples_of(n: int, resamples: int, seed: int, block: int = 1000) -> Iterator[Values]:
    """Blocks of how often each query was drawn. Their product with the values gives the resampled sums."""
    rng = np.random.default_rng(seed)
    block = max(1, min(block, BLOCK_CELLS // n))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = rng.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
