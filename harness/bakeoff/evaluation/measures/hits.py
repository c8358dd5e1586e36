"""Measures that count relevant documents, or read where the first one is: precision, recall, F1, R-precision, MRR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import CondensableMeasure, Rel
from bakeoff.evaluation.random_order import RandomOrder, per_count


@dataclass(frozen=True)
class Precision(CondensableMeasure):
    """The share of the first k places that is relevant. A ranking that is shorter is still divided by k."""

    name: ClassVar = "p"
    title: ClassVar = "Precision"
    monotone: ClassVar = True
    cut: ClassVar = "required"
    trec_cut_name: ClassVar = "P"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Hits by k."""
        return run.relevant(self.rel).hits(self.k) / run.cut(self.k)

    def expected(self, order: RandomOrder) -> Values:
        """Linear in the hits, so the expected hits are enough."""
        return order.hits(self.rel, self.k) / order.cut(self.k)


@dataclass(frozen=True)
class Recall(CondensableMeasure):
    """The share of the relevant documents that is in the first k places."""

    name: ClassVar = "recall"
    title: ClassVar = "Recall"
    trec_cut_name: ClassVar = "recall"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Hits by all relevant."""
        relevant = run.relevant(self.rel)
        return ratio(relevant.hits(self.k), relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Linear in the hits, so the expected hits are enough."""
        return ratio(order.hits(self.rel, self.k), order.relevant(self.rel))


@dataclass(frozen=True)
class F1(CondensableMeasure):
    """The harmonic mean of precision and recall: 2PR / (P + R) with P = hits / k and R = hits / relevant."""

    name: ClassVar = "f1"
    title: ClassVar = "F1"
    cut: ClassVar = "required"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """2 × hits / (k + relevant), which is the same and never divides by 0."""
        relevant = run.relevant(self.rel)
        return ratio(2 * relevant.hits(self.k), run.cut(self.k) + relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Linear in the hits, so the expected hits are enough."""
        return 2 * order.hits(self.rel, self.k) / (order.cut(self.k) + order.relevant(self.rel))


@dataclass(frozen=True)
class RPrecision(CondensableMeasure):
    """Precision at as many places as there are relevant documents."""

    name: ClassVar = "rprec"
    title: ClassVar = "R-Precision"
    cut: ClassVar = "refused"
    trec_name: ClassVar = "Rprec"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Hits within these places by their number."""
        relevant = run.relevant(self.rel)
        return ratio(relevant.hits_at_total, relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Each of the places that came back holds a relevant document with the same chance."""
        return np.minimum(order.relevant(self.rel), order.returned) / order.documents


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
