"""Average precision, and its mean over queries, MAP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import CondensableMeasure, Option, Rel
from bakeoff.evaluation.random_order import RandomOrder, per_count

LEAST = 0.00001  # an average precision of 0 would make every geometric mean 0
SIMULATED, SIMULATION_SEED = 2000, 42  # random orders behind the expectation of GMAP


@dataclass(frozen=True)
class AveragePrecision(CondensableMeasure):
    """The sum of the precisions at each hit, by all relevant documents (`over=found`: by those in the ranking)."""

    name: ClassVar = "map"
    title: ClassVar = "MAP"
    trec_name: ClassVar = "map"
    trec_cut_name: ClassVar = "map_cut"

    over: Annotated[Literal["relevant", "found"], "what the sum is divided by"] = "relevant"
    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """The sum above the cut-off, divided."""
        relevant = run.relevant(self.rel)
        divisor = relevant.total if self.over == "relevant" else relevant.hits(self.k)
        return ratio(relevant.precisions(self.k), divisor)

    def expected(self, order: RandomOrder) -> Values:
        """Over found: given h hits, the top is a corpus of its own with h relevant, and its mean is linear in h."""
        relevant, places = order.relevant(self.rel), order.places(self.k)
        if self.over == "relevant":
            whole = _of_random_order(places, order.documents, relevant)
            return np.asarray(np.where(relevant > 0, whole, 0.0), dtype=np.float64)
        some = per_count(relevant, lambda count: 1 - order.no_hit_within(count, places)[-1])
        alone, two = _of_random_order(places, places, np.array([1.0, 2.0]))
        more = order.hits(self.rel, self.k) - some
        return np.asarray(some * alone + more * (two - alone), dtype=np.float64)

    def note(self, option: str, value: Option) -> str:
        """In words."""
        return "over found" if option == "over" else super().note(option, value)


@dataclass(frozen=True)
class GeometricMAP(CondensableMeasure):
    """The geometric mean of average precision (Robertson, 2006): doubling a bad query counts as doubling a good one.

    A query's value is the logarithm, with average precision raised to 0.00001 where it is less, as in trec_eval; so
    tests and intervals are made on logarithms.
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
        """The mean logarithm has no closed form: it is taken over seeded random orders."""
        places = order.places(self.k)

        def value(count: float) -> float:
            relevant, rng = int(count), np.random.default_rng(SIMULATION_SEED)
            if not relevant:
                return math.log(LEAST)
            ranks = np.sort([rng.choice(order.documents, relevant, replace=False) for _ in range(SIMULATED)]) + 1
            precisions = np.where(ranks <= places, np.arange(1, relevant + 1) / ranks, 0.0)
            return float(np.log(np.maximum(precisions.mean(axis=1), LEAST)).mean())

        return per_count(order.relevant(self.rel), value)


def _of_random_order(places: int, n: int, relevant: NDArray[Any]) -> Values:
    """E[AP] = Σ (1 + (i−1)(R−1)/(n−1)) / i / n: a hit at i has, on average, so many hits before it."""
    harmonic = float((1 / np.arange(1, places + 1)).sum())
    before = (relevant - 1) / (n - 1) if n > 1 else np.zeros(len(relevant))
    return np.asarray((harmonic + before * (places - harmonic)) / n, dtype=np.float64)
