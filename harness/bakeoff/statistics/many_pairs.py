"""p-values of very many pairs: fewer flips for each, and beyond what flips can show, the tail of the same test.

Holm's step divides by the number of pairs. Among 300 contenders a p must be below one in a million to count, which
100,000 flips can't show, however large the difference is. Memory grows with the number of pairs, not with pairs ×
queries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, affordable, without_noise
from bakeoff.statistics.constants import SEED
from bakeoff.statistics.flip_tail import ENOUGH, Rows, blocks, tail_p
from bakeoff.statistics.tests import FLIPS, exact_p, flipped_sums, sign_flip_tests

MANY_PAIRS = 1000  # up to here every pair gets all flips
CELLS = 400_000_000  # pairs × flips, where there are more
FEWEST_FLIPS = 2000
EXACT_UP_TO = 12  # non-zero differences whose flips are all counted


def pair_tests(table: Values, pairs: Pairs, *, flips: int = FLIPS, seed: int = SEED) -> Values:
    """One two-sided p for each pair of columns; all pairs share the flips."""
    if len(pairs) <= MANY_PAIRS:
        return sign_flip_tests(table, pairs, flips=flips, seed=seed)
    left, right = np.array(pairs, dtype=np.intp).T
    columns = np.ascontiguousarray(table.T)
    bar, nonzero, p = np.empty(len(pairs)), np.empty(len(pairs), dtype=np.int64), np.ones(len(pairs))
    for rows in blocks(np.arange(len(pairs)), len(table)):
        differences = without_noise(columns[left[rows]] - columns[right[rows]])
        bar[rows] = np.abs(differences.sum(axis=1)) - 1e-10 * np.abs(differences).sum(axis=1)
        nonzero[rows] = np.count_nonzero(differences, axis=1)
        for row in rows[(nonzero[rows] > 0) & (nonzero[rows] <= EXACT_UP_TO)]:
            p[row] = exact_p(differences[row - rows[0]], float(bar[row]))
    flips = min(affordable(flips, len(table)), max(FEWEST_FLIPS, CELLS // len(pairs)))
    extreme = _extremes(table, left, right, bar, flips, seed)
    sampled = nonzero > EXACT_UP_TO
    p[sampled] = (extreme[sampled] + 1) / (flips + 1)
    for rows in blocks(np.flatnonzero(sampled & (extreme < ENOUGH)), len(table)):
        p[rows] = tail_p(without_noise(columns[left[rows]] - columns[right[rows]]))
    return p


def _extremes(table: Values, left: Rows, right: Rows, bar: Values, flips: int, seed: int) -> NDArray[np.int64]:
    """How many flips of each pair are as extreme as what was observed."""
    extreme = np.zeros(len(bar), dtype=np.int64)
    for sums in flipped_sums(table, flips, seed, block=256):
        for rows in blocks(np.arange(len(bar)), sums.shape[1]):
            flipped = sums[left[rows]]
            flipped -= sums[right[rows]]
            np.abs(flipped, out=flipped)
            extreme[rows] += np.count_nonzero(flipped >= bar[rows, None], axis=1)
    return extreme
