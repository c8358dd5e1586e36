"""Means per query asked, from queries that were drawn in strata of a log: estimates, intervals and paired tests.

Within a stratum queries are drawn at random without replacement. The mean is the strata's ratio estimates, weighted by
their shares of the traffic; its error has the finite population's correction, so a whole stratum adds none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import Pairs, differences_of, without_noise
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.exact_parts import Part, exact_interval_of_parts, exact_p_of_parts
from bakeoff.statistics.intervals import RESAMPLES, bca_intervals
from bakeoff.statistics.small_samples import DIFFERENCES, FEWEST_QUERIES, FEWEST_UNLIKE, unlike

MEANS = (0.0, 1.0)  # the bounds of measures


@dataclass(frozen=True, slots=True)
class Strata:
    """How queries were drawn: each one's share of the traffic, its stratum, and how many queries that stratum has."""

    weights: Values
    names: Sequence[str]
    sizes: Sequence[int]


class StratifiedMean(msgspec.Struct, frozen=True):
    """A mean per query asked, with its interval and the p of its being 0."""

    mean: float
    low: float
    high: float
    p: float


def estimate(values: Values, strata: Strata, alpha: float = ALPHA) -> StratifiedMean:
    """The mean per query asked; no interval, and p = 1, where one query stands for a stratum of several."""
    mean, low, high, p = (float(column[0]) for column in estimates(values[:, None], strata, alpha))
    return StratifiedMean(mean, low, high, p)


def estimates(table: Values, strata: Strata, alpha: float = ALPHA) -> tuple[Values, Values, Values, Values]:
    """For each column: mean, low and high end of its interval, and p."""
    from scipy.special import stdtr, stdtrit

    means, errors, freedom = _errors(table, strata)
    if not freedom:  # every stratum is whole, or nothing is known of the error of one
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
    """What Student's and BCa span, within the measure's bounds (0 to 1); of too few that differ the exact one.

    NaN where one query stands for a stratum of several, and where values without bounds are all alike.
    """
    _, low, high, _ = estimates(table, strata, alpha)
    linear = np.stack([linearised(values, strata) for values in table.T], axis=1)
    skewed = bca_intervals(linear, level=1 - alpha, resamples=resamples)
    for column, within in enumerate(np.broadcast_to(np.asarray(bounded), table.shape[1])):
        ends = min(low[column], skewed[0][column]), max(high[column], skewed[1][column])
        parts = parts_of(table[:, column], strata)
        low[column], high[column] = _held(parts, ends, MEANS if within else None, alpha, draws=resamples)
    return low, high


def difference_interval(
    d: Values, strata: Strata, *, bounded: bool = True, alpha: float = ALPHA
) -> tuple[float, float]:
    """Student's; a stratum drawn in part whose queries all differ alike adds the exact error of those not drawn.

    NaN where such a stratum's values have no bounds.
    """
    found = estimate(d, strata, alpha)
    parts, low, high = parts_of(d, strata), found.low, found.high
    alike = [part for part in parts if not part.whole and not unlike(part.values)]
    inside = bounded and _inside(parts, DIFFERENCES)
    if alike and np.isfinite(low):
        if not inside:
            return math.nan, math.nan
        middle = sum(float(part.weights @ part.values) for part in alike)
        below, above = exact_interval_of_parts(alike, DIFFERENCES, level=1 - alpha)
        low, high = low + below - middle, high + above - middle
    return (max(low, DIFFERENCES[0]), min(high, DIFFERENCES[1])) if inside else (low, high)


def _held(
    parts: Sequence[Part],
    spanned: tuple[float, float],
    bounds: tuple[float, float] | None,
    alpha: float,
    *,
    draws: int = RESAMPLES,
) -> tuple[float, float]:
    """The spanned interval where it can be relied on, else the exact one, which needs bounds that the values keep."""
    if not np.isfinite(spanned[0]) or all(part.whole for part in parts):
        return spanned
    if bounds is None or not _inside(parts, bounds):
        alike = not any(unlike(part.values) for part in parts if not part.whole)
        return (math.nan, math.nan) if alike else spanned
    if _too_few(parts):
        return exact_interval_of_parts(parts, bounds, level=1 - alpha, draws=draws)
    return max(spanned[0], bounds[0]), min(spanned[1], bounds[1])


def _inside(parts: Sequence[Part], bounds: tuple[float, float]) -> bool:
    return all(part.values.min() >= bounds[0] and part.values.max() <= bounds[1] for part in parts)


