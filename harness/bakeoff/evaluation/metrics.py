"""Run × Judgments → Scores: the value of every measure for every query, by trec_eval's conventions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import ArrayLike, NDArray

from bakeoff.core.arrays import Grades, Values
from bakeoff.core.task import Judgments
from bakeoff.evaluation.measures import Gain, Measure, deepest
from bakeoff.evaluation.ranked_grades import (
    NO_DOCUMENT,
    UNJUDGED,
    RankedGrades,
    ideal_grades,
    join,
    join_arrays,
    join_scores,
)

__all__ = [
    "RankedGrades", "deepest", "evaluate", "join", "join_arrays", "join_scores", "oracle", "random_expectation",
    "weighted_f1",
]  # fmt: skip

Scores = dict[Measure, Values]


def evaluate(ranked: RankedGrades, measures: Sequence[Measure], rel: int = 1) -> Scores:
    """Per-query values in the order of the joined queries. `rel` holds for measures that do not set their own."""
    for measure in measures:
        if ranked.depth is not None and (measure.k is None or measure.k > ranked.depth):
            raise ValueError(f"{measure} reads deeper than the {ranked.depth} places that were joined")
    whole = max(ranked.grades.shape[1], ranked.ideal.shape[1], 1)
    cuts = sorted({measure.k or whole for measure in measures})
    found, ideal = _Places(ranked.grades, cuts), _Places(ranked.ideal, cuts)
    views = {level: _Relevant(found, ranked.ideal, level) for level in {m.rel or rel for m in measures}}
    scores: Scores = {}
    for measure in measures:
        view, at = views[measure.rel or rel], cuts.index(measure.k or whole)
        k = cuts[at]
        match measure.name:
            case "p":
                value = view.hits[:, at] / k
            case "recall":
                value = _ratio(view.hits[:, at], view.total)
            case "f1":  # 2PR / (P + R) with P = hits / k and R = hits / total
                value = 2 * view.hits[:, at] / (k + view.total)
            case "ndcg":
                value = _ratio(found.dcg(measure.gain)[:, at], ideal.dcg(measure.gain)[:, at])
            case "map":
                value = _ratio(view.precisions[:, at], view.total if measure.over == "relevant" else view.hits[:, at])
            case "mrr":
                value = np.where(view.first <= k, 1 / view.first, 0.0)
            case "acc":
                value = (view.first <= k).astype(np.float64)
            case "rprec":
                value = _ratio(view.hits_at_total, view.total)
            case "judged":  # of the documents that came back: a short ranking is not a badly judged one
                value = _ratio(found.judged[:, at], np.minimum(ranked.returned, k))
            case _:
                raise AssertionError(measure.name)
        scores[measure] = value
    return scores


class _Places:
    """The judged documents of every ranking as (row, rank, grade); the rest of the ranking adds nothing."""

    def __init__(self, grades: Grades, cuts: Sequence[int]) -> None:
        self.rows, columns = np.nonzero(grades[:, : max(cuts, default=0)] >= 0)
        self.ranks, self.grades = columns + 1, grades[self.rows, columns]
        self.shape = (len(grades), len(cuts))
        self.cell = self.rows * (len(cuts) + 1) + np.searchsorted(cuts, self.ranks)
        self._dcg: dict[Gain, Values] = {}

    def cumulated(self, weights: NDArray[Any] | None = None, keep: NDArray[np.bool_] | None = None) -> Values:
        """The sum of the weights above each cut-off: one pass for all cut-offs, then one sum over the bands."""
        cell = self.cell if keep is None else self.cell[keep]
        queries, cuts = self.shape
        bands = np.bincount(cell, weights, minlength=queries * (cuts + 1)).reshape(queries, cuts + 1)
        return np.cumsum(bands[:, :-1], axis=1, dtype=np.float64)

    def dcg(self, gain: Gain) -> Values:
        """Discounted by log2(rank + 1), so rank 2 is discounted too."""
        if gain not in self._dcg:
            self._dcg[gain] = self.cumulated(_gains(self.grades, gain) / np.log2(self.ranks + 1))
        return self._dcg[gain]

    @cached_property
    def judged(self) -> Values:
        """How many of the documents above each cut-off have a grade."""
        return self.cumulated()


class _Relevant:
    """What a threshold makes of the places: hits, precisions at hits and first hits, each worked out once if asked."""

    def __init__(self, places: _Places, ideal: Grades, rel: int) -> None:
        self.places, self.keep = places, places.grades >= rel
        self.rows, self.ranks = places.rows[self.keep], places.ranks[self.keep]
        self.total = np.count_nonzero(ideal >= rel, axis=1)

    @cached_property
    def hits(self) -> Values:
        """The number of relevant documents above each cut-off."""
        return self.places.cumulated(keep=self.keep)

    @cached_property
    def ordinal(self) -> NDArray[np.intp]:
        """1 for a row's first hit, 2 for its second, and so on."""
        counts = np.bincount(self.rows, minlength=len(self.total))
        return np.arange(1, len(self.rows) + 1) - (np.cumsum(counts) - counts)[self.rows]

    @cached_property
    def precisions(self) -> Values:
        """The sum of the precisions at each hit above each cut-off: average precision before its division."""
        return self.places.cumulated(self.ordinal / self.ranks, self.keep)

    @cached_property
    def first(self) -> Values:
        """The rank of the first hit, infinite where there is none."""
        first = np.full(len(self.total), np.inf)
        leading = self.ordinal == 1
        first[self.rows[leading]] = self.ranks[leading]
        return first

    @cached_property
    def hits_at_total(self) -> NDArray[np.intp]:
        """Hits within as many places as there are relevant documents."""
        return np.bincount(self.rows[self.ranks <= self.total[self.rows]], minlength=len(self.total))


