"""Measures that read only where the first relevant document is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun
from bakeoff.evaluation.measures.base import CondensableMeasure, Rel
from bakeoff.evaluation.random_order import RandomOrder, per_count


@dataclass(frozen=True)
class ReciprocalRank(CondensableMeasure):
    """1 / rank of the first relevant document, 0 where there is none above the cut-off."""

    name: ClassVar = "mrr"
    title: ClassVar = "MRR"
    monotone: ClassVar = True
    trec_name: ClassVar = "recip_rank"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """An infinite rank gives 0."""
        first = run.relevant(self.rel).first
        return np.where(first <= run.cut(self.k), 1 / first, 0.0)

    def expected(self, order: RandomOrder) -> Values:
        """The chance that the first hit is at a rank, by that rank."""
        places = order.places(self.k)
        ranks = np.arange(1, places + 1)
        return per_count(
            order.relevant(self.rel), lambda count: (-np.diff(order.no_hit_within(count, places)) / ranks).sum()
        )


@dataclass(frozen=True)
class Accuracy(CondensableMeasure):
    """1 where any of the first k documents is relevant: trec_eval's success."""

    name: ClassVar = "acc"
    title: ClassVar = "Accuracy"
    monotone: ClassVar = True
    cut: ClassVar = "required"
    trec_cut_name: ClassVar = "success"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Whether the first hit is above the cut-off."""
        return (run.relevant(self.rel).first <= run.cut(self.k)).astype(np.float64)

    def expected(self, order: RandomOrder) -> Values:
        """The chance of at least one hit."""
        places = order.places(self.k)
        return per_count(order.relevant(self.rel), lambda count: 1 - order.no_hit_within(count, places)[-1])