def parts_of(values: Values, strata: Strata) -> list[Part]:
    """The values by stratum."""
    names = np.array(strata.names)
    inside = [np.flatnonzero(names == name) for name in dict.fromkeys(strata.names)]
    return [Part(values[at], strata.weights[at], whole=len(at) == strata.sizes[at[0]]) for at in inside]


def _too_few(parts: Sequence[Part]) -> bool:
    """Whether Student's interval covers the mean less often than it says: of all that was drawn, or of one stratum.

    A varied stratum says nothing of another one, in which hardly any value differs.
    """
    drawn = [part.values for part in parts if not part.whole]
    return sum(map(len, drawn)) < FEWEST_QUERIES or any(unlike(values) < FEWEST_UNLIKE for values in drawn)


def _p_without_spread(table: Values, means: Values, strata: Strata) -> Values:
    """The sign-flip test's, over the queries that stand for others: three that all differ alike are no proof."""
    drawn = Counter(strata.names)
    in_part = np.array([drawn[name] < of for name, of in zip(strata.names, strata.sizes, strict=True)])
    different = np.count_nonzero(np.abs(table[in_part]) > NOISE, axis=0)
    return np.where(np.abs(means) <= NOISE, 1.0, np.minimum(1.0, 2.0 ** (1.0 - different)))


def p_equivalent(differences: Values, strata: Strata, margin: float, *, bounded: bool = False) -> float:
    """p of two one-sided tests: small where the mean difference per query asked is within ± the margin.

    Of too few that differ exact ones, for `bounded` differences from −1 to 1; without bounds a sample without any
    spread shows nothing of what was not drawn. A log that was drawn whole leaves nothing open.
    """
    from scipy.special import stdtr

    means, errors, freedom = _errors(differences[:, None], strata)
    room, error = margin - abs(float(means[0])), float(errors[0])
    if math.isnan(error):
        return 1.0
    parts = parts_of(differences, strata)
    if bounded and freedom and _too_few(parts):
        mirrored = parts_of(-differences, strata)
        return max(exact_p_of_parts(side, margin, DIFFERENCES[1]) for side in (parts, mirrored))
    if error == 0:
        return 1.0 if freedom else float(room <= NOISE)
    return float(stdtr(freedom, -room / error))


def p_of_pairs(table: Values, pairs: Pairs, strata: Strata) -> Values:
    """One two-sided p for each pair of columns."""
    left = np.array([pair[0] for pair in pairs], dtype=np.intp)
    right = np.array([pair[1] for pair in pairs], dtype=np.intp)
    p = np.ones(len(pairs))
    for column in np.unique(left):  # differences of all pairs at once may be too many for memory
        rows = np.flatnonzero(left == column)
        p[rows] = estimates(without_noise(table[:, [column]] - table[:, right[rows]]), strata)[3]
    return p


def effect_size(a: Values, b: Values, strata: Strata) -> float:
    """The mean difference per query asked in standard deviations over the traffic; infinite where there are none."""
    d = differences_of(a, b)
    mean = float(strata.weights @ d)
    sd = math.sqrt(float(strata.weights @ (d - mean) ** 2))
    if abs(mean) <= NOISE:
        return 0.0
    return mean / sd if sd > NOISE else math.copysign(math.inf, mean)


def linearised(values: Values, strata: Strata) -> Values:
    """Values whose plain mean and its plain standard error are the stratified ones of the given values.

    The map is linear, so differences keep both as well: what is made for plain means works on these.
    """
    n = len(values)
    deviations, _ = _deviations(values[:, None], strata)
    shifted: Values = strata.weights @ values + math.sqrt(n * (n - 1)) * deviations[:, 0]
    return shifted


def _errors(table: Values, strata: Strata) -> tuple[Values, Values, int]:
    """Means, standard errors and degrees of freedom."""
    deviations, freedom = _deviations(table, strata)
    errors = np.sqrt((deviations**2).sum(axis=0))
    return strata.weights @ table, np.where(errors <= NOISE, 0.0, errors), freedom


def _deviations(table: Values, strata: Strata) -> tuple[Values, int]:
    """What each query adds to the error of the means, whose square is the sum of their squares; degrees of freedom."""
    names, deviations, freedom = np.array(strata.names), np.zeros(table.shape), 0
    for name in dict.fromkeys(strata.names):
        inside = np.flatnonzero(names == name)
        n, of = len(inside), strata.sizes[inside[0]]
        if n == of:
            continue
        if n < 2:
            deviations[inside] = math.nan
            continue
        weights = strata.weights[inside]
        residuals = weights[:, None] * (table[inside] - weights @ table[inside] / weights.sum())
        deviations[inside] = math.sqrt((1 - n / of) * n / (n - 1)) * residuals
        freedom += n - 1
    return deviations, freedom
