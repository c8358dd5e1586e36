"""p-values of very many pairs: fewer flips for each, and beyond what flips can show, the tail of the same test.

Holm's step divides by the number of pairs. Among 300 contenders a p must be below one in a million to count, which
100,000 flips can't show, however large the difference is. There the tail of the sign-flip distribution is worked out
from its cumulant generating function, the sum of log cosh(t·d) over the queries, by Lugannani and Rice's formula, as
Robinson (1982) proposed for this test. Memory grows with the number of pairs, not with pairs × queries.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, affordable, without_noise
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.tests import FLIPS, exact_p, flipped_sums, sign_flip_tests

MANY_PAIRS = 1000  # up to here every pair gets all flips
CELLS = 400_000_000  # pairs × flips, where there are more
FEWEST_FLIPS = 2000
ENOUGH = 20  # flips as extreme as the observed one; with fewer, p is read from the tail
EXACT_UP_TO = 12  # non-zero differences whose flips are all counted
BLOCK_CELLS = 1 << 21  # differences held at once
STEPS = 40  # of Newton's method at most; five or six are usual

Rows = NDArray[np.intp]


def pair_tests(table: Values, pairs: Pairs, *, flips: int = FLIPS, seed: int = SEED) -> Values:
    """One two-sided p for each pair of columns; all pairs share the flips."""
    if len(pairs) <= MANY_PAIRS:
        return sign_flip_tests(table, pairs, flips=flips, seed=seed)
    left, right = np.array(pairs, dtype=np.intp).T
    columns = np.ascontiguousarray(table.T)
    bar, nonzero, p = np.empty(len(pairs)), np.empty(len(pairs), dtype=np.int64), np.ones(len(pairs))
    for rows in _blocks(np.arange(len(pairs)), len(table)):
        differences = without_noise(columns[left[rows]] - columns[right[rows]])
        bar[rows] = np.abs(differences.sum(axis=1)) - 1e-10 * np.abs(differences).sum(axis=1)
        nonzero[rows] = np.count_nonzero(differences, axis=1)
        for row in rows[(nonzero[rows] > 0) & (nonzero[rows] <= EXACT_UP_TO)]:
            p[row] = exact_p(differences[row - rows[0]], float(bar[row]))
    flips = min(affordable(flips, len(table)), max(FEWEST_FLIPS, CELLS // len(pairs)))
    extreme = _extremes(table, left, right, bar, flips, seed)
    sampled = nonzero > EXACT_UP_TO
    p[sampled] = (extreme[sampled] + 1) / (flips + 1)
    for rows in _blocks(np.flatnonzero(sampled & (extreme < ENOUGH)), len(table)):
        p[rows] = tail_p(without_noise(columns[left[rows]] - columns[right[rows]]))
    return p


def tail_p(differences: Values) -> Values:
    """For each row of differences, the share of all sign flips whose sum is at least as far from 0."""
    from scipy.special import bdtrc

    sums, sizes = np.abs(differences.sum(axis=1)), np.abs(differences)
    nonzero = np.count_nonzero(sizes, axis=1)
    p = np.ones(len(differences))
    one_sided = sums >= sizes.sum(axis=1) * (1 - 1e-12)
    p[one_sided] = np.minimum(1.0, 2.0 ** (1.0 - nonzero[one_sided]))
    largest = sizes.max(axis=1, initial=0.0)
    alike = np.where(sizes > 0, sizes, largest[:, None]).min(axis=1, initial=np.inf) >= largest - NOISE
    for row in np.flatnonzero(alike & ~one_sided):  # only signs differ: a binomial distribution
        wins = np.count_nonzero(differences[row] > 0)
        p[row] = min(1.0, 2 * float(bdtrc(max(wins, nonzero[row] - wins) - 1, int(nonzero[row]), 0.5)))
    rest = np.flatnonzero(~one_sided & ~alike)
    if len(rest):
        p[rest] = _lugannani_rice(differences[rest], sums[rest])
    return p


def _lugannani_rice(differences: Values, sums: Values) -> Values:
    from scipy.special import ndtr

    scale = np.sqrt((differences**2).sum(axis=1))
    scaled, z = np.abs(differences) / scale[:, None], sums / scale
    t = np.maximum(z, 1e-3)  # left of the solution, from where Newton's steps on a concave curve never overshoot
    open_ = np.arange(len(t))
    for _ in range(STEPS):
        bent = np.tanh(t[open_, None] * scaled[open_])
        slope = (scaled[open_] ** 2 * (1 - bent**2)).sum(axis=1)
        step = (z[open_] - (scaled[open_] * bent).sum(axis=1)) / np.maximum(slope, 1e-300)
        t[open_] += step
        open_ = open_[np.abs(step) > 1e-9 * t[open_]]
        if not len(open_):
            break
    bent = t[:, None] * scaled
    cumulant = (bent + np.log1p(np.exp(-2 * bent)) - np.log(2.0)).sum(axis=1)
    w = np.sqrt(np.maximum(2 * (t * z - cumulant), 1e-12))
    u = t * np.sqrt((scaled**2 / np.cosh(np.minimum(bent, 300)) ** 2).sum(axis=1))
    density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
    tail: Values = 2 * (ndtr(-w) + density * (1 / np.maximum(u, 1e-300) - 1 / w))
    return np.clip(tail, 1e-300, 1.0)


def _extremes(table: Values, left: Rows, right: Rows, bar: Values, flips: int, seed: int) -> NDArray[np.int64]:
    """How many flips of each pair are as extreme as what was observed."""
    extreme = np.zeros(len(bar), dtype=np.int64)
    for sums in flipped_sums(table, flips, seed, block=256):
        for rows in _blocks(np.arange(len(bar)), sums.shape[1]):
            flipped = sums[left[rows]]
            flipped -= sums[right[rows]]
            np.abs(flipped, out=flipped)
            extreme[rows] += np.count_nonzero(flipped >= bar[rows, None], axis=1)
    return extreme


def _blocks(rows: Rows, width: int) -> Iterator[Rows]:
    step = max(1, BLOCK_CELLS // max(width, 1))
    return (rows[start : start + step] for start in range(0, len(rows), step))
