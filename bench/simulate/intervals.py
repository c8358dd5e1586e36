"""Intervals of means and differences, and equivalence, where failures may be rare."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.extensions.several_results.nested import estimate_nested
from bakeoff.statistics.guarded import equivalence_p, guard_differences, queries_for_equivalence
from bakeoff.statistics.small_samples import Part, exact_interval, exact_interval_of_parts

from simulate import worlds
from simulate.sets import FEWEST, SEED, draws
from simulate.table import Line
from simulate.worlds import World

MARGINS = (0.02, 0.05, 0.1)
LONG = (*worlds.QUERIES, 1000)
DRAWS = 1000
TASKS = (0.2, 0.3, 0.5)  # shares of all queries


def simulate(effort: float) -> Iterator[Line]:
    """Means, weighted means, differences, equivalence."""
    several = max(FEWEST, round(effort * 300))
    for world in worlds.confidence_worlds(2):
        yield means(world, worlds.QUERIES, several)
    for share in worlds.RARE:
        yield from weighted_means(share, worlds.QUERIES, several)
    for world in (*worlds.confidence_worlds(8), *_losses()):
        yield from differences(world, worlds.QUERIES, several)
    for world in (*worlds.confidence_worlds(8), *_losses()):
        for share, traffic in worlds.TRAFFIC:
            yield from differences(worlds.by_traffic(world, share, traffic), worlds.QUERIES, several)
        for sizes in worlds.CLUSTERS:
            yield from differences(worlds.in_clusters(world, sizes), worlds.QUERIES, several)
        yield over_tasks(world, worlds.QUERIES, max(FEWEST, several // 4))
    for margin in MARGINS:
        for ties in (False, True):
            world = worlds.loss_by_failures(margin, ties=ties)
            yield from equivalence(world, margin, LONG, 10 * several, at_most=0.05)
            for share, traffic in worlds.TRAFFIC:
                weighted = worlds.by_traffic(world, share, traffic)
                yield from equivalence(weighted, margin, worlds.QUERIES, 10 * several, at_most=0.05)
            for sizes in worlds.CLUSTERS:
                grouped = worlds.in_clusters(world, sizes)
                yield from equivalence(grouped, margin, worlds.QUERIES, 10 * several, at_most=0.05)
        yield from equivalence(worlds.duplicates(2), margin, LONG, several)
        yield from equivalence(worlds.loss_by_failures(0, ties=True), margin, LONG, several)
    for margin in (0.05, 0.1):
        yield planned(margin, (20, 50, 1000), max(FEWEST, round(effort * 200)))


def _losses() -> list[World]:
    return [worlds.loss_by_failures(loss, ties=ties) for loss in MARGINS for ties in (False, True)]


def means(world: World, queries: tuple[int, ...], sets: int) -> Line:
    """The second row's, which is the one that fails where only some do."""
    held = []
    for n in queries:
        ends = np.array([exact_interval(table[:, 1], draws=DRAWS) for table in draws(world, n, sets)])
        held.append(float(np.mean((ends[:, 0] <= world.means[1]) & (world.means[1] <= ends[:, 1]))))
    return Line("interval of a mean holds it", world.name, 1, queries, held, sets, at_least=0.93)


def weighted_means(share: float, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """Of a log's strata, half the queries for a tenth of them that has most traffic; of three tasks of unequal size."""
    world = worlds.rare_failures(2, share)
    for claim, shares, sizes in (
        ("interval of a mean by traffic holds it", (0.7, 0.3), (0.5, 0.5)),
        ("interval of a mean over tasks holds it", (1 / 3, 1 / 3, 1 / 3), TASKS),
    ):
        held = []
        for n in queries:
            counts = [max(2, round(size * n)) for size in sizes]
            hits = 0
            for table in draws(world, sum(counts), sets):
                values = np.split(table[:, 1], np.cumsum(counts)[:-1])
                parts = [Part(each, np.full(len(each), w / len(each))) for each, w in zip(values, shares, strict=True)]
                low, high = exact_interval_of_parts(parts, (0.0, 1.0), draws=DRAWS)
                hits += low <= world.means[1] <= high
            held.append(hits / sets)
        yield Line(claim, world.name, 1, queries, held, sets, at_least=0.93)


def differences(world: World, queries: tuple[int, ...], sets: int) -> Iterator[Line]:
    """Of the first row and the last."""
    last = len(world.means) - 1
    gap = world.means[0] - world.means[last]
    found = []
    for n in queries:
        tables = np.stack([table[:, [0, last]] for table in draws(world, n, sets)])
        columns = np.concatenate((tables[:, :, 0], tables[:, :, 1])).T
        ends = guard_differences(columns, [(at, sets + at) for at in range(sets)], heaviest=world.heaviest)
        found.append((np.mean((ends.low <= gap) & (gap <= ends.high)), np.mean(ends.high - ends.low)))
    held, width = np.array(found).T.tolist()
    yield Line("interval of a difference holds it", world.name, 2, queries, held, sets, at_least=0.93)
    yield Line("its width", world.name, 2, queries, width, sets)


def over_tasks(world: World, queries: tuple[int, ...], sets: int) -> Line:
    """Of the first row and the last, over three tasks of unequal size that count alike."""
    gap, held = world.means[0] - world.means[-1], []
    for n in queries:
        cuts = np.cumsum([max(2, round(size * n)) for size in TASKS])
        hits = 0
        for table in draws(world, int(cuts[-1]), sets):
            found = estimate_nested(np.split(table[:, 0] - table[:, -1], cuts[:-1]), resamples=DRAWS)
            hits += found.low is not None and found.high is not None and found.low <= gap <= found.high
        held.append(hits / sets)
    return Line("interval of a difference over tasks holds it", world.name, 2, queries, held, sets, at_least=0.93)


def equivalence(
    world: World, margin: float, queries: tuple[int, ...], sets: int, at_most: float | None = None
) -> Iterator[Line]:
    """How often two rows are called equivalent: wrong where the loss is as large as the margin."""
    said = [
        np.mean([equivalence_p(d, margin, worst=world.heaviest) <= 0.05 for d in _differences(world, n, sets)])
        for n in queries
    ]
    claim = f"{'wrongly ' if at_most else ''}as good within {margin}"
    yield Line(claim, world.name, 2, queries, [float(each) for each in said], sets, at_most=at_most)


def planned(margin: float, pilots: tuple[int, ...], sets: int) -> Line:
    """How often the number of queries that a pilot's spread asks for shows near-duplicates to be equivalent."""
    world, shown = worlds.duplicates(2), []
    rng = np.random.default_rng([SEED, 1])
    for n in pilots:
        pilot = [float(d.std(ddof=1)) for d in _differences(world, n, sets)]
        needed = [queries_for_equivalence(margin, sd) or 0 for sd in pilot]
        tables = (world.draw(rng, count) for count in needed)
        shown.append(float(np.mean([equivalence_p(table[:, 0] - table[:, 1], margin) <= 0.05 for table in tables])))
    return Line(f"planned queries show equality within {margin}", world.name, 2, pilots, shown, sets)


def _differences(world: World, n: int, sets: int) -> Iterator[Values]:
    return (table[:, 0] - table[:, 1] for table in draws(world, n, sets))
