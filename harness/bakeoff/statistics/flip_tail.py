"""The tail of the sign-flip test, for p-values that are smaller than the drawn flips can show.

It is worked out from the cumulant generating function of a flipped sum, the sum of log cosh(t·d) over the queries, by
Lugannani and Rice's formula, as Robinson (1982) proposed for this test.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA, NOISE

ENOUGH = 20  # flips as extreme as the observed one; with fewer, p may be read from the tail
HOLM_AT_LEAST = 50  # tests that one p may be corrected for with others of which its own call knows nothing
FAR_BELOW = 0.1  # of alpha: where the least p, corrected, is below this, counted flips are good enough
BLOCK_CELLS = 1 << 21  # differences held at once
STEPS = 40  # of Newton's method at most; five or six are usual

Rows = NDArray[np.intp]


def too_coarse(flips: int, tests: int) -> bool:
    """Whether Holm's correction could keep every p that so many flips can show from being significant."""
    return max(tests, HOLM_AT_LEAST) / (flips + 1) > FAR_BELOW * ALPHA


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


def blocks(rows: Rows, width: int) -> Iterator[Rows]:
    """Parts of these rows whose differences fit into the memory that is meant for them."""
    step = max(1, BLOCK_CELLS // max(width, 1))
    return (rows[start : start + step] for start in range(0, len(rows), step))
