"""Differences over several tasks: queries nest in tasks, and every task counts the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import spread
from bakeoff.statistics.constants import SEED
from bakeoff.statistics.guarded import guard_mean
from bakeoff.statistics.intervals import RESAMPLES, resamples_of
from bakeoff.statistics.small_samples import DIFFERENCES, Part, exact_interval_of_parts
from bakeoff.statistics.stratified import ENDLESS, Strata, linearise
from bakeoff.statistics.tests import sign_flip_test


class NestedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a difference over tasks, with its interval and two p-values.

    `p` is for these tasks with other queries. `p_tasks` is for other tasks like these: the task is the unit, and a few
    tasks can't show anything (`least` is the smallest possible p). There is no interval if a task has a single query,
    or equal unbounded values.
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    p_tasks: float
    least: float


def estimate_nested(
    by_task: Sequence[Values],
    *,
    bounded: bool = True,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> NestedDifference:
    """Tests per-query differences by query within tasks, and by sign flips of tasks.

    The first is the more cautious of sign flips and Student's test guarded against rare failures. `bounded` differences
    are from −1 to 1.
    """
    means = np.array([float(d.mean()) for d in by_task])
    weighted = np.concatenate([d / len(d) for d in by_task])
    low, high = _interval(by_task, bounded=bounded, level=level, resamples=resamples, seed=seed)
    p = sign_flip_test(weighted, seed=seed)
    if bounded and all(len(d) > 1 for d in by_task):
        guarded = _guard(by_task, level)
        low, high, p = float(np.fmin(low, guarded[0])), float(np.fmax(high, guarded[1])), max(p, guarded[2])
    return NestedDifference(
        difference=float(means.mean()),
        low=float(low) if np.isfinite(low) else None,
        high=float(high) if np.isfinite(high) else None,
        p=p,
        p_tasks=sign_flip_test(means, seed=seed),
        least=2.0 ** (1 - len(by_task)),
    )


def _guard(by_task: Sequence[Values], level: float) -> tuple[float, float, float]:
    """Interval and p with an imagined failure in the task whose queries weigh most."""
    sizes = [len(d) for d in by_task]
    weights = np.concatenate([np.full(n, 1 / n / len(sizes)) for n in sizes])
    names = [str(at) for at, n in enumerate(sizes) for _ in range(n)]
    linear = linearise(np.concatenate(by_task), Strata(weights, names, [ENDLESS] * len(names)))
    return guard_mean(linear, heaviest=float(weights.max()) * len(names), level=level)


def _interval(
    by_task: Sequence[Values], *, bounded: bool, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """The hull of the bootstrap's and Welch's intervals over tasks that vary. Others add the exact one."""
    if any(len(d) < 2 for d in by_task):
        return math.nan, math.nan
    varying, alike = [d for d in by_task if spread(d)], [d for d in by_task if not spread(d)]
    low = high = 0.0
    if varying:
        drawn = np.zeros(resamples)
        for at, d in enumerate(varying):
            drawn += np.concatenate([counts @ d / len(d) for counts in resamples_of(len(d), resamples, seed + at)])
        ends = np.quantile(drawn / len(by_task), [(1 - level) / 2, (1 + level) / 2])
        mean, half = sum(float(d.mean()) for d in varying) / len(by_task), _welch(varying, level) / len(by_task)
        low, high = min(float(ends[0]), mean - half), max(float(ends[1]), mean + half)
    if alike:
        if not bounded or any(np.abs(d).max() > DIFFERENCES[1] for d in alike):
            return math.nan, math.nan
        parts = [Part(d, np.full(len(d), 1 / len(d) / len(by_task))) for d in alike]
        below, above = exact_interval_of_parts(parts, DIFFERENCES, level=level, draws=resamples, seed=seed)
        low, high = low + below, high + above
    return low, high


def _welch(by_task: Sequence[Values], level: float) -> float:
    """Half the interval of a sum of independent means, with Welch–Satterthwaite degrees of freedom."""
    from scipy.special import stdtrit

    errors = np.array([float(d.var(ddof=1)) / len(d) for d in by_task])
    freedom = errors.sum() ** 2 / sum(error**2 / (len(d) - 1) for error, d in zip(errors, by_task, strict=True))
    return float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(errors.sum())
