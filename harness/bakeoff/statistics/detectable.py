"""Power: the smallest gap that these queries usually show, and the queries needed for a given gap.

Rows differ on some queries and tie on others. A gap made by shifting every query equally is found far more often
than a real one. So the observed queries are weighted by exp(λ · difference) until their mean difference is the gap,
which keeps the ties and the differences that occur. The test is that of the set of the best, or the one against an
incumbent. Both make several `comparisons` at once.
"""

from __future__ import annotations

import math

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import FIRST, Mask, count_imagined
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
    heaviest: float = 1.0,
    comparisons: int = 1,
    incumbent: bool = False,
    power: float = 0.8,
) -> float | None:
    """The true gap that this many queries show with this power; smaller ones usually go unnoticed.

    None if fewer than ten queries differ, or if no gap that these queries can be weighted to reaches the power.
    `heaviest` is the weight of a failure of the query with the largest share, or 0 for an unbounded measure.
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
        return gap, chance_to_show(gap, len(d), variance, failure, comparisons, incumbent=incumbent)

    low, high = -STEEPEST, STEEPEST
    if evaluate(high)[1] < power:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if evaluate(middle)[1] >= power else (middle, high)
    return evaluate(high)[0]


def chance_to_show(
    gap: float, n: int, variance: float, failure: float, comparisons: int = 1, *, incumbent: bool = False
) -> float:
    """How often the set of the best excludes a row with this many rivals, by a normal approximation.

    With an `incumbent`, how often one of this many rows is shown to beat it. `failure` is the cost of an imagined
    failure, which is the worse row's mean.
    """
    from scipy.special import ndtr, ndtri

    imagined = count_imagined(comparisons + 1)
    share, square = (1.0, 0.0) if incumbent else (1 - FIRST, gap**2)
    level = share * ALPHA / comparisons
    size = math.sqrt(n * (variance + square) + imagined * failure**2)
    room = n * gap - imagined * failure - float(ndtri(1 - level)) * size
    return float(ndtr(room / math.sqrt(n * max(variance, NOISE))))


def queries_for_gap(
    leader: Values,
    rival: Values,
    *,
    gap: float,
    heaviest: float = 1.0,
    comparisons: int = 1,
    incumbent: bool = False,
    power: float = 0.8,
) -> tuple[int, int] | None:
    """How many queries show a true gap with this power, given the pair's spread; a range if that is uncertain.

    The spread is unweighted, since weights would lose it if queries are few. None if no number would do.
    """
    d = differences_of(leader, rival)
    if len(d) < 2 or not np.any(d) or gap <= 0:
        return None
    variance, failure = float(d.var(ddof=1)), heaviest * float(np.mean(rival))
    if incumbent and len(d) > FEWEST_TO_PLAN:  # further out in the tail, an underestimated variance costs more
        variance *= (len(d) - 1) / (len(d) - FEWEST_TO_PLAN)
    needed = fewest_queries(
        lambda n: chance_to_show(gap, n, variance, failure, comparisons, incumbent=incumbent) >= power
    )
    if needed is None:
        return None
    off = PILOT_OFF_BY if len(d) < FEW_PILOTS else (1.0, 1.0)
    return math.ceil(off[0] * needed), math.ceil(off[1] * needed)


def queries_to_separate(table: Values, within: Mask, *, gap: float, heaviest: float = 1.0) -> tuple[int, int] | None:
    """How many queries exclude a row that trails by the gap from the set of the best; the median over pairs.

    `table` is queries × rows without equal rows; `within` are the rows that may be best now.
    """
    means = table.mean(axis=0)
    leader, *rivals = sorted(np.flatnonzero(within), key=lambda row: -means[row])
    plans = [
        queries_for_gap(table[:, leader], table[:, rival], gap=gap, heaviest=heaviest, comparisons=len(rivals))
        for rival in rivals
    ]
    known = [plan for plan in plans if plan is not None]
    if not known:
        return None
    low, high = np.median(np.array(known), axis=0)
    return math.ceil(low), math.ceil(high)


def round_gap(gap: float, queries: int) -> float:
    """Rounds to one significant digit below 50 queries, to two from there on."""
    digits = 1 if queries < FEW_PILOTS else 2
    return float(f"{gap:.{digits}g}")
