"""What these queries can show: the gap below which a better row usually goes unnoticed, and the queries a gap takes.

Rows differ on some queries and tie on others. A gap that is made by shifting every query alike is found far more often
than a real one, so the observed queries are weighted by exp(λ · difference) until their mean difference is the gap:
that keeps ties and which differences there are. The test is the one that decides whether a rival may be the best, or
with so many `comparisons` the one against an incumbent.
"""

from __future__ import annotations

import math

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import FIRST, count_imagined
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.design import fewest_queries
from bakeoff.statistics.small_samples import FEWEST_UNLIKE

STEEPEST = 100.0  # λ beyond which only the largest difference is left
STEPS = 40  # bisection steps for λ
PILOT_OFF_BY = (0.8, 2.0)  # error range of a plan from few queries
FEW_PILOTS = 50
FEWEST_TO_PLAN = 3  # degrees of freedom below which 1 / variance has no mean


def find_noticeable_gap(
    leader: Values,
    rival: Values,
    *,
    bounded: bool = True,
    heaviest: float = 1.0,
    comparisons: int = 0,
    power: float = 0.8,
    alpha: float = ALPHA,
) -> float | None:
    """The true gap that this many queries show with this power; smaller ones usually go unnoticed.

    None if fewer than ten queries differ, or if no gap that these queries can be weighted to reaches the power.
    """
    d = differences_of(leader, rival)
    if np.count_nonzero(d) < FEWEST_UNLIKE:
        return None

    def evaluate(steepness: float) -> tuple[float, float]:
        """The gap, and how often it is found."""
        weights = np.exp(steepness * d - np.max(steepness * d))
        weights /= weights.sum()
        gap = float(weights @ d)
        variance, failure = float(weights @ (d - gap) ** 2), heaviest * float(weights @ rival)
        return gap, chance_to_show(gap, len(d), variance, failure if bounded else 0.0, alpha, comparisons)

    low, high = -STEEPEST, STEEPEST
    if evaluate(high)[1] < power:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if evaluate(middle)[1] >= power else (middle, high)
    return evaluate(high)[0]


def chance_to_show(
    gap: float, n: int, variance: float, failure: float, alpha: float = ALPHA, comparisons: int = 0
) -> float:
    """How often the confidence set of the best excludes the worse of two rows, by a normal approximation.

    With `comparisons`, how often a row is shown to beat an incumbent that so many rows are compared with. `failure` is
    the cost of an imagined failure, which is the worse row's mean.
    """
    from scipy.special import ndtr, ndtri

    imagined = count_imagined(max(2, comparisons + 1))
    level, square = ((1 - FIRST) * alpha, gap**2) if comparisons == 0 else (alpha / comparisons, 0.0)
    size = math.sqrt(n * (variance + square) + imagined * failure**2)
    room = n * gap - imagined * failure - float(ndtri(1 - level)) * size
    return float(ndtr(room / math.sqrt(n * max(variance, NOISE))))


def queries_for_gap(
    leader: Values,
    rival: Values,
    *,
    gap: float,
    bounded: bool = True,
    heaviest: float = 1.0,
    comparisons: int = 0,
    power: float = 0.8,
    alpha: float = ALPHA,
) -> tuple[int, int] | None:
    """How many queries show a true gap with this power, from the pair's own spread; a range if it is vague.

    The spread is the plain one: weighted to a small gap, few queries would lose it. None if no number would do.
    """
    d = differences_of(leader, rival)
    if len(d) < 2 or not np.any(d) or gap <= 0:
        return None
    variance, failure = float(d.var(ddof=1)), heaviest * float(np.mean(rival)) if bounded else 0.0
    if comparisons and len(d) > FEWEST_TO_PLAN:  # further out in the tail, a variance that came out small costs more
        variance *= (len(d) - 1) / (len(d) - FEWEST_TO_PLAN)
    needed = fewest_queries(lambda n: chance_to_show(gap, n, variance, failure, alpha, comparisons) >= power)
    if needed is None:
        return None
    off = PILOT_OFF_BY if len(d) < FEW_PILOTS else (1.0, 1.0)
    return math.ceil(off[0] * needed), math.ceil(off[1] * needed)


def round_gap(gap: float, queries: int) -> float:
    """Rounds to one significant digit below 50 queries, to two from there on."""
    digits = 1 if queries < FEW_PILOTS else 2
    return float(f"{gap:.{digits}g}")
