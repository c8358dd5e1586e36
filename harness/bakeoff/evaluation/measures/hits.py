"""Measures that count relevant documents: precision, recall, F1 and R-precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import CondensableMeasure, Rel
from bakeoff.evaluation.random_order import RandomOrder


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
    monotone: ClassVar = True
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
    monotone: ClassVar = True
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
