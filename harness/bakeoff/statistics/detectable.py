"""What these queries can show: the gap below which a better row usually goes unnoticed, and the queries a gap takes.

Rows differ on some queries and tie on others. A gap that is made by shifting every query alike is found far more often
than a real one, so the observed queries are weighted by exp(λ · difference) until their mean difference is the gap:
that keeps ties and which differences there are. The test is the one that decides who may be the best.
"""

from __future__ import annotations

import math

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import FIRST, Mask, imagined_queries
from bakeoff.statistics.columns import affordable, differences_of
from bakeoff.statistics.constants import ALPHA, SEED
from bakeoff.statistics.design import _fewest
from bakeoff.statistics.small_samples import FEWEST_UNLIKE

RESAMPLES = 1000
STEEPEST = 100.0  # λ beyond which only the largest difference is left
STEPS = 14  # halvings of the interval in which λ is looked for
PILOT_OFF_BY = (0.8, 2.0)  # how far a plan from few queries is off
FEW_PILOTS = 50


def unnoticed_below(
    leader: Values, rival: Values, *, bounded: bool = True, power: float = 0.8, alpha: float = ALPHA, seed: int = SEED
) -> float | None:
    """The true gap that as many queries show in such a share of cases; smaller ones usually go unnoticed.

    None where fewer than ten queries differ, or where no gap that these queries can be weighted to is found so often.
    """
    d = differences_of(leader, rival)
    if np.count_nonzero(d) < FEWEST_UNLIKE:
        return None
    n, order = len(d), np.argsort(d, kind="stable")
    d, rival = d[order], np.asarray(rival, dtype=np.float64)[order]
    drawn = np.random.default_rng(seed).random((affordable(RESAMPLES, n, 10_000_000), n))
    imagined = imagined_queries(2) if bounded else 0

    def found(steepness: float) -> tuple[float, float]:
        """The gap, and how often it is found."""
        weights = np.exp(steepness * d - np.max(steepness * d))
        weights /= weights.sum()
        at = np.minimum(np.searchsorted(np.cumsum(weights), drawn), n - 1)
        return float(weights @ d), float(np.mean(shows_lead(d[at], rival[at].mean(axis=1), imagined, alpha)))

    low, high = -STEEPEST, STEEPEST
    if found(high)[1] < power:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle)[1] >= power else (middle, high)
    gap = found(high)[0]
    return gap if gap > 0 else None


def shows_lead(leads: Values, failures: Values, imagined: int, alpha: float = ALPHA) -> Mask:
    """For each sample of leads (a row of them) whether the test of the rival's being the best excludes it.

    The flips' quantile is the normal one, corrected for their kurtosis (Cornish & Fisher).
    """
    from scipy.special import ndtri

    squares = (leads**2).sum(axis=1) + imagined * failures**2
    fourth = (leads**4).sum(axis=1) + imagined * failures**4
    squares = np.where(squares > 0, squares, np.inf)
    z = float(ndtri(1 - (1 - FIRST) * alpha))
    bar = z - (z**3 - 3 * z) * fourth / squares**2 / 12
    shown: Mask = (leads.sum(axis=1) - imagined * failures) / np.sqrt(squares) > bar
    return shown


def round_gap(gap: float, queries: int) -> float:
    """To one significant digit below 50 queries, to two from there on: more would not be known."""
    digits = 1 if queries < FEW_PILOTS else 2
    return float(f"{gap:.{digits}g}")


def queries_for_gap(
    leader: Values, rival: Values, *, gap: float, bounded: bool = True, power: float = 0.8, alpha: float = ALPHA
) -> tuple[int, int] | None:
    """How many queries show a true gap in such a share of cases: from the pair's own spread, as a range if it is vague.

    The spread is the plain one: weighted to a small gap, few queries would lose it. None where no number would do.
    """
    from scipy.special import ndtri

    d = differences_of(leader, rival)
    if len(d) < 2 or not np.any(d) or gap <= 0:
        return None
    variance, failure = float(d.var(ddof=1)), float(np.mean(rival))
    imagined = imagined_queries(2) if bounded else 0
    z, reach = float(ndtri(1 - (1 - FIRST) * alpha)), float(ndtri(power))

    def enough(n: int) -> bool:
        size = math.sqrt(n * (variance + gap**2) + imagined * failure**2)
        return n * gap - imagined * failure - reach * math.sqrt(n * variance) >= z * size

    needed = _fewest(enough)
    if needed is None:
        return None
    off = PILOT_OFF_BY if len(d) < FEW_PILOTS else (1.0, 1.0)
    return math.ceil(off[0] * needed), math.ceil(off[1] * needed)
