"""Rows against an incumbent: how often one is called better or worse that is not, and how often all bounds hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import Versus, versus
from bakeoff.statistics.detectable import queries_for_gap
from bakeoff.statistics.tests import holm_of_pairs, sign_flip_tests

from simulate import worlds
from simulate.sets import FEWEST, FLIPS, SEED, SETS, draws
from simulate.table import Line
from simulate.worlds import World

GAP = 0.1
FRESH = 4  # data sets for each pilot


def simulate(effort: float) -> Iterator[Line]:
    """The incumbent is a world's first row, which is the best where there is one, or its last."""
    for k in worlds.ROWS:
        for world in worlds.confidence_worlds(k):
            for incumbent in (0, k - 1):
                yield from held(world, incumbent, worlds.QUERIES, max(FEWEST, round(effort * SETS[k])))
    for world in worlds.confidence_worlds(8):
        for share, traffic in worlds.TRAFFIC:
            weighted = worlds.by_traffic(world, share, traffic)
            yield from held(weighted, 0, worlds.QUERIES, max(FEWEST, round(effort * 200)))
        for sizes in worlds.CLUSTERS:
            yield from held(worlds.in_clusters(world, sizes), 0, worlds.QUERIES, max(FEWEST, round(effort * 200)))
    for k in (8, 20):
        yield from found(k, (50, 300), max(FEWEST, round(effort * 200)))
    for k in (3, 8, 20):
        yield planned(k, (20, 50, 100), max(FEWEST, round(effort * 200)))


def held(world: World, incumbent: int, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """Errors in several rows count once."""
    gaps = world.means - world.means[incumbent]
    rates = np.array(
        [
            [
                _holds(versus(table, incumbent, heaviest=world.heaviest, flips=FLIPS), gaps)
                for table in draws(world, n, sets)
            ]
            for n in queries
        ]
    )
    claims = (
        ("a row beats the incumbent that is not better", None, 0.07),
        ("a row is worse than the incumbent that is not", None, 0.07),
        ("every row is better by at least so much", 0.93, None),
        ("every row is better by at most so much", 0.93, None),
    )
    name = f"{world.name}, {'last' if incumbent else 'first'} row"
    for (claim, at_least, at_most), values in zip(claims, rates.mean(axis=1).T, strict=True):
        yield Line(claim, name, len(gaps), queries, values.tolist(), sets, at_least, at_most)


def planned(k: int, pilots: tuple[int, ...], sets: int) -> Line:
    """How often the queries that a pilot asks for show a gain of 0.1 over the incumbent, among k − 1 comparisons."""
    world, shown = worlds.one_better(k, GAP), []
    rng = np.random.default_rng([SEED, k])
    for n in pilots:
        rates = []
        for pilot in draws(world, n, sets):
            plan = queries_for_gap(pilot[:, 1], pilot[:, 0], gap=GAP, comparisons=k - 1, incumbent=True)
            if plan is None:
                continue
            middle = plan[0] if plan[0] == plan[1] else round(plan[1] / 2)
            rates += [versus(world.draw(rng, middle), 0, flips=FLIPS).low[1] > 0 for _ in range(FRESH)]
        shown.append(float(np.mean(rates)))
    return Line(f"planned queries show a gain of {GAP}", world.name, k, pilots, shown, sets, 0.75, 0.9)


def _holds(found: Versus, gaps: Values) -> tuple[bool, ...]:
    return (
        bool(((found.low > 0) & (gaps <= 1e-9)).any()),
        bool(((found.high < 0) & (gaps >= -1e-9)).any()),
        bool((found.low <= gaps + 1e-9).all()),
        bool((found.high >= gaps - 1e-9).all()),
    )


def found(k: int, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """How often a row that is 0.1 better is found, and how often Holm's correction over all pairs finds it."""
    world, pairs = worlds.one_better(k, GAP), list(combinations(range(k), 2))
    rates = np.zeros((len(queries), 2))
    for at, n in enumerate(queries):
        for table in draws(world, n, sets):
            adjusted = holm_of_pairs(sign_flip_tests(table, pairs, flips=20_000), table, pairs)
            rates[at] += versus(table, 0, flips=FLIPS).low[1] > 0, adjusted[0] <= 0.05
    for claim, values in zip(
        ("a gain is found", "a gain is found by Holm over all pairs"), rates.T / sets, strict=True
    ):
        yield Line(claim, world.name, k, queries, values.tolist(), sets)
