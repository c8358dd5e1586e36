"""A run as arrays, joined to judgments without a Python object for each line: a run has millions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.task import Judgments
from bakeoff.evaluation.ranked_grades import RankedGrades, Ties, blank_grades, ideal_grades

Lines = NDArray[np.int64]
Scores = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class RunTable:
    """The lines of a run by query: `starts` bounds the lines of each, `scores` has one entry a line.

    `lines_of` gives the line of each (place of a query, document), −1 where there is none; `ids` names the documents of
    some lines.
    """

    queries: Sequence[str]
    starts: Lines
    scores: Values
    lines_of: Callable[[Lines, Sequence[str]], Lines]
    ids: Callable[[Lines], list[str]]
    _places: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {query: place for place, query in enumerate(self.queries)})

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return query in self._places

    def join(self, judgments: Judgments, query_ids: Sequence[str], depth: int | None, ties: Ties) -> RankedGrades:
        """The grade at each judged document's place: as many places down as its query has better scores."""
        at = np.array([self._places.get(query, -1) for query in query_ids], dtype=np.int64)
        returned = np.where(at >= 0, np.diff(self.starts)[at], 0).astype(np.int32)
        if depth is not None:
            np.minimum(returned, depth, out=returned)
        grades = blank_grades(returned)
        judged = [judgments.get(query, {}) if place >= 0 else {} for query, place in zip(query_ids, at, strict=True)]
        sizes = [len(graded) for graded in judged]
        rows = np.repeat(np.arange(len(query_ids)), sizes)
        given = np.fromiter(chain.from_iterable(graded.values() for graded in judged), np.int32, len(rows))
        lines = self.lines_of(at[rows], list(chain.from_iterable(judged)))
        kept = np.flatnonzero(lines >= 0)
        places = self._ranks(at[rows[kept]], lines[kept], ties)
        inside = places < grades.shape[1]
        grades[rows[kept][inside], places[inside]] = given[kept][inside]
        return RankedGrades(grades, returned, ideal_grades(judgments, query_ids), depth)

    def _ranks(self, queries: Lines, lines: Lines, ties: Ties) -> Lines:
        """The place of each of these lines in its query's ranking; ids are looked at only where scores are equal."""
        scores: Scores = self.scores.astype(np.float32) if ties == "trec_single" else self.scores
        mine, first, last = scores[lines], self.starts[queries], self.starts[queries + 1]
        ordered = _best_first(scores, self.starts)
        better = _first_at_most(ordered, first, last, mine)
        places = better - first
        equals = _first_at_most(ordered, better, last, np.nextafter(mine, -np.inf, dtype=mine.dtype)) - better
        for tied in np.flatnonzero(equals > 1).tolist():
            equal = first[tied] + np.flatnonzero(scores[first[tied] : last[tied]] == mine[tied])
            names = sorted(self.ids(equal), reverse=ties != "id_ascending")
            places[tied] += names.index(self.ids(lines[tied : tied + 1])[0])
        return places


def _best_first(scores: Scores, starts: Lines) -> Scores:
    """Every query's scores, descending. Most runs are written so, and then there is nothing to sort."""
    rises = np.flatnonzero(scores[1:] > scores[:-1]) + 1
    queries = np.searchsorted(starts, rises, "right") - 1
    unsorted = np.unique(queries[rises != starts[queries]])  # a query may begin above the end of the one before it
    if not len(unsorted):
        return scores
    ordered = scores.copy()
    for query in unsorted.tolist():
        ordered[starts[query] : starts[query + 1]][::-1].sort()
    return ordered


def _first_at_most(ordered: Scores, low: Lines, high: Lines, values: Scores) -> Lines:
    """For each value the first place within its bounds whose score is not above it, all searched at once."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        above = open_ & (ordered[np.minimum(middle, len(ordered) - 1)] > values)
        low = np.where(above, middle + 1, low)
        high = np.where(open_ & ~above, middle, high)
    return low
