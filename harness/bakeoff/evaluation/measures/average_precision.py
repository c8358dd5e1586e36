"""Average precision, and its mean over queries, MAP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import CondensableMeasure, Option, Rel
from bakeoff.evaluation.random_order import RandomOrder, per_count

LEAST = 0.00001  # an average precision of 0 would make the geometric mean 0
COUNTED = 100_000  # sets of places enumerated for the expectation of GMAP
SIMULATED, SIMULATION_SEED = 10_000, 42  # random sets of places if there are more
BLOCK_CELLS = 1 << 22  # random numbers held at once


@dataclass(frozen=True)
class AveragePrecision(CondensableMeasure):
    """The summed precision at each hit, divided by all relevant documents (`over=found`: by those in the ranking)."""

    name: ClassVar = "map"
    title: ClassVar = "MAP"
    trec_name: ClassVar = "map"
    trec_cut_name: ClassVar = "map_cut"

    over: Annotated[Literal["relevant", "found"], "what the sum is divided by"] = "relevant"
    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Sum of the precisions at each hit, divided by the relevant documents, or by those found (`over`)."""
        relevant = run.relevant(self.rel)
        divisor = relevant.total if self.over == "relevant" else relevant.hits(self.k)
        return ratio(relevant.precisions(self.k), divisor)

    def expected(self, order: RandomOrder) -> Values:
        """Given h hits, the top k is like a small corpus with h relevant documents, and the mean is linear in h."""
        relevant, places = order.relevant(self.rel), order.places(self.k)
        if self.over == "relevant":
            whole = _of_random_order(places, order.documents, relevant)
            return np.asarray(np.where(relevant > 0, whole, 0.0), dtype=np.float64)
        some = per_count(relevant, lambda count: 1 - order.no_hit_within(count, places)[-1])
        alone, two = _of_random_order(places, places, np.array([1.0, 2.0]))
        more = order.hits(self.rel, self.k) - some
        return np.asarray(some * alone + more * (two - alone), dtype=np.float64)

    def note(self, option: str, value: Option) -> str:
        """Names the divisor."""
        return "over found" if option == "over" else super().note(option, value)


@dataclass(frozen=True)
class GeometricMAP(CondensableMeasure):
    """The geometric mean of average precision (Robertson, 2006): doubling a bad query counts as doubling a good one.

    A query's value is the logarithm, with average precision raised to at least 0.00001, as in trec_eval. Tests
    and intervals use logarithms.
    """

    name: ClassVar = "gm_map"
    title: ClassVar = "GMAP"
    bounded: ClassVar = False
    trec_name: ClassVar = "gm_map"

    rel: Rel = None

    def figure(self, mean: float) -> float:
        """Back from the logarithm."""
        return math.exp(mean)

    def values(self, run: GradedRun) -> Values:
        """Logarithms of average precision."""
        relevant = run.relevant(self.rel)
        return np.asarray(np.log(np.maximum(ratio(relevant.precisions(self.k), relevant.total), LEAST)))

    def expected(self, order: RandomOrder) -> Values:
        """The mean logarithm has no closed form, so it is averaged over the possible places of the hits.

        The distribution of the number of hits is known. Up to 100,000 sets of places are enumerated; beyond, they are
        simulated.
        """
        places = order.places(self.k)

        def value(count: float) -> float:
            relevant = int(count)
            *_, chances = order.draws(relevant, places + 1)
            likely: list[float] = chances[: places + 1].tolist()
            return math.fsum(
                chance * _mean_log_precision(hits, places, relevant, chance)
                for hits, chance in enumerate(likely)
                if chance > 0
            )

        return per_count(order.relevant(self.rel), value)


def _mean_log_precision(hits: int, places: int, relevant: int, chance: float) -> float:
    """The mean log of average precision with this many hits anywhere among the places. Rare counts get few draws."""
    if not hits:
        return math.log(LEAST)
    if math.comb(places, hits) <= COUNTED:
        sets = np.array(list(combinations(range(1, places + 1), hits)))
    else:
        sets = _random_sets(hits, places, max(100, math.ceil(SIMULATED * chance)))
    precisions = (np.arange(1, hits + 1) / sets).sum(axis=1) / relevant
    return float(np.log(np.maximum(precisions, LEAST)).mean())


def _random_sets(hits: int, places: int, draws: int) -> NDArray[np.int64]:
    """Seeded random sets of places, each ascending."""
    rng = np.random.default_rng(SIMULATION_SEED)
    if draws * places > BLOCK_CELLS:
        drawn = np.array([rng.choice(places, hits, replace=False) for _ in range(draws)])
    else:
        drawn = np.argpartition(rng.random((draws, places)), hits - 1, axis=1)[:, :hits]
    return np.asarray(np.sort(drawn, axis=1) + 1, dtype=np.int64)


def _of_random_order(places: int, n: int, relevant: NDArray[Any]) -> Values:
    """E[AP] = Σ (1 + (i−1)(R−1)/(n−1)) / i / n: the bracket is the expected number of hits up to a hit at i."""
    harmonic = float((1 / np.arange(1, places + 1)).sum())
    before = (relevant - 1) / (n - 1) if n > 1 else np.zeros(len(relevant))
    return np.asarray((harmonic + before * (places - harmonic)) / n, dtype=np.float64)
