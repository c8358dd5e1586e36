"""Measures that count documents: precision, recall, F1, R-precision, MRR, accuracy, judged and stale shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun, ratio
from bakeoff.evaluation.measures.base import CondensableMeasure, Measure, Rel
from bakeoff.evaluation.random_order import RandomOrder, per_count


@dataclass(frozen=True)
class Precision(CondensableMeasure):
    """The relevant share of the first k places. Shorter rankings are still divided by k."""

    name: ClassVar = "p"
    title: ClassVar = "Precision"
    monotone: ClassVar = True
    cut: ClassVar = "required"
    trec_cut_name: ClassVar = "P"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Hits divided by k."""
        return run.relevant(self.rel).hits(self.k) / run.cut(self.k)

    def expected(self, order: RandomOrder) -> Values:
        """Linear in the hits, so the expected hits suffice."""
        return order.hits(self.rel, self.k) / order.cut(self.k)


@dataclass(frozen=True)
class Recall(CondensableMeasure):
    """The share of relevant documents within the first k places."""

    name: ClassVar = "recall"
    title: ClassVar = "Recall"
    trec_cut_name: ClassVar = "recall"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Hits divided by all relevant documents."""
        relevant = run.relevant(self.rel)
        return ratio(relevant.hits(self.k), relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Linear in the hits, so the expected hits suffice."""
        return ratio(order.hits(self.rel, self.k), order.relevant(self.rel))


@dataclass(frozen=True)
class F1(CondensableMeasure):
    """The harmonic mean of precision and recall: 2PR / (P + R) with P = hits / k and R = hits / relevant."""

    name: ClassVar = "f1"
    title: ClassVar = "F1"
    cut: ClassVar = "required"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """2 × hits / (k + relevant), which is equal and never divides by 0."""
        relevant = run.relevant(self.rel)
        return ratio(2 * relevant.hits(self.k), run.cut(self.k) + relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Linear in the hits, so the expected hits suffice."""
        return 2 * order.hits(self.rel, self.k) / (order.cut(self.k) + order.relevant(self.rel))


@dataclass(frozen=True)
class RPrecision(CondensableMeasure):
    """R-precision: precision at R, the number of relevant documents."""

    name: ClassVar = "rprec"
    title: ClassVar = "R-Precision"
    cut: ClassVar = "refused"
    trec_name: ClassVar = "Rprec"

    rel: Rel = None

    def values(self, run: GradedRun) -> Values:
        """Hits within these places, divided by their number."""
        relevant = run.relevant(self.rel)
        return ratio(relevant.hits_at_total, relevant.total)

    def expected(self, order: RandomOrder) -> Values:
        """Every returned place is equally likely to hold a relevant document."""
        return np.minimum(order.relevant(self.rel), order.returned) / order.documents


@dataclass(frozen=True)
class ReciprocalRank(CondensableMeasure):
    """1 / rank of the first relevant document, 0 if there is none above the cut-off."""

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
        """The chance that the first hit is at a rank, divided by that rank."""
        places = order.places(self.k)
        ranks = np.arange(1, places + 1)
        return per_count(
            order.relevant(self.rel), lambda count: (-np.diff(order.no_hit_within(count, places)) / ranks).sum()
        )


@dataclass(frozen=True)
class Accuracy(CondensableMeasure):
    """1 if any of the first k documents is relevant: trec_eval's success."""

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


@dataclass(frozen=True)
class Judged(Measure):
    """The judged share of the documents that matched. A short ranking is not a badly judged one.

    Documents that only fill up a ranking do not count.
    """

    name: ClassVar = "judged"
    title: ClassVar = "Judged"
    diagnostic: ClassVar = True
    cut: ClassVar = "required"

    def values(self, run: GradedRun) -> Values:
        """Judged documents above the cut-off, divided by all that matched there; 1 if nothing matched."""
        judged, matched = _count_matched(run, self.k, run.grades.grades >= 0)
        return np.where(matched > 0, ratio(judged, matched), 1.0)

    def expected(self, order: RandomOrder) -> Values:
        """Every place is equally likely to hold a judged document."""
        share: Values = np.count_nonzero(order.ideal >= 0, axis=1) / order.documents
        return share


@dataclass(frozen=True)
class Stale(Measure):
    """The out-of-date share of the documents that matched: lower is better, 0 if nothing matched.

    NaN for a query without `as_of`, which counts in no mean.
    """

    name: ClassVar = "stale"
    title: ClassVar = "Stale"
    diagnostic: ClassVar = True
    cut: ClassVar = "required"
    reads_dates: ClassVar = True

    def values(self, run: GradedRun) -> Values:
        """Out-of-date documents above the cut-off, divided by all that matched there."""
        places = run.grades.stale
        if places is None:
            raise _no_dates(self)
        return np.where(places.time_bound, ratio(*_count_matched(run, self.k, places.stale)), np.nan)

    def expected(self, order: RandomOrder) -> Values:
        """Every place is equally likely to hold an out-of-date document."""
        if order.stale is None:
            raise _no_dates(self)
        return order.stale


def _count_matched(run: GradedRun, k: int | None, marked: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Per query, the marked documents among those that matched above the cut-off, and all that matched there."""
    matched = np.minimum(run.returned if run.grades.found is None else run.grades.found, run.cut(k))
    there = np.arange(marked.shape[1]) < matched[:, None]
    return np.count_nonzero(marked & there, axis=1), matched


def _no_dates(measure: Stale) -> InputError:
    return InputError(
        f"{measure} needs the dates of a task, which runs and grades do not have",
        remedy=f"add {measure} to the measures of a line-up and run it",
    )