def oracle(judgments: Judgments, query_ids: Sequence[str], n_documents: int) -> RankedGrades:
    """A perfect ranking of the whole corpus: the ceiling that each measure can reach on this task."""
    ideal = ideal_grades(judgments, query_ids)
    _check_size(ideal, n_documents)
    returned = np.full(len(ideal), n_documents, dtype=np.int32)
    return RankedGrades(np.where(ideal == NO_DOCUMENT, UNJUDGED, ideal), returned, ideal)


def random_expectation(
    judgments: Judgments, query_ids: Sequence[str], n_documents: int, measures: Sequence[Measure], rel: int = 1
) -> Scores:
    """The exact expectation of each measure under a uniformly random order of the corpus, in closed form."""
    ideal = ideal_grades(judgments, query_ids)
    _check_size(ideal, n_documents)
    return {measure: _expected(measure, ideal, n_documents, measure.rel or rel) for measure in measures}


def _expected(measure: Measure, ideal: Grades, n: int, rel: int) -> Values:
    relevant = np.count_nonzero(ideal >= rel, axis=1).astype(np.float64)
    k = measure.k or n
    places = min(k, n)
    hits = relevant * places / n
    value: NDArray[Any]
    match measure.name:
        case "p":
            value = hits / k
        case "recall":
            value = _ratio(hits, relevant)
        case "f1":  # linear in the number of hits, so the expected hits are enough
            value = 2 * hits / (k + relevant)
        case "rprec":
            value = relevant / n
        case "judged":
            value = np.count_nonzero(ideal >= 0, axis=1) / n
        case "ndcg":
            mean_gain = _gains(np.maximum(ideal, 0), measure.gain).sum(axis=1) / n
            discounts = (1 / np.log2(np.arange(2, places + 2))).sum()
            value = _ratio(mean_gain * discounts, _Places(ideal, [k]).dcg(measure.gain)[:, 0])
        case "map" if measure.over == "relevant":
            value = np.where(relevant > 0, _average_precision(places, n, relevant), 0.0)
        case "map":  # given h hits, the top is a corpus of its own with h relevant, and its mean is linear in h
            some = _per_count(relevant, lambda count: 1 - _misses(count, n, places)[-1])
            alone, two = _average_precision(places, places, np.array([1.0, 2.0]))
            value = some * alone + (hits - some) * (two - alone)
        case "mrr":
            ranks = np.arange(1, places + 1)
            value = _per_count(relevant, lambda count: (-np.diff(_misses(count, n, places)) / ranks).sum())
        case "acc":
            value = _per_count(relevant, lambda count: 1 - _misses(count, n, places)[-1])
        case _:
            raise AssertionError(measure.name)
    return np.asarray(value, dtype=np.float64)


def _average_precision(places: int, n: int, relevant: NDArray[Any]) -> Values:
    """E[AP] = Σ (1 + (i−1)(R−1)/(n−1)) / i / n: a hit at i has, on average, so many hits before it."""
    harmonic = float((1 / np.arange(1, places + 1)).sum())
    before = (relevant - 1) / (n - 1) if n > 1 else np.zeros(len(relevant))
    return np.asarray((harmonic + before * (places - harmonic)) / n, dtype=np.float64)


def _misses(relevant: float, n: int, places: int) -> Values:
    """The probability that the first 0, 1, … places hold none of the relevant documents."""
    drawn = np.arange(places)
    return np.concatenate((np.ones(1), np.cumprod(np.maximum(n - relevant - drawn, 0) / (n - drawn))))


def _per_count(relevant: Values, value: Callable[[float], float]) -> Values:
    """Works a value out once for each number of relevant documents: there are few of them and many queries."""
    counts, back = np.unique(relevant, return_inverse=True)
    return np.array([value(float(count)) for count in counts], dtype=np.float64)[back]


def _check_size(ideal: Grades, n_documents: int) -> None:
    if n_documents < max(ideal.shape[1], 1):
        raise InputError(f"{ideal.shape[1]} documents are judged for one query, but the corpus has {n_documents}")


def _gains(grades: NDArray[Any], gain: Gain) -> Values:
    return grades.astype(np.float64) if gain == "linear" else np.exp2(grades.astype(np.float64)) - 1


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> Values:
    """0 where there is nothing to divide by: a query without relevant documents scores 0, as in trec_eval."""
    ratio = np.zeros(len(part))
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def weighted_f1(confusion: ArrayLike) -> float:
    """F1 of each class weighted by its true count; rows are the true classes, columns the predicted ones."""
    matrix = np.asarray(confusion, dtype=np.float64)
    true, predicted = matrix.sum(axis=1), matrix.sum(axis=0)
    f1 = _ratio(2 * np.diagonal(matrix), true + predicted)
    return float(_ratio(np.array([f1 @ true]), np.array([true.sum()]))[0])
