"""Rankings joined to judgments: the grade of every place of every ranking, as arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Grades
from bakeoff.core.ranking import Ranking, run_of
from bakeoff.core.task import Judgments
from bakeoff.evaluation.validity import StalePlaces

POOLED = -1  # in qrels: pooled but not judged; only infAP tells it from unjudged
NO_DOCUMENT = -2
UNJUDGED = -3
NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, eq=False)
class RankedGrades:
    """One row per query: grades in ranked order, the number of documents returned, and all judged grades, best first.

    `depth` is where rankings were cut while joining; None if they are whole. `found` counts the places that matched, if
    rankings were filled up; None if all did. `stale` is known only for tasks with dates.
    """

    grades: Grades
    returned: Grades
    ideal: Grades
    depth: int | None = None
    found: Grades | None = None
    stale: StalePlaces | None = None

    def __len__(self) -> int:
        return len(self.grades)


def join(
    rankings: Mapping[str, Ranking], judgments: Judgments, query_ids: Sequence[str], depth: int | None = None
) -> RankedGrades:
    """Joins rankings to grades. Queries missing from the run become empty rows, which score 0."""
    return join_each(rankings, [judgments.get(query, NOTHING) for query in query_ids], query_ids, depth)


def join_each(
    rankings: Mapping[str, Ranking],
    judged: Sequence[Mapping[str, int]],
    query_ids: Sequence[str],
    depth: int | None = None,
) -> RankedGrades:
    """Joins rankings to grades that are given row by row. Several rows may have the ranking of the same query."""
    return find_judged(rankings, judged, query_ids, depth).grade(_flat(judged))


@dataclass(frozen=True, slots=True)
class JudgedPlaces:
    """Where each judged document is in the rankings. Regrading the same documents needs no new join.

    The judged documents are concatenated. Those at `kept` are in a ranking, at these rows and places.
    """

    counts: NDArray[np.int64]
    returned: Grades
    found: Grades
    kept: NDArray[np.intp]
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    depth: int | None

    def grade(self, grades: NDArray[np.integer[Any]]) -> RankedGrades:
        """Grades the rankings. `grades` are those of all judged documents, concatenated."""
        width = int(self.returned.max(initial=0))
        ranked = np.where(np.arange(width) < self.returned[:, None], np.int32(UNJUDGED), np.int32(NO_DOCUMENT))
        ranked[self.rows, self.places] = grades[self.kept]
        return RankedGrades(ranked, self.returned, _ideal(self.counts, grades), self.depth, self.found)


def find_judged(
    rankings: Mapping[str, Ranking],
    judged: Sequence[Collection[str]],
    query_ids: Sequence[str],
    depth: int | None = None,
) -> JudgedPlaces:
    """Finds the judged documents of each row in its ranking."""
    run = run_of(rankings, query_ids)
    at = np.array([run.rows.get(query, -1) for query in query_ids], dtype=np.int64)
    returned = np.append(np.diff(run.ends), 0)[at].astype(np.int32)  # row −1 is empty
    if depth is not None:
        np.minimum(returned, depth, out=returned)
    matched = np.append(run.matched, 0)[at]
    counts = np.array([len(documents) for documents in judged], dtype=np.int64)
    places, rows = run.places_of(at, judged, depth), np.repeat(np.arange(len(at)), counts)
    kept = np.flatnonzero((places >= 0) & (places < returned[rows]))
    found = np.where(matched < 0, returned, np.minimum(matched, returned))
    return JudgedPlaces(counts, returned, found, kept, rows[kept], places[kept], depth)


def ideal_grades(judgments: Judgments, query_ids: Sequence[str]) -> Grades:
    """All judged grades of each query, best first: the source of NDCG's ideal and of the relevant count."""
    judged = [judgments.get(query, NOTHING) for query in query_ids]
    return _ideal(np.array([len(grades) for grades in judged], dtype=np.int64), _flat(judged))


def _flat(judged: Sequence[Mapping[str, int]]) -> NDArray[np.int64]:
    """The grades of all queries in one array."""
    return np.fromiter(chain.from_iterable(grades.values() for grades in judged), np.int64)


def _ideal(counts: NDArray[np.int64], flat: NDArray[np.integer[Any]]) -> Grades:
    if flat.min(initial=0) < POOLED:
        raise InputError(f"grade {flat.min()} is negative", remedy="grades start at 0, which is not relevant")
    if flat.max(initial=0) > 1000:
        raise InputError(f"grade {flat.max()} is above 1000", remedy="grade on a shorter scale, such as 0 to 3")
    ideal = np.full((len(counts), int(counts.max(initial=0))), NO_DOCUMENT, dtype=np.int32)
    ideal[np.arange(ideal.shape[1]) < counts[:, None]] = flat
    ideal[ideal < 0] = NO_DOCUMENT
    ideal.sort(axis=1)
    return np.ascontiguousarray(ideal[:, ::-1])
