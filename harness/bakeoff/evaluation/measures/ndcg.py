"""Normalised discounted cumulated gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, Places, ratio
from bakeoff.evaluation.measures.base import Measure, Option
from bakeoff.evaluation.random_order import RandomOrder


@dataclass(frozen=True)
class NDCG(Measure):
    """The gain of the ranking by that of the best order of all judged documents, both cut at k.

    Discounted by log2(rank + 1), so rank 2 is discounted too. The gain is the grade, or 2^grade − 1.
    """

    name: ClassVar = "ndcg"
    title: ClassVar = "NDCG"
    trec_name: ClassVar = "ndcg"
    trec_cut_name: ClassVar = "ndcg_cut"

    gain: Literal["linear", "exp"] = "linear"

    def values(self, run: GradedRun) -> Values:
        """The ranking's by the ideal's."""
        return ratio(self._dcg(run.ranked), self._dcg(run.ideal))

    def expected(self, order: RandomOrder) -> Values:
        """Every place holds the mean gain of the corpus."""
        mean_gain = self._gains(np.maximum(order.ideal, 0)).sum(axis=1) / order.documents
        places = order.places(self.k)
        discounts = (1 / np.log2(np.arange(2, places + 2))).sum()
        cut = order.cut(self.k)
        return ratio(mean_gain * discounts, self._dcg(Places(order.ideal, [cut], whole=cut)))

    def note(self, option: str, value: Option) -> str:
        """In words."""
        return "exponential gain" if option == "gain" else super().note(option, value)

    def _dcg(self, places: Places) -> Values:
        def discounted() -> Values:
            return self._gains(places.grades) / np.log2(places.ranks + 1)

        return places.sum_above(self.k, ("dcg", self.gain), discounted)

    def _gains(self, grades: NDArray[Any]) -> Values:
        linear = grades.astype(np.float64)
        return linear if self.gain == "linear" else np.exp2(linear) - 1
