"""Every row against the incumbent: which rows beat it, with lower and upper bounds.

All comparisons share the flips of the signs of queries, and the largest t among them sets the bar (single-step max-T).
Differences are centred before they are flipped, so the test and the interval share the bar: a row beats the
incumbent if its lower bound is above 0.

A few queries can't rule out rare failures. So the lower bound adds imagined queries on which the row scores 0 and
the incumbent its mean. The upper bound adds failures of the incumbent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import (
    EXACT_UP_TO,
    FLIPS,
    ROUNDING,
    all_flips,
    bar,
    count_imagined,
    share_reaching,
    student,
)
from bakeoff.statistics.columns import affordable, without_noise
from bakeoff.statistics.constants import ALPHA, SEED
from bakeoff.statistics.tests import flip_sums


@dataclass(frozen=True, slots=True)
class Versus:
    """Each row's mean minus the incumbent's. Lower and upper bounds each hold for all rows at once with 95%.

    `p_better` is at most alpha if `low` is above 0, `p_worse` if `high` is below. The incumbent's own are 1.
    """

    difference: Values
    low: Values
    high: Values
    p_better: Values
    p_worse: Values


def versus(
    table: Values,
    incumbent: int,
    *,
    bounded: bool = True,
    heaviest: float = 1.0,
    alpha: float = ALPHA,
    flips: int = FLIPS,
    seed: int = SEED,
) -> Versus:
    """For a table of queries × rows. Only `bounded` measures (0 to 1) get imagined failures.

    With unequal weights, an imagined failure costs `heaviest` times more: the largest weight over the average.
    """
    others = np.arange(table.shape[1]) != incumbent
    leads = without_noise(table[:, others] - table[:, [incumbent]])
    means, imagined = table.mean(axis=0), count_imagined(table.shape[1]) if bounded else 0
    failures = heaviest * means
    low, p_better = _lower_bounds(
        leads, np.broadcast_to(failures[incumbent], leads.shape[1:]), imagined, alpha, flips, seed
    )
    high, p_worse = _lower_bounds(-leads, failures[others], imagined, alpha, flips, seed)
    found = np.tile(np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), len(means))
    found[:, others] = leads.mean(axis=0), low, -high, p_better, p_worse
    return Versus(*found)


def _lower_bounds(
    leads: Values, failures: Values, imagined: int, alpha: float, flips: int, seed: int
) -> tuple[Values, Values]:
    """Lower bounds of the columns' means with imagined failures of this cost, and the p of each mean being ≤ 0.

    Without any spread there is no bound.
    """
    queries = np.vstack((leads, np.tile(-failures, (imagined, 1))))
    n, means = len(queries), queries.mean(axis=0)
    centred = without_noise(queries - means)
    size = np.sqrt((centred**2).sum(axis=0))
    known = size > 0
    low, p = np.full(len(means), -np.inf), np.ones(len(means))
    if not known.any():
        return low, p
    scaled, error = centred[:, known] / size[known], size[known] / np.sqrt(n * (n - 1))
    exact = n <= EXACT_UP_TO
    sums = [all_flips(scaled)] if exact else flip_sums(scaled, affordable(flips, n), seed)
    largest = student(np.concatenate([block.max(axis=0) for block in sums]), n)
    low[known] = means[known] - bar(largest, alpha, exact=exact) * error
    p[known] = share_reaching(largest, means[known] / error - ROUNDING, exact=exact)
    return low, p
