"""The hardest worlds of the claims that a verdict rests on, with as many data sets as two decimals take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulate import incumbents, intervals, sets, worlds
from simulate.table import Line

SETS = 4000


def simulate(effort: float) -> Iterator[Line]:
    """Equal rows, of which each fails as often as makes it so: plain, by traffic, in clusters; few queries and many."""
    number, world = max(100, round(effort * SETS)), worlds.equal_means_by_failures(8)
    made = [
        world,
        *(worlds.by_traffic(world, share, traffic) for share, traffic in worlds.TRAFFIC[1:]),
        *(worlds.in_clusters(world, sizes) for sizes in worlds.CLUSTERS),
    ]
    for each in made:
        found = [
            *sets.held(each, worlds.QUERIES, number),
            *incumbents.held(each, 0, worlds.QUERIES, number),
            *intervals.differences(each, worlds.QUERIES, number),
        ]
        yield from (replace(line, claim=f"{line.claim}, hardest worlds") for line in found if line.promised != "–")
