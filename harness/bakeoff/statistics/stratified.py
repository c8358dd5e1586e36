"""Traffic-weighted means from queries sampled in strata of a log: estimates, intervals and paired tests.

Within a stratum, queries are sampled at random without replacement. The mean combines the strata's ratio estimates,
weighted by their shares of the traffic. Its error has the finite population correction, so a fully sampled stratum adds
none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.intervals import RESAMPLES, bca_intervals
from bakeoff.statistics.small_samples import Part, exact_interval_of_parts

MEANS = (0.0, 1.0)  # the bounds of measures
THIN = 2  # units of a stratum
ENDLESS = 10**12  # assumed size of the population without a log


@dataclass(frozen=True, slots=True)
class Strata:
    """How queries were sampled: each one's share of the traffic, its stratum, and that stratum's size.

    Queries of a cluster ask for the same thing and count as one unit. Clusters lie within strata; without clusters,
    each query is a unit.
    """

    weights: Values
    names: Sequence[str]
    sizes: Sequence[int]
    clusters: Sequence[str] = ()


class StratifiedMean(msgspec.Struct, frozen=True):
    """A traffic-weighted mean, with its interval and the p of its being 0."""

    mean: float
    low: float
    high: float
    p: float


def estimate(values: Values, strata: Strata, alpha: float = ALPHA) -> StratifiedMean:
    """The traffic-weighted mean. There is no interval, and p = 1, if one query represents a stratum of several."""
    mean, low, high, p = (float(column[0]) for column in estimates(values[:, None], strata, alpha))
    return StratifiedMean(mean, low, high, p)


def estimates(table: Values, strata: Strata, alpha: float = ALPHA) -> tuple[Values, Values, Values, Values]:
    """For each column: mean, low and high end of its interval, and p."""
    from scipy.special import stdtr, stdtrit

    means, errors, freedom = _errors(table, strata)
    if not freedom:  # every stratum is fully sampled, or one has an unknown error
        return means, means - errors, means + errors, np.where(np.isnan(errors) | (np.abs(means) <= NOISE), 1.0, 0.0)
    half = float(stdtrit(freedom, 1 - alpha / 2)) * errors
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(freedom, -np.abs(means) / errors)
    p = np.where(errors == 0, _p_without_spread(table, means, strata), p)
    return means, means - half, means + half, np.where(np.isnan(p), 1.0, p)


def mean_intervals(
    table: Values,
    strata: Strata,
    bounded: bool | Sequence[bool] = True,
    alpha: float = ALPHA,
    *,
    resamples: int = RESAMPLES,
) -> tuple[Values, Values]:
    """Exact intervals for `bounded` values (0 to 1), else the hull of Student's and BCa's.

    NaN if one query represents a stratum of several, and if unbounded values are all equal.
    """
    _, low, high, _ = estimates(table, strata, alpha)
    if is_whole(strata) or not np.isfinite(low).all():
        return low, high
    linear = np.stack([linearise(values, strata) for values in table.T], axis=1)
    within = np.broadcast_to(np.asarray(bounded), table.shape[1]) & (table.min(axis=0) >= 0) & (table.max(axis=0) <= 1)
    if not within.all():
        skewed = bca_intervals(linear, level=1 - alpha, resamples=resamples)
        alike = np.ptp(linear, axis=0) <= NOISE
        low = np.where(alike, np.nan, np.minimum(low, skewed[0]))
        high = np.where(alike, np.nan, np.maximum(high, skewed[1]))
    for column in np.flatnonzero(within):
        parts = parts_of(table[:, column], strata)
        low[column], high[column] = exact_interval_of_parts(parts, MEANS, level=1 - alpha, draws=resamples)
    return low, high


def is_whole(strata: Strata) -> bool:
    """Whether every query of the log was sampled. Means then have no error."""
    drawn = Counter(strata.names)
    return all(drawn[name] == of for name, of in zip(strata.names, strata.sizes, strict=True))


def parts_of(values: Values, strata: Strata) -> list[Part]:
    """The values by stratum; for clusters, their means."""
    names = np.array(strata.names)
    inside = [np.flatnonzero(names == name) for name in dict.fromkeys(strata.names)]
    if not strata.clusters:
        return [Part(values[at], strata.weights[at], whole=len(at) == strata.sizes[at[0]]) for at in inside]
    parts = []
    for at in inside:
        place = units_of(strata)[at]
        shares: Values = np.bincount(place, strata.weights[at]).astype(np.float64)
        sums = np.bincount(place, strata.weights[at] * values[at])
        parts.append(Part(sums[shares > 0] / shares[shares > 0], shares[shares > 0]))
    return parts


def units_of(strata: Strata) -> NDArray[np.intp]:
    """Each query's unit number: its cluster's, or its own."""
    if not strata.clusters:
        return np.arange(len(strata.weights))
    number = {name: at for at, name in enumerate(dict.fromkeys(strata.clusters))}
    return np.array([number[name] for name in strata.clusters], dtype=np.intp)


def _p_without_spread(table: Values, means: Values, strata: Strata) -> Values:
    """The sign-flip p over queries that represent others. Three equal differences are no proof."""
    drawn = Counter(strata.names)
    in_part = np.array([drawn[name] < of for name, of in zip(strata.names, strata.sizes, strict=True)])
    units = units_of(strata)[in_part]
    differing = np.abs(table[in_part]) > NOISE
    different = np.array([len(np.unique(units[column])) for column in differing.T])
    return np.where(np.abs(means) <= NOISE, 1.0, np.minimum(1.0, 2.0 ** (1.0 - different)))


def effect_size(a: Values, b: Values, strata: Strata) -> float:
    """The traffic-weighted mean difference in standard deviations; infinite if the standard deviation is 0."""
    d = differences_of(a, b)
    mean = float(strata.weights @ d)
    sd = math.sqrt(float(strata.weights @ (d - mean) ** 2))
    if abs(mean) <= NOISE:
        return 0.0
    return mean / sd if sd > NOISE else math.copysign(math.inf, mean)


def linearise(values: Values, strata: Strata) -> Values:
    """Values, one per unit, whose plain mean and standard error equal the stratified ones.

    The map is linear, so it holds for differences as well. Methods for plain means work on these values.
    """
    deviations, _ = _deviations(values[:, None], strata)
    n = len(deviations)
    shifted: Values = strata.weights @ values + math.sqrt(n * (n - 1)) * deviations[:, 0]
    return shifted


def _errors(table: Values, strata: Strata) -> tuple[Values, Values, int]:
    """Means, standard errors and degrees of freedom."""
    deviations, freedom = _deviations(table, strata)
    errors = np.sqrt((deviations**2).sum(axis=0))
    return strata.weights @ table, np.where(errors <= NOISE, 0.0, errors), freedom


def _deviations(table: Values, strata: Strata) -> tuple[Values, int]:
    """Each unit's contribution to the error of the means, and degrees of freedom. Contributions add in squares."""
    deviations, freedom = np.zeros(table.shape), 0
    units = units_of(strata)
    for inside in _groups(strata, units):
        n, of = len(np.unique(units[inside])), sum({strata.names[at]: strata.sizes[at] for at in inside}.values())
        if n < 2:
            deviations[inside] = math.nan
            continue
        weights = strata.weights[inside]
        residuals = weights[:, None] * (table[inside] - weights @ table[inside] / weights.sum())
        deviations[inside] = math.sqrt((1 - n / of) * n / (n - 1)) * residuals
        freedom += n - 1
    if strata.clusters:
        summed = np.zeros((units.max() + 1, table.shape[1]))
        np.add.at(summed, units, deviations)
        return summed, freedom
    return deviations, freedom


def _groups(strata: Strata, units: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The partly sampled strata. A stratum of two units is merged with the largest other (collapsed strata).

    Two units say little about their spread: coverage was 0.92 without collapsing and 0.95 with it.
    """
    names = np.array(strata.names)
    drawn = [np.flatnonzero(names == name) for name in dict.fromkeys(strata.names)]
    parts = [inside for inside in drawn if len(inside) < strata.sizes[inside[0]]]
    sizes = [len(np.unique(units[inside])) for inside in parts]
    thin = [at for at, size in enumerate(sizes) if size == THIN]
    if not thin or len(parts) == 1:
        return parts
    largest = max(range(len(parts)), key=lambda at: sizes[at])
    joined = np.concatenate([parts[at] for at in dict.fromkeys((largest, *thin))])
    return [joined, *(inside for at, inside in enumerate(parts) if at not in (largest, *thin))]
