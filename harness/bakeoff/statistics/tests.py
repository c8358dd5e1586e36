"""Scores × Scores → differences, intervals and p-values, always paired by query, always seeded."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA, NOISE, SEED

FLIPS = 100_000
RESAMPLES = 10_000
EXACT_UP_TO = 20
DRAWS = 100_000_000  # signs or draws in all: with very many queries fewer repetitions tell as much
BLOCK_CELLS = 1 << 24  # of them held at once

Pairs = Sequence[tuple[int, int]]


class Pair(msgspec.Struct, frozen=True):
    """Two contenders on the same queries: `difference` is a's mean minus b's, with its interval."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    t_p: float
    wilcoxon_p: float
    effect: float
    wins: int
    ties: int
    losses: int


def compare(
    scores: Mapping[str, ArrayLike],
    *,
    level: float = 0.95,
    flips: int = FLIPS,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Pair]:
    """Every pair of contenders, in the order they are given; Holm's correction is over all distinct ones."""
    names, table = list(scores), _table(list(scores.values()))
    indices = list(combinations(range(len(names)), 2))
    if not indices:
        return []
    p = sign_flip_tests(table, indices, flips=flips, seed=seed)
    low, high = bca_intervals(table, indices, level=level, resamples=resamples, seed=seed)
    adjusted = holm_of_pairs(p, table, indices)
    pairs = []
    for at, (i, j) in enumerate(indices):
        d = differences_of(table[:, i], table[:, j])
        wins, ties, losses = wins_ties_losses(d)
        pairs.append(
            Pair(
                a=names[i], b=names[j], difference=float(d.mean()), low=float(low[at]), high=float(high[at]),
                p=float(p[at]), p_holm=float(adjusted[at]), t_p=paired_t(d), wilcoxon_p=wilcoxon(d),
                effect=effect_size(d), wins=wins, ties=ties, losses=losses,
            )
        )  # fmt: skip
    return pairs


def tie_group(scores: Mapping[str, ArrayLike], pairs: Sequence[Pair], alpha: float = ALPHA) -> list[str]:
    """The best contender and those that can't be told from it, best mean first."""
    means = {name: float(np.mean(np.asarray(values, dtype=np.float64))) for name, values in scores.items()}
    if not means:
        return []
    best = max(means, key=lambda name: means[name])
    told = {pair.b if pair.a == best else pair.a for pair in pairs if best in (pair.a, pair.b) and pair.p_holm <= alpha}
    return sorted((name for name in means if name not in told), key=lambda name: -means[name])


def differences_of(a: ArrayLike, b: ArrayLike) -> Values:
    """a − b by query, with the rounding noise of equal scores taken out so that ties are ties to every test."""
    return _quiet(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))


def sign_flip_test(differences: ArrayLike, *, flips: int = FLIPS, seed: int = SEED) -> float:
    """Two-sided p of the mean under random signs: exact up to 20 non-zero differences, else seeded and +1 corrected."""
    return float(sign_flip_tests(np.asarray(differences, dtype=np.float64)[:, None], flips=flips, seed=seed)[0])


def sign_flip_tests(values: Values, pairs: Pairs | None = None, *, flips: int = FLIPS, seed: int = SEED) -> Values:
    """One p for each pair of columns (queries × contenders), or for each column as it is.

    All share the flips: a pair's flipped sum is the difference of two columns' sums, so 45 pairs cost ten columns.
    """
    differences = _quiet(_across(values.T, pairs))
    # Sums that are equal in exact arithmetic differ by rounding: they must count as equal, or p comes out too small.
    bar = np.abs(differences.sum(axis=1)) - 1e-10 * np.abs(differences).sum(axis=1)
    nonzero = np.count_nonzero(differences, axis=1)
    p = np.ones(len(differences))
    for row in np.flatnonzero((nonzero > 0) & (nonzero <= EXACT_UP_TO)):
        p[row] = _exact(differences[row], float(bar[row]))
    if (sampled := nonzero > EXACT_UP_TO).any():
        flips, extreme = _affordable(flips, len(values)), np.zeros(len(p), dtype=np.int64)
        for sums in _flipped_sums(values, flips, seed):
            extreme += np.count_nonzero(np.abs(_across(sums, pairs)) >= bar[:, None], axis=1)
        p[sampled] = (extreme[sampled] + 1) / (flips + 1)
    return p


