"""Prediction-powered inference: few grades from people, many from a model (Angelopoulos and others, 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.intervals import RESAMPLES
from bakeoff.statistics.small_samples import exact_interval

FEWEST = 20  # queries graded by people; with fewer, intervals lose their coverage


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its interval; `weight` is that of the model's scores, 0 to 1."""

    value: float
    low: float
    high: float
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Unbounded values, with Student's interval."""

    def ends(self, values: Values, level: float) -> tuple[float, float]:
        """The ends of the mean's interval."""
        from scipy.special import stdtrit

        half = float(stdtrit(len(values) - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(len(values))
        return float(values.mean()) - half, float(values.mean()) + half


@dataclass(frozen=True, slots=True)
class Bounded:
    """Scores from 0 to 1, with exact intervals that hold even if few queries score above 0."""

    draws: int = RESAMPLES
    least: float = 0.0

    def ends(self, values: Values, level: float) -> tuple[float, float]:
        """The ends of the mean's interval."""
        return exact_interval(values, (self.least, 1.0), level=level, draws=self.draws)


@dataclass(frozen=True, slots=True)
class BoundedDifference:
    """Differences of two bounded rows with these means. At each end, an imagined query fails the better row."""

    one: float
    other: float

    def ends(self, values: Values, level: float) -> tuple[float, float]:
        """Student's interval with or without the imagined query, whichever is wider."""
        low, high = Unbounded().ends(values, level)
        return (
            min(low, Unbounded().ends(np.append(values, -self.other), level)[0]),
            max(high, Unbounded().ends(np.append(values, self.one), level)[1]),
        )


Kind = Unbounded | Bounded | BoundedDifference


def mean_estimate(values: Values, kind: Kind, level: float = 1 - ALPHA) -> CorrectedMean:
    """The mean of people's or of the model's scores alone."""
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
    """The mean over all queries, from people's scores on a random sample and the model's on every query.

    The model's mean elsewhere is corrected by its mean difference from people where both graded. The default weight
    gives the shortest interval (PPI++), so a model that disagrees with people gets weight 0. The interval combines
    those of the two independent means (Zou and Donner, 2008).
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
