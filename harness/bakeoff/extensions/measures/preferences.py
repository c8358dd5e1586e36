"""Measures for incomplete judgments: they use judged documents only, or infer the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import Measure, Option, Rel
from bakeoff.evaluation.random_order import RandomOrder, per_pair
from bakeoff.evaluation.ranked_grades import POOLED

EPSILON = 0.00001  # trec_eval's smoothing of infAP


@dataclass(frozen=True)
class BPref(Measure):
    """How rarely judged irrelevant documents rank above relevant ones (Buckley and Voorhees, 2004)."""

    name: ClassVar = "bpref"
    title: ClassVar = "bpref"
    cut: ClassVar = "refused"
    trec_name: ClassVar = "bpref"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Per hit, the share of the first R irrelevant documents that is not above it; divided by all relevant."""
        relevant = run.relevant(self.rel)
        total, most = relevant.total, np.minimum(relevant.total, relevant.total_irrelevant)
        rows = relevant.rows
        above = np.minimum(relevant.irrelevant_above, total[rows])
        kept = 1 - ratio(above, most[rows])
        return ratio(np.bincount(rows, kept, minlength=len(total)), total)

    def expected(self, order: RandomOrder) -> Values:
        """Every relevant document is equally likely at each place, with irrelevant ones above it in proportion."""
        places = order.places(self.k)

        def value(relevant: int, irrelevant: int) -> float:
            if not relevant:
                return 0.0
            lost = np.minimum(np.arange(irrelevant + 1), relevant) / max(min(irrelevant, relevant), 1)
            if places == order.documents:
                return float(1 - lost.mean())
            draws = order.draws(irrelevant, places, without=1)
            return float(sum(1 - chances @ lost for chances in draws) / order.documents)

        return per_pair(order.relevant(self.rel), order.irrelevant(self.rel), value)


@dataclass(frozen=True)
class InferredAP(Measure):
    """Average precision inferred from judgments that are a random sample of a pool (Yilmaz and Aslam, 2006).

    `pool=judged`: the pool is every document in the qrels, including those marked −1 (not judged), as in trec_eval.
    `pool=ranked`: the pool is every returned document, so the judgments are a sample of the rankings.
    """

    name: ClassVar = "infap"
    title: ClassVar = "infAP"
    cut: ClassVar = "refused"
    trec_name: ClassVar = "infAP"

    pool: Annotated[Literal["judged", "ranked"], "population that judged documents were sampled from"] = "judged"
    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Per hit, the precision inferred from the sample above it; divided by all relevant."""
        relevant = run.relevant(self.rel)
        hits, misses = relevant.ordinal - 1, relevant.irrelevant_above
        if self.pool == "judged":
            marked = np.cumsum(run.grades.grades == POOLED, axis=1)
            pooled = hits + misses + marked[relevant.rows, relevant.ranks - 1]
        else:
            pooled = relevant.ranks - 1
        precision = (1 + pooled * (hits + EPSILON) / (hits + misses + 2 * EPSILON)) / relevant.ranks
        return ratio(np.bincount(relevant.rows, precision, minlength=len(relevant.total)), relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Given the number of judged documents above a hit, their relevant share is that of all judged ones."""
        places = order.places(self.k)

        def value(relevant: int, irrelevant: int) -> float:
            if not relevant:
                return 0.0
            others = relevant + irrelevant - 1
            judged = np.arange(others + 1)
            hits = judged * (relevant - 1) / max(others, 1)
            share, sum_ = (hits + EPSILON) / (judged + 2 * EPSILON), 0.0
            for above, chances in enumerate(order.draws(others, places, without=1)):
                pooled = judged if self.pool == "judged" else above
                sum_ += (1 + float(chances @ (pooled * share))) / (above + 1)
            return float(sum_ / order.documents)

        return per_pair(order.relevant(self.rel), order.irrelevant(self.rel), value)

    def note(self, option: str, value: Option) -> str:
        """Names the pool."""
        return "every ranked document is pooled" if option == "pool" else super().note(option, value)