def _affordable(repetitions: int, queries: int) -> int:
    """All of them up to a thousand queries; for a hundred thousand queries still a thousand."""
    return min(repetitions, max(1000, DRAWS // max(queries, 1)))


def _exact(differences: Values, bar: float) -> float:
    """Doubling gives all sums without a matrix of signs; the first sign is fixed, since p is symmetric."""
    kept = differences[differences != 0]
    sums = kept[:1]
    for difference in kept[1:]:
        sums = np.concatenate((sums + difference, sums - difference))
    return np.count_nonzero(np.abs(sums) >= bar) / len(sums)


def _flipped_sums(values: Values, flips: int, seed: int, block: int = 2048) -> Iterator[Values]:
    """Blocks (columns × flips) of the columns' sums under random signs, the same for every call with the same seed.

    Eight queries have 256 patterns of signs: their sums are worked out once and then only looked up, by random bytes.
    This beats the product of a sign matrix with the values, and leaves the other threads alone.
    """
    octets = -(-len(values) // 8)
    padded = np.zeros((octets * 8, values.shape[1]))
    padded[: len(values)] = values
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    patterns = signs @ padded.reshape(octets, 8, -1)
    rng = np.random.default_rng(seed)
    for start in range(0, flips, block):
        rows = min(block, flips - start)
        sums, looked_up = np.zeros((rows, values.shape[1])), np.empty((rows, values.shape[1]))
        drawn = np.frombuffer(rng.bytes(octets * rows), dtype=np.uint8).reshape(octets, rows)
        for pattern, chosen in zip(patterns, drawn, strict=True):
            sums += pattern.take(chosen, axis=0, out=looked_up, mode="clip")
        yield np.ascontiguousarray(sums.T)


def paired_t(differences: ArrayLike) -> float:
    """Two-sided p of Student's paired test; 1 where there is no difference or only one query."""
    from scipy.special import stdtr

    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2 or d.mean() == 0:
        return 1.0
    mean, sd = float(d.mean()), _sd(d)
    return 0.0 if sd == 0 else float(2 * stdtr(len(d) - 1, -abs(mean) / sd * math.sqrt(len(d))))


def wilcoxon(differences: ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, zeros left out; 1 where nothing differs."""
    from scipy import stats

    d = np.round(np.asarray(differences, dtype=np.float64), 12)  # rounding must not split tied ranks
    d = d[d != 0]
    if not len(d):
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions remark on small samples: p stands beside the exact test
        return float(stats.wilcoxon(d).pvalue)


def holm_of_pairs(pvalues: Values, table: Values, indices: Sequence[tuple[int, int]]) -> Values:
    """Holm over the distinct hypotheses: contenders with equal scores on every query are one, not two.

    The same vectors in two exact stores would otherwise make every other comparison look less sure.
    """
    first: dict[bytes, int] = {}
    same = [first.setdefault(np.round(column, 12).tobytes(), at) for at, column in enumerate(table.T)]
    asked = [(min(same[i], same[j]), max(same[i], same[j])) for i, j in indices]
    distinct = {pair: at for at, pair in enumerate(asked) if pair[0] != pair[1]}
    corrected = dict(zip(distinct, holm(pvalues[list(distinct.values())]), strict=True))
    return np.array([corrected.get(pair, 1.0) for pair in asked])


def holm(pvalues: ArrayLike) -> Values:
    """Holm's step-down correction: never smaller than the p it corrects, never above 1."""
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def effect_size(differences: ArrayLike) -> float:
    """Cohen's d_z: the mean difference in its standard deviations; infinite where every query differs alike."""
    d = np.asarray(differences, dtype=np.float64)
    mean, sd = float(d.mean()), _sd(d)
    if mean == 0:
        return 0.0
    return mean / sd if sd > 0 else math.copysign(math.inf, mean)


def wins_ties_losses(differences: ArrayLike) -> tuple[int, int, int]:
    """On how many queries the first contender is better, equal, worse."""
    d = np.asarray(differences, dtype=np.float64)
    wins, losses = int(np.count_nonzero(d > NOISE)), int(np.count_nonzero(d < -NOISE))
    return wins, len(d) - wins - losses, losses


def bca_interval(
    values: ArrayLike, level: float = 0.95, *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """Bias-corrected and accelerated bootstrap interval of the mean; unknown (NaN) for a single query."""
    low, high = bca_intervals(
        np.asarray(values, dtype=np.float64)[:, None], level=level, resamples=resamples, seed=seed
    )
    return float(low[0]), float(high[0])


def bca_intervals(
    values: Values,
    pairs: Pairs | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Values, Values]:
    """Intervals of the mean difference of each pair of columns, or of each column's mean; all share the resamples."""
    n, differences = len(values), _across(values.T, pairs)
    if n < 2:
        return np.full(len(differences), np.nan), np.full(len(differences), np.nan)
    means = differences.mean(axis=1)
    from_mean = values - values.mean(axis=0)
    draws = _resamples(n, _affordable(resamples, n), seed)
    drawn = _across(np.concatenate([counts @ from_mean for counts in draws]).T / n, pairs)
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

    Resamples in which it is not defined (NaN) are left out.
    """
    total = parts.sum(axis=0)
    value = float(statistic(total[None, :])[0])
    if len(parts) < 2 or math.isnan(value):
        return value, math.nan, math.nan
    drawn = np.concatenate([statistic(counts @ parts) for counts in _resamples(len(parts), resamples, seed)])
    drawn = np.sort(drawn[~np.isnan(drawn)] - value)
    drawn[np.abs(drawn) <= NOISE] = 0.0
    without = statistic(total - parts)
    leaning = np.nanmean(without) - without[~np.isnan(without)]
    spread = float((leaning**2).sum())
    acceleration = float((leaning**3).sum()) / (6 * spread**1.5) if spread > NOISE**2 else 0.0
    first, last = _bca_levels(drawn, acceleration, level)
    return value, value + float(np.quantile(drawn, first)), value + float(np.quantile(drawn, last))


def _bca_levels(drawn: Values, acceleration: float, level: float) -> tuple[float, float]:
    """Which quantiles of the resampled means to take, so that bias and skew are corrected (Efron 1987)."""
    normal = NormalDist()
    below = (np.count_nonzero(drawn < -NOISE) + np.count_nonzero(drawn <= NOISE)) / 2 / len(drawn)
    bias = normal.inv_cdf(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    levels = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        moved = bias + normal.inv_cdf(tail)
        divisor = 1 - acceleration * moved  # beyond its pole the correction has run off the end of the resamples
        levels.append(normal.cdf(bias + moved / divisor if divisor > 0 else math.copysign(math.inf, moved)))
    return levels[0], levels[1]


def _resamples(n: int, resamples: int, seed: int, block: int = 1000) -> Iterator[Values]:
    """Blocks of how often each query was drawn: a product with the values then gives the sums of the resamples."""
    rng = np.random.default_rng(seed)
    block = max(1, min(block, BLOCK_CELLS // n))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = rng.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Agreement (tau-b) of two scorings of the same contenders, in the same order; NaN where one is all ties."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    upper = np.triu_indices(len(x), 1)
    dx, dy = (np.sign(np.subtract.outer(v, v)[upper]) for v in (x, y))
    untied = np.count_nonzero(dx) * np.count_nonzero(dy)
    return float((dx * dy).sum() / math.sqrt(untied)) if untied else math.nan


def _across(rows: Values, pairs: Pairs | None) -> Values:
    """The difference of each pair of rows, or the rows themselves."""
    if pairs is None:
        return rows
    left, right = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return rows[left] - rows[right]


def _quiet(differences: Values) -> Values:
    return np.where(np.abs(differences) <= NOISE, 0.0, differences)


def _table(values: Sequence[ArrayLike]) -> Values:
    arrays = [np.asarray(column, dtype=np.float64) for column in values]
    if len({array.shape for array in arrays}) > 1 or any(array.ndim != 1 or not len(array) for array in arrays):
        raise ValueError("contenders must have one score for each of the same queries")
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("a score is not a finite number")
    return np.stack(arrays, axis=1) if arrays else np.empty((0, 0))


def _sd(values: Values) -> float:
    """The sample's standard deviation, exactly 0 where only rounding separates the values."""
    if len(values) < 2 or np.ptp(values) <= NOISE:
        return 0.0
    return float(values.std(ddof=1))
