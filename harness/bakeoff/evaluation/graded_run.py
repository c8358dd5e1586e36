"""A run joined to its judgments, as measures read it. Intermediate figures are computed once, on demand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Grades, Values
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT, RankedGrades


class Places:
    """The judged documents of every ranking as (row, rank, grade). The others add nothing."""

    def __init__(self, grades: Grades, cuts: Sequence[int], whole: int) -> None:
        self.cuts, self.whole = cuts, whole
        self.rows, columns = np.nonzero(grades[:, : max(cuts, default=0)] >= 0)
        self.ranks, self.grades = columns + 1, grades[self.rows, columns]
        self.shape = (len(grades), len(cuts))
        self.cell = self.rows * (len(cuts) + 1) + np.searchsorted(cuts, self.ranks)
        self._sums: dict[Hashable, Values] = {}

    def sum_above(
        self,
        k: int | None,
        key: Hashable,
        weights: Callable[[], NDArray[Any] | None],
        keep: NDArray[np.bool_] | None = None,
    ) -> Values:
        """Per query, the sum of the weights of judged documents above the cut-off.

        All cut-offs are summed in one pass and cached under the key.
        """
        if key not in self._sums:
            self._sums[key] = self._cumulate(weights(), keep)
        return self._sums[key][:, self.cuts.index(k or self.whole)]

    @cached_property
    def ordinal(self) -> NDArray[np.intp]:
        """1 for a row's first judged document, 2 for its second, and so on."""
        return ordinals(self.rows, self.shape[0])

    def _cumulate(self, weights: NDArray[Any] | None, keep: NDArray[np.bool_] | None) -> Values:
        """One pass for all cut-offs, then one sum over the bands between them."""
        cell = self.cell if keep is None else self.cell[keep]
        queries, cuts = self.shape
        bands = np.bincount(cell, weights, minlength=queries * (cuts + 1)).reshape(queries, cuts + 1)
        return np.cumsum(bands[:, :-1], axis=1, dtype=np.float64)


class Relevant:
    """Documents at or above one grade: hits, precision at hits, and first hits."""

    def __init__(self, places: Places, ideal: Grades, rel: int) -> None:
        self._places, self._rel, self._keep, self._ideal = places, rel, places.grades >= rel, ideal
        self.rows, self.ranks = places.rows[self._keep], places.ranks[self._keep]
        self.total = np.count_nonzero(ideal >= rel, axis=1)

    def hits(self, k: int | None) -> Values:
        """The number of relevant documents above the cut-off."""
        return self._places.sum_above(k, ("hits", self._rel), lambda: None, self._keep)

    def precisions(self, k: int | None) -> Values:
        """The sum of the precision at each hit above the cut-off: average precision before division."""
        return self._places.sum_above(k, ("precisions", self._rel), lambda: self.ordinal / self.ranks, self._keep)

    def sum_weights(self, k: int | None, key: Hashable, weights: Callable[[NDArray[Any]], Values]) -> Values:
        """The sum of the hits' weights above the cut-off, where weights depend on rank."""
        return self._places.sum_above(k, (key, self._rel), lambda: weights(self.ranks), self._keep)

    @cached_property
    def total_irrelevant(self) -> NDArray[np.intp]:
        """The number of documents judged irrelevant."""
        irrelevant: NDArray[np.intp] = np.count_nonzero(self._ideal >= 0, axis=1) - self.total
        return irrelevant

    @cached_property
    def irrelevant_above(self) -> NDArray[np.intp]:
        """For each hit, the number of documents above it that were judged irrelevant."""
        return self._places.ordinal[self._keep] - self.ordinal

    @cached_property
    def ordinal(self) -> NDArray[np.intp]:
        """1 for a row's first hit, 2 for its second, and so on."""
        return ordinals(self.rows, len(self.total))

    @cached_property
    def first(self) -> Values:
        """The rank of the first hit; infinite if there is none."""
        first = np.full(len(self.total), np.inf)
        leading = self.ordinal == 1
        first[self.rows[leading]] = self.ranks[leading]
        return first

    @cached_property
    def hits_at_total(self) -> NDArray[np.intp]:
        """Hits among the first R places, where R is the number of relevant documents."""
        return np.bincount(self.rows[self.ranks <= self.total[self.rows]], minlength=len(self.total))


class GradedRun:
    """All rankings of a run. `ranked` is what was returned, `ideal` the best order of all judged documents."""

    def __init__(self, grades: RankedGrades, cuts: Sequence[int | None], rel: int) -> None:
        self.grades, self.returned, self._rel = grades, grades.returned, rel
        self.whole = max(grades.grades.shape[1], grades.ideal.shape[1], 1)
        self._cuts = cuts
        levels = sorted({self.cut(k) for k in cuts})
        self.ranked = Places(grades.grades, levels, self.whole)
        self.ideal = Places(grades.ideal, levels, self.whole)
        self._relevant: dict[int, Relevant] = {}

    def cut(self, k: int | None) -> int:
        """The number of places above a cut-off; all if there is none."""
        return k or self.whole

    def relevant(self, rel: int | None) -> Relevant:
        """The run at this threshold, or at the task's own."""
        level = rel or self._rel
        if level not in self._relevant:
            self._relevant[level] = Relevant(self.ranked, self.grades.ideal, level)
        return self._relevant[level]

    @cached_property
    def condensed(self) -> GradedRun:
        """The same run without unjudged documents. Those below move up."""
        grades = self.grades.grades
        order = np.argsort(grades < 0, axis=1, kind="stable")
        judged = np.take_along_axis(grades, order, axis=1)
        returned = np.count_nonzero(judged >= 0, axis=1).astype(np.int32)
        judged[judged < 0] = NO_DOCUMENT
        return GradedRun(RankedGrades(judged, returned, self.grades.ideal), self._cuts, self._rel)


def ordinals(rows: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """1 for the first entry of each row, 2 for the second. Rows must be sorted."""
    counts = np.bincount(rows, minlength=count)
    return np.arange(1, len(rows) + 1) - (np.cumsum(counts) - counts)[rows]


def ratio(part: NDArray[Any], whole: NDArray[Any]) -> Values:
    """0 if the divisor is 0: a query without relevant documents scores 0, as in trec_eval."""
    quotient = np.zeros(len(part))
    np.divide(part, whole, out=quotient, where=whole > 0)
    return quotient
