"""Differences over several tasks: queries nest in tasks, every task counts alike, however many queries it has."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import SEED
from bakeoff.statistics.intervals import RESAMPLES, resamples_of
from bakeoff.statistics.tests import sign_flip_test


class NestedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over tasks of a difference, with its interval and two answers to "is it chance?".

    `p` is for these very tasks: other queries might have been drawn in each. `p_tasks` is for tasks like these: other
    tasks might have been drawn, so the task is the unit, and few tasks can't show anything (`least` is the smallest p
    that so many can give).
    """

    difference: float
    low: float
    high: float
    p: float
    p_tasks: float
    least: float


def nested_difference(
    by_task: Sequence[Values], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> NestedDifference:
    """From the per-query differences of each task: a sign-flip test by query within tasks, and one by task."""
    means = np.array([float(d.mean()) for d in by_task])
    weighted = np.concatenate([d / len(d) for d in by_task])
    drawn = np.zeros(resamples)
    for at, d in enumerate(by_task):
        drawn += np.concatenate([counts @ d / len(d) for counts in resamples_of(len(d), resamples, seed + at)])
    low, high = np.quantile(drawn / len(by_task), [(1 - level) / 2, (1 + level) / 2])
    return NestedDifference(
        difference=float(means.mean()),
        low=float(low),
        high=float(high),
        p=sign_flip_test(weighted, seed=seed),
        p_tasks=sign_flip_test(means, seed=seed),
        least=2.0 ** (1 - len(by_task)),
    )
