"""Discounted cumulated gain, plain and normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, Places, ratio
from bakeoff.evaluation.measures.base import CondensableMeasure, Option
from bakeoff.evaluation.random_order import RandomOrder


@dataclass(frozen=True)
class DCG(CondensableMeasure):
    """The gains of the ranking, discounted by log2(rank + 1). Not normalised, so queries weigh differently."""

    name: ClassVar = "dcg"
    title: ClassVar = "DCG"
    bounded: ClassVar = False
    monotone: ClassVar = True

    gain: Annotated[Literal["linear", "exp"], "gain of a grade: itself, or 2^grade − 1"] = "linear"

    def values(self, run: GradedRun) -> Values:
        """The sum above the cut-off."""
        return self._dcg(run.ranked)

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds the corpus's mean gain."""
        mean_gain = self._gains(np.maximum(order.ideal, 0)).sum(axis=1) / order.documents
        discounts: Values = 1 / np.log2(np.arange(2, order.places(self.k) + 2))
        return np.asarray(mean_gain * discounts.sum(), dtype=np.float64)

    def note(self, option: str, value: Option) -> str:
        """Names the gain."""
        return "exponential gain" if option == "gain" else super().note(option, value)

    def _dcg(self, places: Places) -> Values:
        def discount() -> Values:
            return self._gains(places.grades) / np.log2(places.ranks + 1)

        return places.sum_above(self.k, ("dcg", self.gain), discount)

    def _gains(self, grades: NDArray[Any]) -> Values:
        linear = grades.astype(np.float64)
        return linear if self.gain == "linear" else np.exp2(linear) - 1


@dataclass(frozen=True)
class NDCG(DCG):
    """The gain of the ranking divided by that of the ideal order of all judged documents, both cut at k.

    Discounted by log2(rank + 1), so rank 2 is discounted too. The gain is the grade, or 2^grade − 1.
    """

    name: ClassVar = "ndcg"
    title: ClassVar = "NDCG"
    bounded: ClassVar = True
    monotone: ClassVar = False
    trec_name: ClassVar = "ndcg"
    trec_cut_name: ClassVar = "ndcg_cut"

    def values(self, run: GradedRun) -> Values:
        """The ranking's DCG divided by the ideal's."""
        return ratio(self._dcg(run.ranked), self._dcg(run.ideal))

    def expected(self, order: RandomOrder) -> Values:
        """The ideal is the same for every order."""
        cut = order.cut(self.k)
        return ratio(super().expected(order), self._dcg(Places(order.ideal, [cut], whole=cut)))
