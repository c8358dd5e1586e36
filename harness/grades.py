"""Rankings joined to judgments: the grade of every place of every ranking, the arrays that measures are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import isnan
from struct import pack
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
            twice = next(item for item, count in Counter(ids).items() if count > 1)
            raise InputError(f"query {query!r}: {twice!r} stands twice in one ranking")
        kept.append(ids[:depth])
    returned = np.array([len(ids) for ids in kept], dtype=np.int32)
    grades = _blank(returned)
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
    judged = [judgments.get(query, {}) for query in query_ids]
    sizes = np.array([len(scores) for scores in answers], dtype=np.int32)
    counts, flat = _flat(judged)
    precision = np.dtype(np.float32 if ties == "trec" else np.float64)
    wanted = np.full(len(flat), np.nan, dtype=precision)
    below, upto = np.zeros((2, len(flat)), dtype=np.int64)
    end = 0
    for query, scores, graded in zip(query_ids, answers, judged, strict=True):
        start, end = end, end + len(graded)
        if not scores:
            continue
        values = np.sort(_values(scores, precision))
        if values[-1] != values[-1]:
            raise InputError(f"query {query!r}: the score of {next(d for d in scores if isnan(scores[d]))!r} is NaN")
        mine = np.fromiter(map(scores.get, graded, repeat(np.nan)), np.float64, len(graded)).astype(precision)
        wanted[start:end] = mine
        below[start:end] = values.searchsorted(mine, "left")
        upto[start:end] = values.searchsorted(mine, "right")
    returned = sizes if depth is None else np.minimum(sizes, np.int32(depth))
    grades = _blank(returned)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = sizes[rows] - upto
    inside = ~np.isnan(wanted) & (places < grades.shape[1])
    for at in np.flatnonzero(inside & (upto - below > 1)).tolist():
        row = int(rows[at])
        document = list(judged[row])[at - int(counts[:row].sum())]
        places[at] += _tied_before(document, wanted[at], answers[row], ties)
    inside &= places < grades.shape[1]
    grades[rows[inside], places[inside]] = flat[inside]
    return RankedGrades(grades, returned, _ideal(counts, flat), depth)


def join_arrays(
    documents: NDArray[np.integer[Any]],
    judged_query: NDArray[np.integer[Any]],
    judged_document: NDArray[np.integer[Any]],
    judged_grade: NDArray[np.integer[Any]],
    depth: int | None = None,
) -> RankedGrades:
    """Joins document indices (queries × places, −1 where a ranking has ended) to (query, document, grade) triples."""
    documents = documents[:, :depth]
    _refuse_repeated(documents)
    returned = np.count_nonzero(documents >= 0, axis=1).astype(np.int32)
    size = 1 + max(int(documents.max(initial=-1)), int(judged_document.max(initial=-1)))
    keys = judged_query.astype(np.int64) * size + judged_document
    order = np.argsort(keys)
    if (np.diff(keys[order]) == 0).any():
        raise InputError("a document is judged twice for one query")
    judged_document, judged_grade = judged_document[order], judged_grade[order]
    counts = np.bincount(judged_query, minlength=len(documents))
    # One cell a document, filled for one query at a time. Index −1 reads the last cell, so padding is no special case.
    cells = np.full(size + 1, UNJUDGED, dtype=np.int32)
    cells[-1] = NO_DOCUMENT
    grades = np.empty(documents.shape, dtype=np.int32)
    end = 0
    for row, count in enumerate(counts.tolist()):
        start, end = end, end + count
        cells[judged_document[start:end]] = judged_grade[start:end]
        cells.take(documents[row], out=grades[row], mode="wrap")
        cells[judged_document[start:end]] = UNJUDGED
    return RankedGrades(grades, returned, _ideal(counts, judged_grade), depth)


def ideal_grades(judgments: Grades, query_ids: Sequence[str]) -> Ints:
    """Every judged grade of each query, best first: what NDCG's ideal and the number of relevant are taken from."""
    return _ideal(*_flat([judgments.get(query, {}) for query in query_ids]))


def _flat(judged: Sequence[Mapping[str, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many grades each query has, and all of them in one array."""
    counts = np.array([len(grades) for grades in judged], dtype=np.int64)
    return counts, np.fromiter(chain.from_iterable(g.values() for g in judged), np.int64, int(counts.sum()))


def _ideal(counts: NDArray[np.int64], flat: NDArray[np.integer[Any]]) -> Ints:
    if flat.min(initial=0) < 0:
        raise InputError(f"grade {flat.min()} is negative", remedy="grades start at 0, which is not relevant")
    if flat.max(initial=0) > 1000:
        raise InputError(f"grade {flat.max()} is above 1000", remedy="grade on a shorter scale, such as 0 to 3")
    ideal = np.full((len(counts), int(counts.max(initial=0))), NO_DOCUMENT, dtype=np.int32)
    ideal[np.arange(ideal.shape[1]) < counts[:, None]] = flat
    ideal.sort(axis=1)
    return np.ascontiguousarray(ideal[:, ::-1])


def _blank(returned: Ints) -> Ints:
    """As many unjudged places as documents came back."""
    width = int(returned.max(initial=0))
    return np.where(np.arange(width) < returned[:, None], np.int32(UNJUDGED), np.int32(NO_DOCUMENT))


def _values(scores: Mapping[str, float], precision: np.dtype[Any]) -> NDArray[Any]:
    """Packed by struct, which takes two thirds of the time that numpy takes to read Python's floats."""
    return np.frombuffer(pack(f"{len(scores)}d", *scores.values())).astype(precision, copy=False)


def _tied_before(document: str, score: Any, scores: Mapping[str, float], ties: Ties) -> int:
    """How many documents of the same score come first by id."""
    names = list(scores)
    equal = [names[at] for at in np.flatnonzero(_values(scores, score.dtype) == score).tolist()]
    if ties == "trec":
        return sum(other > document for other in equal)
    return sum(other < document for other in equal)


def _refuse_repeated(documents: NDArray[np.integer[Any]]) -> None:
    ranked = np.sort(documents, axis=1)
    repeated = np.argwhere((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0))
    if len(repeated):
        row, column = repeated[0]
        raise InputError(f"row {row}: document {ranked[row, column]} stands twice in one ranking")
