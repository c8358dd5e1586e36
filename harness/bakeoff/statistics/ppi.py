"""Few grades from people, many from a model: prediction-powered inference (Angelopoulos and others, 2023)."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA

FEWEST = 20  # queries that people graded: with fewer the intervals do not hold


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its interval, and how much the model's scores counted for it (0: not at all)."""

    value: float
    low: float
    high: float
    weight: float = 0.0


def mean_estimate(values: Values, level: float = 1 - ALPHA) -> CorrectedMean:
    """Student's interval of a mean: people alone, or the model alone."""
    return _estimate(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)), len(values), level, 0.0)


def corrected_mean(
    people: Values, model_there: Values, model_elsewhere: Values, level: float = 1 - ALPHA, weight: float | None = None
) -> CorrectedMean:
    """The mean over all queries, from people's scores on a random sample of them and the model's on every one.

    The model's mean elsewhere is corrected by how far people's scores are from it where both are known. The weight
    that gives the shortest interval is used (PPI++): a model that does not agree with people counts for nothing.
    """
    n, other = len(people), len(model_elsewhere)
    if n < FEWEST:
        raise ValueError(f"{n} queries are too few for a corrected mean: {FEWEST} are needed")
    if other < 2:
        return mean_estimate(people, level)
    if weight is None:
        spread = float(np.concatenate([model_there, model_elsewhere]).var())
        shared = float(np.cov(people, model_there)[0, 1])
        weight = min(max(shared / ((1 + n / other) * spread), 0.0), 1.0) if spread > 0 else 0.0
    value = weight * float(model_elsewhere.mean()) + float((people - weight * model_there).mean())
    variance = weight**2 * float(model_elsewhere.var()) / other + float((people - weight * model_there).var(ddof=1)) / n
    return _estimate(value, math.sqrt(variance), n, level, weight)


def _estimate(value: float, error: float, n: int, level: float, weight: float) -> CorrectedMean:
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, (1 + level) / 2)) * error
    return CorrectedMean(value=value, low=value - half, high=value + half, weight=weight)
