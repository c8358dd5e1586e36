"""Significance tests of differences, always paired by query and seeded."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, across, affordable, spread, without_noise
from bakeoff.statistics.constants import SEED

FLIPS = 100_000
FLIPS_PER_TEST = 200  # the smallest p, corrected by Holm, is then a tenth of 0.05
EXACT_UP_TO = 20
RANKED_UP_TO = 50  # signed ranks are enumerated up to here, as in scipy


def sign_flip_test(differences: ArrayLike, *, flips: int = FLIPS, seed: int = SEED) -> float:
    """Two-sided sign-flip p of the mean: exact up to 20 non-zero differences, else seeded and +1 corrected."""
    return float(sign_flip_tests(np.asarray(differences, dtype=np.float64)[:, None], flips=flips, seed=seed)[0])


def sign_flip_tests(values: Values, pairs: Pairs | None = None, *, flips: int = FLIPS, seed: int = SEED) -> Values:
    """One p for each pair of columns (queries × contenders), or for each column itself.

    All share the flips: a pair's flipped sum is the difference of two columns' sums, so 45 pairs cost ten columns.
    There are enough flips for the smallest p to stay significant under Holm's correction for up to 500 tests.
    """
    differences = without_noise(across(values.T, pairs))
    # Equal sums may differ by rounding. They must count as equal, or p would be too small.
    bar = np.abs(differences.sum(axis=1)) - 1e-10 * np.abs(differences).sum(axis=1)
    nonzero = np.count_nonzero(differences, axis=1)
    p = np.ones(len(differences))
    for row in np.flatnonzero((nonzero > 0) & (nonzero <= EXACT_UP_TO)):
        p[row] = exact_p(differences[row], float(bar[row]))
    if (sampled := nonzero > EXACT_UP_TO).any():
        flips = max(affordable(flips, len(values)), min(flips, FLIPS_PER_TEST * len(p)))
        extreme = np.zeros(len(p), dtype=np.int64)
        for sums in flip_sums(values, flips, seed):
            extreme += np.count_nonzero(np.abs(across(sums, pairs)) >= bar[:, None], axis=1)
        p[sampled] = (extreme[sampled] + 1) / (flips + 1)
    return p


def exact_p(differences: Values, bar: float) -> float:
    """The p over all flips. Doubling gives all sums without a sign matrix; the first sign is fixed by symmetry."""
    kept = differences[differences != 0]
    sums = kept[:1]
    for difference in kept[1:]:
        sums = np.concatenate((sums + difference, sums - difference))
    return np.count_nonzero(np.abs(sums) >= bar) / len(sums)


def flip_sums(values: Values, flips: int, seed: int, block: int = 2048) -> Iterator[Values]:
    """Blocks (columns × flips) of the columns' sums under random signs, identical for the same seed.

    Eight queries have 256 sign patterns. Their sums are computed once and then looked up by random bytes. This is
    faster than multiplying by a sign matrix and uses one thread.
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


def t_test(differences: ArrayLike) -> float:
    """Two-sided p of Student's paired test; 1 if there is no difference or only one query.

    If all differences are equal, there is no spread, and p is the sign-flip test's.
    """
    from scipy.special import stdtr

    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2 or d.mean() == 0:
        return 1.0
    mean, sd = float(d.mean()), spread(d)
    if sd == 0:
        return 2.0 ** (1 - len(d))
    return float(2 * stdtr(len(d) - 1, -abs(mean) / sd * math.sqrt(len(d))))


def wilcoxon(differences: ArrayLike) -> float:
    """Two-sided p of signed ranks without zeros: exact up to 50 differences, with or without ties; normal beyond."""
    d = np.round(np.asarray(differences, dtype=np.float64), 12)  # rounding must not break ties
    d = d[d != 0]
    if not len(d):
        return 1.0
    _, place, tied = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    ranks = (2 * np.cumsum(tied) - tied + 1)[place]  # twice the mean rank of ties, so that ranks are integers
    positive, total = int(ranks[d > 0].sum()), int(ranks.sum())
    larger = max(positive, total - positive)
    if len(d) > RANKED_UP_TO:
        return math.erfc((2 * larger - total) / math.sqrt(2 * float((ranks**2).sum())))
    ways = np.zeros(total + 1)  # for each rank sum, the number of sign patterns
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    return min(1.0, 2 * float(ways[larger:].sum()) / 2.0 ** len(d))


def holm_of_pairs(pvalues: Values, table: Values, indices: Sequence[tuple[int, int]]) -> Values:
    """Holm's correction over distinct hypotheses: contenders with equal scores on every query count once.

    Otherwise, the same vectors in two exact stores would weaken every other comparison.
    """
    same = first_equal(table)
    asked = [(min(same[i], same[j]), max(same[i], same[j])) for i, j in indices]
    return holm_of_distinct(pvalues, [None if i == j else (i, j) for i, j in asked])


def holm_of_distinct(pvalues: ArrayLike, hypotheses: Sequence[Hashable | None]) -> Values:
    """Holm's correction in which a hypothesis shared by several tests counts once. None is untested and gets 1."""
    largest: dict[Hashable, float] = {}
    for hypothesis, p in zip(hypotheses, np.asarray(pvalues, dtype=np.float64).tolist(), strict=True):
        if hypothesis is not None:
            largest[hypothesis] = max(p, largest.get(hypothesis, 0.0))
    corrected = dict(zip(largest, holm(list(largest.values())).tolist(), strict=True))
    return np.array([1.0 if hypothesis is None else corrected[hypothesis] for hypothesis in hypotheses])


def hypothesis_of(differences: Values) -> bytes | None:
    """The hypothesis of a two-sided test of these differences. Equal differences and their negatives are one.

    None if there is no difference at all.
    """
    rounded = np.round(differences, 12) + 0.0  # no negative zeros
    different = np.flatnonzero(rounded)
    if not len(different):
        return None
    return bytes((rounded if rounded[different[0]] > 0 else 0.0 - rounded).tobytes())


def first_equal(table: Values) -> list[int]:
    """For each column, the first column with the same scores: itself, unless two contenders are equal."""
    first: dict[bytes, int] = {}
    return [first.setdefault(np.round(column, 12).tobytes(), at) for at, column in enumerate(table.T)]


def holm(pvalues: ArrayLike) -> Values:
    """Holm's step-down correction: never below the p it corrects, never above 1."""
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted
