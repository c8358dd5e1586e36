"""How often a contender would be the best on other queries like these, and what choosing it would cost on average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import affordable, table_of
from bakeoff.statistics.constants import NOISE, SEED
from bakeoff.statistics.intervals import RESAMPLES, resamples_of


class Winning(NamedTuple):
    """`probability`: the share of resampled sets of queries on which it is best, equals sharing it.

    `regret`: how far its mean is below the best one's in such a set, on average.
    """

    probability: float
    regret: float


def winning(scores: Mapping[str, Values], *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Winning]:
    """For each contender, over bootstrap resamples of the queries that all share."""
    if not scores:
        return {}
    table = table_of(list(scores.values()))
    n, shared, regret, drawn = len(table), np.zeros(table.shape[1]), np.zeros(table.shape[1]), 0
    for counts in resamples_of(n, affordable(resamples, n), seed):
        means = counts @ table / n
        behind = means.max(axis=1, keepdims=True) - means
        leading = behind <= NOISE
        shared += (leading / leading.sum(axis=1, keepdims=True)).sum(axis=0)
        regret += np.where(leading, 0.0, behind).sum(axis=0)
        drawn += len(means)
    return {label: Winning(float(shared[at] / drawn), float(regret[at] / drawn)) for at, label in enumerate(scores)}
