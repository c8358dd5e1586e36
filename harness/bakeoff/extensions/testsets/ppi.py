"""Few grades from people, many from a model: prediction-powered inference (Angelopoulos and others, 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.intervals import RESAMPLES
from bakeoff.statistics.small_samples import exact_interval

FEWEST = 20  # queries that people graded: with fewer the intervals do not hold


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its interval, and how much the model's scores counted for it (0: not at all)."""

    value: float
    low: float
    high: float
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Values without bounds: Student's interval."""

    def ends(self, values: Values, level: float) -> tuple[float, float]:
        """Of the mean."""
        from scipy.special import stdtrit

        half = float(stdtrit(len(values) - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(len(values))
        return float(values.mean()) - half, float(values.mean()) + half


@dataclass(frozen=True, slots=True)
class Bounded:
    """Scores from 0 to 1: their intervals are exact, so that they hold where few queries score at all."""

    draws: int = RESAMPLES
    least: float = 0.0

    def ends(self, values: Values, level: float) -> tuple[float, float]:
        """Of the mean."""
        return exact_interval(values, (self.least, 1.0), level=level, draws=self.draws)


@dataclass(frozen=True, slots=True)
class BoundedDifference:
    """Differences of two rows with these means: at each end, the one that looks good fails on an imagined query."""

    one: float
    other: float

    def ends(self, values: Values, level: float) -> tuple[float, float]:
        """The wider of Student's with and without the imagined query."""
        low, high = Unbounded().ends(values, level)
        return (
            min(low, Unbounded().ends(np.append(values, -self.other), level)[0]),
            max(high, Unbounded().ends(np.append(values, self.one), level)[1]),
        )


Kind = Unbounded | Bounded | BoundedDifference


def mean_estimate(values: Values, kind: Kind, level: float = 1 - ALPHA) -> CorrectedMean:
    """People alone, or the model alone."""
    low, high = kind.ends(values, level)
    return CorrectedMean(value=float(values.mean()), low=low, high=high)


def correct_mean(
    people: Values,
    model_there: Values,
    model_elsewhere: Values,
    kind: Kind,
    level: float = 1 - ALPHA,
    weight: float | None = None,
) -> CorrectedMean:
    """The mean over all queries, from people's scores on a random sample of them and the model's on every one.

    The model's mean elsewhere is corrected by how far people's scores are from it where both are known. The weight
    that gives the shortest interval is used (PPI++): a model that does not agree with people counts for nothing. The
    ends are those of the two means, whose distances add up as those of independent means do (Zou and Donner, 2008).
    """
    n, other = len(people), len(model_elsewhere)
    if n < FEWEST:
        raise ValueError(f"{n} queries are too few for a corrected mean: {FEWEST} are needed")
    if other < 2:
        return mean_estimate(people, kind, level)
    if weight is None:
        spread = float(np.concatenate([model_there, model_elsewhere]).var())
        shared = float(np.cov(people, model_there)[0, 1])
        weight = min(max(shared / ((1 + n / other) * spread), 0.0), 1.0) if spread > 0 else 0.0
    rest, elsewhere = people - weight * model_there, float(model_elsewhere.mean())
    value, middle = weight * elsewhere + float(rest.mean()), float(rest.mean())
    of_rest = replace(kind, least=-weight) if isinstance(kind, Bounded) else kind
    (low, high), (least, most) = of_rest.ends(rest, level), kind.ends(model_elsewhere, level)
    return CorrectedMean(
        value=value,
        low=value - math.hypot(middle - low, weight * (elsewhere - least)),
        high=value + math.hypot(high - middle, weight * (most - elsewhere)),
        weight=weight,
    )
