"""What watches a running search, where nothing has changed: how often an A/B test or a canary alarms all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.extensions.production.canary import compare
from bakeoff.extensions.production.traffic import Clusters, difference
from numpy.random import Generator

from simulate.sets import SEED
from simulate.table import Line

USERS = (200, 1000)  # in both arms
SECOND = (0.05, 0.1, 0.2, 0.5)  # shares of calls that a second machine answers
APART = 1e-4
TEXTS, DIMENSIONS = 32, 64
RECORDED, CHECKED = 5, 3  # calls


def simulate(effort: float) -> Iterator[Line]:
    """Heavy users; two machines behind one name."""
    sets = max(200, round(effort * 4000))
    yield ab(sets)
    for second in SECOND:
        yield canary(second, sets)


def ab(sets: int) -> Line:
    """Sessions per user by Pareto's law with exponent 1.2, at most 500: some are bots or shared accounts."""
    rates = []
    for users in USERS:
        rng = np.random.default_rng([SEED, users])
        rates.append(float(np.mean([difference(*_arms(rng, users // 2)).p <= 0.05 for _ in range(sets)])))
    return Line("an A/B test alarms, one look", "heavy users, no difference", 2, USERS, rates, sets, at_most=0.05)


def _arms(rng: Generator, users: int) -> tuple[Clusters, Clusters]:
    rows = np.clip(np.ceil(rng.pareto(1.2, (2, users))), 1, 500)
    clicked = rng.binomial(rows.astype(int), rng.beta(2, 3, (2, users))).astype(float)
    return Clusters(clicked[0], rows[0]), Clusters(clicked[1], rows[1])


def canary(second: float, sets: int) -> Line:
    """Of two machines whose vectors are 1e-4 apart, calls go to the second now and then."""
    rng = np.random.default_rng([SEED, round(100 * second)])
    vectors, other = rng.normal(0, 1 / 8, (2, TEXTS, DIMENSIONS))

    def calls(number: int) -> Values:
        moved = (rng.random(number) < second)[:, None, None]
        return np.asarray(vectors + APART * other * moved, dtype=np.float32)

    alarms = np.mean([compare(calls(RECORDED), calls(CHECKED)).changed for _ in range(sets)])
    world = f"two machines, {second:.0%} of calls to the second"
    return Line("a canary alarms", world, 1, (TEXTS,), [float(alarms)], sets, at_most=0.01)
