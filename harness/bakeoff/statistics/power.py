"""How many queries it takes to detect a difference, and the power of a given number."""

from __future__ import annotations

import math

import numpy as np

from bakeoff.statistics.constants import ALPHA

MOST_QUERIES = 10_000_000


def detection_power(effect: float, n: int, alpha: float = ALPHA) -> float:
    """The power of a two-sided paired t-test on n queries for an effect of this many standard deviations."""
    from scipy.special import nctdtr, stdtrit

    if n < 2:
        return 0.0
    bar, shift = float(stdtrit(n - 1, 1 - alpha / 2)), abs(effect) * math.sqrt(n)
    wrong_side = float(np.nan_to_num(nctdtr(n - 1, shift, -bar)))  # NaN if it underflows
    return float(1 - nctdtr(n - 1, shift, bar)) + wrong_side


def queries_needed(difference: float, sd: float, power: float = 0.8, alpha: float = ALPHA) -> int | None:
    """The number of queries to detect a true difference with this power; None if no number would do."""
    if difference == 0:
        return None
    if sd == 0:
        return 2
    effect = abs(difference) / sd
    low, high = 1, 2
    while detection_power(effect, high, alpha) < power:
        low, high = high, 2 * high
        if high > MOST_QUERIES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if detection_power(effect, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high
