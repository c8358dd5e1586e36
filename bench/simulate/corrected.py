"""Means by a few people's grades and a model's for the rest: do their intervals hold people's true mean?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.extensions.testsets.ppi import Bounded, BoundedDifference, CorrectedMean, correct_mean, mean_estimate
from numpy.random import Generator

from simulate.sets import FEWEST, SEED
from simulate.table import Line
from simulate.worlds import scifact

PEOPLE = (20, 40, 60)
QUERIES = 300
DRAWS = 1000
SPARSE = (0.05, 0.1, 0.2)  # shares of queries on which a row scores at all
LENIENT, CARELESS, CAREFUL = "lenient", "careless", "careful"


@dataclass(frozen=True, slots=True)
class Graded:
    """Two rows' scores by people and by a model on every query (queries × rows), and their true means by people."""

    name: str
    means: Values
    draw: Callable[[Generator, int], tuple[Values, Values]]


def judged(rng: Generator, people: Values, judge: str) -> Values:
    """A lenient model finds something in 40% of what people score 0; others err on one query in ten or twenty."""
    other = people[rng.integers(len(people), size=len(people))]
    if judge == LENIENT:
        found = rng.uniform(0.3, 1, people.shape)
        return np.where((people == 0) & (rng.random(people.shape) < 0.4), found, people)
    return np.where(rng.random(people.shape) < (0.1 if judge == CARELESS else 0.05), other, people)


def real(judge: str) -> Graded:
    """Two real rows."""
    rows = scifact()[:, :2]

    def draw(rng: Generator, n: int) -> tuple[Values, Values]:
        people = rows[rng.integers(len(rows), size=n)]
        return people, judged(rng, people, judge)

    return Graded(f"real rows, {judge} model", rows.mean(axis=0), draw)


def sparse(share: float, judge: str) -> Graded:
    """Two rows that score 0.3 to 1 on a few queries, each on its own, and 0 elsewhere."""

    def draw(rng: Generator, n: int) -> tuple[Values, Values]:
        people = np.where(rng.random((n, 2)) < share, rng.uniform(0.3, 1, (n, 2)), 0.0)
        return people, judged(rng, people, judge)

    return Graded(f"{share:.0%} score, {judge} model", np.full(2, 0.65 * share), draw)


def graded_worlds() -> list[Graded]:
    """Every kind of scores with every judge."""
    judges = (LENIENT, CARELESS, CAREFUL)
    return [*map(real, judges), *(sparse(share, judge) for share in SPARSE for judge in judges)]


def simulate(effort: float) -> Iterator[Line]:
    """A row's mean and the difference of two, by people alone and corrected."""
    for world in graded_worlds():
        yield from held(world, PEOPLE, max(FEWEST, round(effort * 200)))


def held(world: Graded, people: tuple[int, ...], sets: int) -> Iterator[Line]:
    """How often each interval holds the truth."""
    true = float(world.means[0]), float(world.means[0] - world.means[1])
    rates = np.zeros((4, len(people)))
    for at, n in enumerate(people):
        rng = np.random.default_rng([SEED, n])
        for _ in range(sets):
            by_people, by_model = world.draw(rng, QUERIES)
            estimates = intervals(by_people[:n], by_model)
            covers = [each.low <= true[place // 2] <= each.high for place, each in enumerate(estimates)]
            rates[:, at] += np.array(covers) / sets
    claims = ("mean by people", "corrected mean", "difference by people", "corrected difference")
    for claim, measured in zip(claims, rates.tolist(), strict=True):
        yield Line(f"interval of a {claim} holds it", world.name, 2, people, measured, sets, at_least=0.93)


def intervals(people: Values, model: Values) -> list[CorrectedMean]:
    """As the program makes them: of the first row, and of the difference of both."""
    n, d, m = len(people), people[:, 0] - people[:, 1], model[:, 0] - model[:, 1]
    bounded, difference = Bounded(DRAWS), BoundedDifference(*people.mean(axis=0).tolist())
    return [
        mean_estimate(people[:, 0], bounded),
        correct_mean(people[:, 0], model[:n, 0], model[n:, 0], bounded),
        mean_estimate(d, difference),
        correct_mean(d, m[:n], m[n:], difference),
    ]
