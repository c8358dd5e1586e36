"""A run as arrays, joined to judgments without a Python object for each line: a run has millions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.task import Judgments
from bakeoff.evaluation.ranked_grades import RankedGrades, Ties, blank_grades, ideal_grades

Lines = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RunTable:
    """The lines of a run by query: `starts` bounds the lines of each, `scores` has one entry a line.

    `codes` gives for every line the place of its document among these ids, −1 for all others; `ids` names the documents
    of some lines.
    """

    queries: Sequence[str]
    starts: Lines
    scores: Values
    codes: Callable[[Sequence[str]], NDArray[np.int32]]
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
        counts = np.diff(self.starts)
        returned = np.array([counts[self._places[q]] if q in self._places else 0 for q in query_ids], dtype=np.int32)
        if depth is not None:
            np.minimum(returned, depth, out=returned)
        grades = blank_grades(returned)
        ids = sorted({document for query in query_ids for document in judgments.get(query, {})})
        codes = self.codes(ids)
        judged_somewhere = np.flatnonzero(codes >= 0)
        bounds = np.searchsorted(judged_somewhere, self.starts)
        for row, query in enumerate(query_ids):
            if (at := self._places.get(query)) is None:
                continue
            graded = judgments.get(query, {})
            lines = judged_somewhere[bounds[at] : bounds[at + 1]]
            given = [graded.get(ids[code], -1) for code in codes[lines].tolist()]
            kept = np.array([grade >= 0 for grade in given], dtype=bool)
            if kept.any():
                places = self._ranks(at, lines[kept], ties)
                inside = places < grades.shape[1]
                grades[row, places[inside]] = np.array(given, dtype=np.int32)[kept][inside]
        return RankedGrades(grades, returned, ideal_grades(judgments, query_ids), depth)

    def _ranks(self, query: int, lines: Lines, ties: Ties) -> Lines:
        """The place of each of these lines in its query's ranking; ids are looked at only where scores are equal."""
        first, last = self.starts[query], self.starts[query + 1]
        scores: NDArray[np.floating] = self.scores[first:last]
        if ties == "trec_single":
            scores = scores.astype(np.float32)
        mine = scores[lines - first]
        ascending = scores[::-1] if (scores[1:] <= scores[:-1]).all() else np.sort(scores)
        places = np.asarray(len(scores) - np.searchsorted(ascending, mine, "right"), dtype=np.int64)
        ends = len(scores) - np.searchsorted(ascending, mine, "left")
        for at in np.flatnonzero(ends - places > 1):
            equal = first + np.flatnonzero(scores == mine[at])
            ordered = sorted(self.ids(equal), reverse=ties != "id_ascending")
            places[at] += ordered.index(self.ids(lines[at : at + 1])[0])
        return places
