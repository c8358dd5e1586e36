"""Rankings joined to judgments: the grade of every place of every ranking, the arrays that measures are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.ranking import Ranking
from providers.errors import InputError

UNJUDGED = -1
NO_DOCUMENT = -2

Ints = NDArray[np.int32]
Ties = Literal["id_ascending", "trec"]
Grades = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class RankedGrades:
    """One row a query: grades in ranked order, how many documents came back, and all judged grades, best first.

    `depth` is where rankings were cut while joining; None means that they are whole.
    """

    grades: Ints
    returned: Ints
    ideal: Ints
    depth: int | None = None

    def __len__(self) -> int:
        return len(self.grades)


def join(
    rankings: Mapping[str, Ranking], judgments: Grades, query_ids: Sequence[str], depth: int | None = None
) -> RankedGrades:
    """Joins ordered rankings. Queries that the run lacks stay in as empty rows, so that they score 0."""
    kept = []
    for query in query_ids:
        ids = rankings[query].ids if query in rankings else ()
        if len(set(ids)) < len(ids):
            raise InputError(f"query {query!r}: {_first_twice(ids)!r} stands twice in one ranking")
        kept.append(ids[:depth])
    returned = np.array([len(ids) for ids in kept], dtype=np.int32)
    grades = _blank(returned, int(returned.max(initial=0)))
    for row, (query, ids) in enumerate(zip(query_ids, kept, strict=True)):
        if judged := judgments.get(query):
            grades[row, : len(ids)] = np.fromiter(map(judged.get, ids, repeat(UNJUDGED)), np.int32, len(ids))
    return RankedGrades(grades, returned, ideal_grades(judgments, query_ids), depth)


def join_scores(
    run: Mapping[str, Mapping[str, float]],
    judgments: Grades,
    query_ids: Sequence[str],
    depth: int | None = None,
    ties: Ties = "id_ascending",
) -> RankedGrades:
    """Joins unordered scores. Only the judged documents' places are worked out; the others' order changes nothing.

    `ties="trec"` orders as trec_eval does: scores in single precision, equal ones by descending id.
    """
    answers = [run.get(query, {}) for query in query_ids]
    returned = np.array([len(scores) for scores in answers], dtype=np.int32)
    if depth is not None:
        np.minimum(returned, depth, out=returned)
    grades = _blank(returned, int(returned.max(initial=0)))
    width = grades.shape[1]
    dtype = np.float32 if ties == "trec" else np.float64
    for row, (query, scores) in enumerate(zip(query_ids, answers, strict=True)):
        values = np.fromiter(scores.values(), dtype, len(scores))
        values.sort()
        if len(values) and np.isnan(values[-1]):
            raise InputError(f"query {query!r}: a score is NaN")
        found = [(doc, scores[doc], grade) for doc, grade in judgments.get(query, {}).items() if doc in scores]
        if not found:
            continue
        wanted = np.array([score for _, score, _ in found], dtype=dtype)
        after = np.searchsorted(values, wanted, side="right")
        places = len(values) - after
        tied = np.flatnonzero((after > 1) & (values[after - 2] == wanted))
        for at in tied:
            if places[at] < width:
                places[at] += _tied_before(found[at][0], wanted[at], scores, dtype, ties)
        inside = places < width
        grades[row, places[inside]] = np.array([grade for _, _, grade in found], dtype=np.int32)[inside]
    return RankedGrades(grades, returned, ideal_grades(judgments, query_ids), depth)


def join_arrays(
    documents: NDArray[np.integer[Any]],
    judged_query: NDArray[np.integer[Any]],
    judged_document: NDArray[np.integer[Any]],
    judged_grade: NDArray[np.integer[Any]],
    depth: int | None = None,
) -> RankedGrades:
    """Joins document indices (queries × places, −1 where a ranking has ended) to (query, document, grade) triples."""
    documents = documents[:, :depth]
    n_queries = len(documents)
    returned = np.count_nonzero(documents >= 0, axis=1).astype(np.int32)
    if _rows_repeat(documents):
        raise InputError("a document stands twice in one ranking")
    size = 1 + max(int(documents.max(initial=-1)), int(judged_document.max(initial=-1)))
    order = np.argsort(judged_query, kind="stable")
    judged_document, judged_grade = judged_document[order], judged_grade[order]
    counts = np.bincount(judged_query, minlength=n_queries)
    # The last cell is the one that index −1 reads, so padding needs no case of its own.
    table = np.full(size + 1, UNJUDGED, dtype=np.int32)
    table[-1] = NO_DOCUMENT
    grades = np.empty(documents.shape, dtype=np.int32)
    end = 0
    for row, count in enumerate(counts.tolist()):
        start, end = end, end + count
        judged = judged_document[start:end]
        table[judged] = judged_grade[start:end]
        np.take(table, documents[row], out=grades[row], mode="wrap")
        table[judged] = UNJUDGED
    return RankedGrades(grades, returned, _ideal(counts, judged_grade), depth)


def ideal_grades(judgments: Grades, query_ids: Sequence[str]) -> Ints:
    """Every judged grade of each query, best first: what NDCG's ideal and the number of relevant are taken from."""
    judged = [judgments.get(query, {}) for query in query_ids]
    counts = np.array([len(grades) for grades in judged], dtype=np.int64)
    flat = np.fromiter(chain.from_iterable(grades.values() for grades in judged), np.int64, int(counts.sum()))
    return _ideal(counts, flat)


def _ideal(counts: NDArray[np.int64], flat: NDArray[np.integer[Any]]) -> Ints:
    if flat.min(initial=0) < 0:
        raise InputError(f"grade {flat.min()} is negative", remedy="grades start at 0, which is not relevant")
    if flat.max(initial=0) > 1000:
        raise InputError(f"grade {flat.max()} is above 1000", remedy="grade on a shorter scale, such as 0 to 3")
    ideal = np.full((len(counts), int(counts.max(initial=0))), NO_DOCUMENT, dtype=np.int32)
    ideal[np.arange(ideal.shape[1]) < counts[:, None]] = flat
    ideal.sort(axis=1)
    return np.ascontiguousarray(ideal[:, ::-1])


def _blank(returned: Ints, width: int) -> Ints:
    grades = np.full((len(returned), width), UNJUDGED, dtype=np.int32)
    grades[np.arange(width) >= returned[:, None]] = NO_DOCUMENT
    return grades


def _tied_before(document: str, score: Any, scores: Mapping[str, float], dtype: Any, ties: Ties) -> int:
    equal = [other for other, value in scores.items() if dtype(value) == score]
    if ties == "trec":
        return sum(other > document for other in equal)
    return sum(other < document for other in equal)


def _rows_repeat(documents: NDArray[np.integer[Any]]) -> bool:
    ranked = np.sort(documents, axis=1)
    return bool(((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)).any())


def _first_twice(ids: Sequence[str]) -> str:
    seen: set[str] = set()
    return next(item for item in ids if item in seen or seen.add(item))  # type: ignore[func-returns-value]
