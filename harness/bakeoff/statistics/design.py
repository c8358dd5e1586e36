"""How many queries to label, before they are labelled (Sakai, "Topic set size design", 2016)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.small_samples import FEWEST_UNLIKE

MOST_QUERIES = 10_000_000


def residual_variance(tables: Sequence[Values]) -> float:
    """The variance of a score that neither query nor contender explains, pooled over collections.

    Each table is queries × contenders. The difference of two contenders varies twice as much.
    """
    squares, freedom = 0.0, 0
    for table in tables:
        queries, contenders = table.shape
        if queries > 1 and contenders > 1:
            fitted = table.mean(axis=1, keepdims=True) + table.mean(axis=0, keepdims=True) - table.mean()
            squares += float(((table - fitted) ** 2).sum())
            freedom += (queries - 1) * (contenders - 1)
    return squares / freedom if freedom else math.nan


def queries_for_width(
    width: float, variance: float, failure: float = 0.0, far: float = 0.0, level: float = 1 - ALPHA
) -> int | None:
    """The fewest queries whose paired interval is on average no wider than this; `variance` is of one score.

    The interval is guarded: a side on which few queries differ much gets an imagined query that costs `failure`. `far`
    is the share of queries on a side that differ that much.
    """
    sd = math.sqrt(2 * variance)

    def enough(n: int) -> bool:
        plain = expected_width(n, sd, level)
        return (max(plain, _guarded_width(n, sd, failure, level)) if n * far < FEWEST_UNLIKE else plain) <= width

    return fewest_queries(enough)


def _guarded_width(n: int, sd: float, failure: float, level: float) -> float:
    """The width of an interval around 0 with one imagined query at each end."""
    from scipy.special import stdtrit

    spread = math.sqrt(((n - 1) * sd**2 + failure**2 * n / (n + 1)) / n)
    return 2 * (failure / (n + 1) + float(stdtrit(n, (1 + level) / 2)) * spread / math.sqrt(n + 1))


def expected_width(n: int, sd: float, level: float = 1 - ALPHA) -> float:
    """The expected width of Student's interval of a mean difference with this standard deviation."""
    from scipy.special import gammaln, stdtrit

    freedom = n - 1
    mean_sd = sd * math.sqrt(2 / freedom) * math.exp(gammaln(n / 2) - gammaln(freedom / 2))
    return 2 * float(stdtrit(freedom, (1 + level) / 2)) * mean_sd / math.sqrt(n)


def queries_for_anova(
    difference: float, variance: float, contenders: int, power: float = 0.8, alpha: float = ALPHA
) -> int | None:
    """The fewest queries for a one-way F test to detect this difference between the best and worst contender.

    Assumes the least favourable case, in which all other contenders lie halfway between these two.
    """
    from scipy.special import fdtri, ncfdtr

    between = contenders - 1

    def enough(n: int) -> bool:
        within = contenders * (n - 1)
        shift = n * difference**2 / (2 * variance)
        return float(1 - ncfdtr(between, within, shift, fdtri(between, within, 1 - alpha))) >= power

    return fewest_queries(enough)


def fewest_queries(enough: Callable[[int], bool]) -> int | None:
    """The smallest sufficient number, at least 2. All larger numbers must be sufficient too."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_QUERIES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
