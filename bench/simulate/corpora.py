"""Scores at another size of the corpus: do an estimate's brackets hold the truth, and how far off is its middle?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.extensions.corpus_size.growth import extrapolate
from numpy.random import Generator

from simulate.sets import FEWEST
from simulate.table import Line

QUERIES = 300
POWERS = ((-8, -3), (-7, -4), (-6, -3), (-5, -2))  # of ten, of the chance that a document beats the relevant one
SIZES = ((300, 500, 1_000), (3_000, 10_000, 30_000), (3_000, 10_000, 30_000, 100_000))
TIMES = (3, 10, 100)  # the largest sample
MANY = 100_000  # queries of which the truth is known


def scores(rng: Generator, queries: int, sizes: tuple[int, ...], powers: tuple[int, int]) -> Values:
    """NDCG@10, sizes × queries. One document is relevant; each other one beats it with a chance of the query's own.

    Samples are nested: what beats it in a small one does so in a large one.
    """
    chance = 10 ** rng.uniform(*powers, queries)
    steps = np.diff((0, *sizes))
    above = np.cumsum(rng.binomial(steps[:, None], chance), axis=0)
    return np.where(above < 10, 1 / np.log2(above + 2), 0.0)


def simulate(effort: float) -> Iterator[Line]:
    """Curves that fall slowly, that only begin to fall, that end near 0."""
    for powers in POWERS:
        for sizes in SIZES:
            yield from estimates(powers, sizes, max(FEWEST, round(effort * 200)))


def estimates(powers: tuple[int, int], sizes: tuple[int, ...], sets: int) -> Iterator[Line]:
    """At 3, 10 and 100 times the documents of the largest sample."""
    held, off = [], []
    for times in TIMES:
        target = times * sizes[-1]
        truth = float(scores(np.random.default_rng(0), MANY, (target,), powers).mean())
        drawn = (scores(np.random.default_rng(seed + 1), QUERIES, sizes, powers) for seed in range(sets))
        found = [each for table in drawn if (each := extrapolate(table, sizes, target)) is not None]
        held.append(float(np.mean([each.low <= truth <= each.high for each in found])))
        off.append(float(np.mean([each.mean - truth for each in found])))
    world = f"a document beats the relevant one in 10^{powers[0]} to 10^{powers[1]}, samples up to {sizes[-1]:,}"
    yield Line("brackets hold the score at 3, 10, 100 times the documents", world, 1, TIMES, held, sets, at_least=0.93)
    yield Line("the middle is too high by", world, 1, TIMES, off, sets, share=False)
