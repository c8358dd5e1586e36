"""The exact interval of a mean that is made of parts, each with its share: strata of a log, or several tasks.

Within a part it is that of one sample (`small_samples.exact_interval`): uniform spacings stand for what the
distribution function may be. The parts' largest means are drawn together, so that they are not all taken at their
worst at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import SEED
from bakeoff.statistics.intervals import RESAMPLES


@dataclass(frozen=True, slots=True)
class Part:
    """Drawn values and their weights, which add up to the part's share; a `whole` part has no others."""

    values: Values
    weights: Values
    whole: bool = False


def exact_interval_of_parts(
    parts: Sequence[Part],
    bounds: tuple[float, float],
    *,
    level: float = 0.95,
    draws: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float]:
    """Of the weighted mean of values that can't leave the bounds; of one part with equal weights the plain one."""
    tail, share = (1 - level) / 2, round(sum(float(part.weights.sum()) for part in parts), 12)
    mean = sum(float(part.weights @ part.values) for part in parts)
    high = float(np.quantile(largest_means(parts, bounds[1], draws, seed), 1 - tail, method="higher"))
    mirrored = [Part(-part.values, part.weights, part.whole) for part in parts]
    low = -float(np.quantile(largest_means(mirrored, -bounds[0], draws, seed), 1 - tail, method="higher"))
    return max(min(low, mean), share * bounds[0]), min(max(high, mean), share * bounds[1])


def exact_p_of_parts(
    parts: Sequence[Part], limit: float, most: float, *, draws: int = RESAMPLES, seed: int = SEED
) -> float:
    """p against a true mean of the limit or more: the level at which the exact interval ends below the limit."""
    means = largest_means(parts, most, draws, seed)
    return float((np.count_nonzero(means >= limit) + 1) / (len(means) + 1))


def largest_means(parts: Sequence[Part], most: float, draws: int, seed: int) -> Values:
    """Means as large as drawn spacings allow, of values up to `most`.

    Values of unequal weight count as so many as say as much: (Σw)² / Σw².
    """
    rng, means = np.random.default_rng(seed), np.zeros(draws)
    for part in parts:
        share = float(part.weights.sum())
        if part.whole:
            means += float(part.weights @ part.values)
            continue
        values, place = np.unique(np.round(part.values, 12), return_inverse=True)
        worth = share**2 / float((part.weights**2).sum())
        shapes = np.append(np.bincount(place, part.weights) / share * worth, 1.0)
        spacings = rng.gamma(shapes, size=(draws, len(shapes)))
        means += share * (spacings @ np.append(values, most)) / spacings.sum(axis=1)
    return means
