"""The confidence set of the best: it holds the best, it is small, and rows that do not matter do not change it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.best_set import BestSet, best_set
from bakeoff.statistics.tests import holm_of_pairs, sign_flip_tests

from simulate import worlds
from simulate.table import Line
from simulate.worlds import World

SETS = {3: 400, 8: 400, 20: 150, 60: 60}
FEWEST = 20  # data sets, however small the effort
FLIPS = 999
SEED = 28


def simulate(effort: float) -> Iterator[Line]:
    """All claims; `effort` multiplies the number of data sets."""
    for k in worlds.ROWS:
        for world in worlds.confidence_worlds(k):
            yield from held(world, worlds.QUERIES, max(FEWEST, round(effort * SETS[k])))
    for world in worlds.confidence_worlds(8):
        for share, traffic in worlds.TRAFFIC:
            yield from held(worlds.by_traffic(world, share, traffic), worlds.QUERIES, max(FEWEST, round(effort * 200)))
        for sizes_ in worlds.CLUSTERS:
            yield from held(worlds.in_clusters(world, sizes_), worlds.QUERIES, max(FEWEST, round(effort * 200)))
    for k in (8, 20):
        yield from sizes(worlds.as_measured(k), worlds.QUERIES, max(FEWEST, round(effort * 100)))
    for world in (worlds.as_measured(8), worlds.equal_means(8), worlds.as_measured(20)):
        yield from changes(world, worlds.QUERIES, max(FEWEST, round(effort * 150)))


def held(world: World, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """Rows that are equally good count alike; the leader is the one that a draw shows."""
    best = world.means >= world.means.max() - 1e-12
    behind = world.means.max() - world.means
    found = np.array(
        [
            [_holds(_set_of(table, world.heaviest), table, best, behind) for table in draws(world, n, sets)]
            for n in queries
        ]
    )
    claims = (
        ("the best row is in the set", 0.94, None),
        ("the leader is in the set", 1.0, None),
        ("no row is better than the leader by more", 0.94, None),
        ("a row is at most this much worse than the best", 0.94, None),
        ("a row is at least so much worse than the best", 0.94, None),
        ("rows in the set", None, None),
    )
    for (claim, at_least, at_most), values in zip(claims, found.mean(axis=1).T, strict=True):
        yield Line(claim, world.name, len(best), queries, values.tolist(), sets, at_least, at_most)


def _holds(found: BestSet, table: Values, best: worlds.Mask, behind: Values) -> tuple[float, ...]:
    leader = int(table.mean(axis=0).argmax())
    return (
        float(found.within[best].mean()),
        float(found.within[leader]),
        float(behind[leader] <= found.most[leader] + 1e-12),
        float((behind <= found.most + 1e-12).mean()),
        float((behind >= found.least - 1e-12).mean()),
        float(found.within.sum()),
    )


def sizes(world: World, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """No larger on average than the group that Holm's correction over all pairs leaves tied with the leader."""
    found = np.array(
        [[(_set_of(table).within.sum(), _tied(table).sum()) for table in draws(world, n, sets)] for n in queries]
    ).mean(axis=1)
    ratio = (found[:, 0] / found[:, 1]).tolist()
    k = len(world.means)
    yield Line("size of the set", world.name, k, queries, found[:, 0].tolist(), sets)
    yield Line("size of Holm's group", world.name, k, queries, found[:, 1].tolist(), sets)
    yield Line("size, set by Holm's group", world.name, k, queries, ratio, sets, at_most=1.0, share=False)


def changes(world: World, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """How often ten rows that are 0.3 worse change who may be best among the others."""
    k, more = len(world.means), worlds.with_poor_rows(world)
    changed = np.array(
        [
            [
                ((_set_of(table).within[:k] != _set_of(table[:, :k]).within).any(),
                 (_tied(table)[:k] != _tied(table[:, :k])).any())
                for table in draws(more, n, sets)
            ]
            for n in queries
        ]
    ).mean(axis=1)  # fmt: skip
    for at, n in enumerate(queries):
        at_most = {50: max(0.02, float(changed[at, 1])), 100: 0.02, 300: 0.02}.get(n)
        yield Line("ten poor rows change the set", world.name, k, (n,), [changed[at, 0]], sets, at_most=at_most)
    yield Line("ten poor rows change Holm's group", world.name, k, queries, changed[:, 1].tolist(), sets)


def draws(world: World, n: int, sets: int) -> Iterator[Values]:
    """The same for every method."""
    rng = np.random.default_rng([SEED, n, len(world.means)])
    return (world.draw(rng, n) for _ in range(sets))


def _set_of(table: Values, heaviest: float = 1.0) -> BestSet:
    return best_set(table, heaviest=heaviest, flips=FLIPS)


def _tied(table: Values) -> worlds.Mask:
    pairs = list(combinations(range(table.shape[1]), 2))
    adjusted = holm_of_pairs(sign_flip_tests(table, pairs, flips=20_000), table, pairs)
    leader = int(table.mean(axis=0).argmax())
    tied = np.ones(table.shape[1], dtype=bool)
    for (i, j), p in zip(pairs, adjusted, strict=True):
        if leader in (i, j) and p <= 0.05:
            tied[j if i == leader else i] = False
    return tied
