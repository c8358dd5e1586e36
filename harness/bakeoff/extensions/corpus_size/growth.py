"""Extrapolation of a score to another corpus size.

The shape of the curve is unknown. Two lines in log N are fitted: through the means, and through their log
odds, which flatten before they reach 0. Each alone misses the truth on some simulated corpora (the line on up to
59%, log odds on up to 99% at a hundred times the documents). Their union covered the true value on every corpus.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np

from bakeoff.core.arrays import Values

FEWEST_SIZES = 3  # two sizes fit a line exactly, so the error is unknown


class Extrapolation(msgspec.Struct, frozen=True):
    """The mean at this many `documents`, halfway between both lines, and the span of their prediction intervals."""

    documents: int
    mean: float
    low: float
    high: float


def extrapolate(scores: Values, sizes: Sequence[int], documents: int, *, level: float = 0.95) -> Extrapolation | None:
    """Extrapolates scores from 0 to 1 (sizes × queries). None for too few sizes, or if a mean is 0 or 1."""
    means = scores.mean(axis=1)
    if len(scores) < FEWEST_SIZES or scores.shape[1] < 2 or not ((means > 0) & (means < 1)).all():
        return None
    x = np.log10(np.asarray(sizes, dtype=np.float64))
    centred = scores - means[:, None]
    target = math.log10(documents)
    straight = _predicted(x, means, centred, target, level)
    odds = _predicted(x, np.log(means / (1 - means)), centred / (means * (1 - means))[:, None], target, level)
    bounded = [min(max(value, 0.0), 1.0) for value in straight]
    bent = [1 / (1 + math.exp(-value)) for value in odds]
    low, high = min(bounded[1], bent[1]), max(bounded[2], bent[2])
    return Extrapolation(documents, (bounded[0] + bent[0]) / 2, low, high)


def _predicted(x: Values, heights: Values, moves: Values, target: float, level: float) -> tuple[float, float, float]:
    """The fitted line's value at the target, with its interval.

    The interval combines two sources of error: the sample of queries (`moves` is each query's contribution to each
    height), and the residuals of the line, with Student's quantile because heights are few.
    """
    from scipy.special import stdtrit

    count, n = moves.shape
    centred, ahead = x - x.mean(), target - float(x.mean())
    spread = float((centred**2).sum())
    slope = float(centred @ heights) / spread
    middle = float(heights.mean()) + slope * ahead
    by_query = (1 / count + ahead * centred / spread) @ moves
    variance = float(((heights - heights.mean() - slope * centred) ** 2).sum()) / (count - 2)
    of_queries = NormalDist().inv_cdf((1 + level) / 2) * float(by_query.std(ddof=1)) / math.sqrt(n)
    of_line = float(stdtrit(count - 2, (1 + level) / 2)) * math.sqrt(variance * (1 + 1 / count + ahead**2 / spread))
    half = math.hypot(of_queries, of_line)
    return middle, middle - half, middle + half
