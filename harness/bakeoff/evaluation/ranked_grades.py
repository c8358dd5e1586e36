"""Rankings joined to judgments: the grade of every place of every ranking, as arrays."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from math import nan
from struct import Struct
from typing import Any, Literal

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Grades, Values
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Judgments
from bakeoff.evaluation.validity import StalePlaces

POOLED = -1  # in qrels: pooled but not judged; only infAP tells it from unjudged
NO_DOCUMENT = -2
UNJUDGED = -3
NOTHING: Mapping[str, int] = {}
NO_ANSWER = Ranking((), ())
BLOCK = 64  # queries whose scores fit the processor's cache

Ties = Literal["id_ascending", "trec", "trec_single"]


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
    """Joins ordered rankings. Queries missing from the run become empty rows, which score 0."""
    returned, known = np.zeros(len(query_ids), dtype=np.int32), array("i")
    found = returned.copy()
    for row, query in enumerate(query_ids):
        ranking = rankings.get(query, NO_ANSWER)
        ids, found[row] = ranking.ids, len(ranking.found[:depth])
        if len(set(ids)) < len(ids):
            twice = next(item for item, count in Counter(ids).items() if count > 1)
            raise InputError(f"query {query!r}: {twice!r} appears twice in one ranking")
        returned[row] = len(ids[:depth])
        known.extend(map(judgments.get(query, NOTHING).get, ids[:depth], repeat(UNJUDGED)))
    grades = blank_grades(returned)
    grades[np.arange(grades.shape[1]) < returned[:, None]] = np.frombuffer(known, dtype=np.int32)
    return RankedGrades(grades, returned, ideal_grades(judgments, query_ids), depth, found)


def join_scores(
    run: Mapping[str, Mapping[str, float]],
    judgments: Judgments,
    query_ids: Sequence[str],
    depth: int | None = None,
    ties: Ties = "id_ascending",
) -> RankedGrades:
    """Joins unordered scores. Only the places of judged documents are computed.

    `ties="trec"` orders equal scores by descending id, as trec_eval 10 does. `trec_single` compares in single
    precision, as earlier versions and pytrec_eval do, so that more scores tie.
    """
    answers = [run.get(query, {}) for query in query_ids]
    judged = [judgments.get(query, {}) for query in query_ids]
    returned = np.array([len(scores) for scores in answers], dtype=np.int32)
    if depth is not None:
        np.minimum(returned, depth, out=returned)
    grades = blank_grades(returned)
    for first in range(0, len(answers), BLOCK):
        rows = slice(first, first + BLOCK)
        values, mine = _read(answers[rows], judged[rows], query_ids[rows])
        _fill(grades[rows], values, mine, answers[rows], judged[rows], ties)
    return RankedGrades(grades, returned, ideal_grades(judgments, query_ids), depth)


def _read(
    answers: Sequence[Mapping[str, float]], judged: Sequence[Mapping[str, int]], query_ids: Sequence[str]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """All scores, one row per query, padded with −∞; and the judged documents' scores end to end, NaN if absent."""
    packed: list[bytes] = []
    judged_scores: list[float] = []
    for scores, grades in zip(answers, judged, strict=True):
        packed.append(_pack(scores.values()))
        judged_scores.extend(map(scores.get, grades, repeat(nan)))
    sizes = np.array([len(scores) for scores in answers])
    shape, values = (len(answers), int(sizes.max())), np.frombuffer(b"".join(packed))
    if sizes.min() < sizes.max():
        padded = np.full(shape, -np.inf)
        padded[np.arange(shape[1]) < sizes[:, None]] = values
        values = padded
    values = values.reshape(shape)
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        document = next(islice(answers[row], int(column), None))
        raise InputError(f"query {query_ids[row]!r}: the score of {document!r} is NaN")
    return values, np.frombuffer(_pack(judged_scores))


def _fill(
    grades: Grades,
    values: NDArray[Any],
    mine: NDArray[Any],
    answers: Sequence[Mapping[str, float]],
    judged: Sequence[Mapping[str, int]],
    ties: Ties,
) -> None:
    """Writes the judged documents' grades at their places: each place is the number of better scores."""
    depth = min(grades.shape[1], values.shape[1])
    if not depth:
        return
    precision = np.float32 if ties == "trec_single" else np.float64
    mine, top = mine.astype(precision), _best(values, depth).astype(precision)
    owner = np.repeat(np.arange(len(judged)), [len(graded) for graded in judged])
    inside = np.flatnonzero(mine >= top[owner, 0])
    rows = owner[inside]
    shelf, wanted = _by_row(np.arange(len(top))[:, None], top).ravel(), _by_row(rows, mine[inside])
    places = (rows + 1) * depth - np.searchsorted(shelf, wanted, "right")
    ends = (rows + 1) * depth - np.searchsorted(shelf, wanted, "left")
    # The worst score that made the cut may tie with scores that did not.
    tied = np.flatnonzero((ends - places > 1) | (mine[inside] == top[rows, 0]))
    documents = list(chain.from_iterable(judged)) if len(tied) else []
    groups: dict[tuple[int, int], list[str]] = {}
    columns = (column[tied].tolist() for column in (rows, places, inside))
    for at, row, place, index in zip(tied.tolist(), *columns, strict=True):
        if (row, place) not in groups:
            equal = values[row, : len(answers[row])].astype(precision, copy=False) == mine[index]
            groups[row, place] = sorted(_where(answers[row], equal), reverse=ties != "id_ascending")
        places[at] += groups[row, place].index(documents[index])
    given = np.fromiter(chain.from_iterable(graded.values() for graded in judged), np.int32, len(mine))
    fits = places < depth
    grades[rows[fits], places[fits]] = given[inside[fits]]


def _pack(values: Collection[float]) -> bytes:
    """Floats as bytes. struct reads them in half the time that numpy needs."""
    return Struct(f"{len(values)}d").pack(*values)


def _by_row(rows: NDArray[np.intp], scores: NDArray[Any]) -> NDArray[np.complex128]:
    """Complex keys sort by their real part first, so one search serves all rows."""
    keys = np.empty(scores.shape, dtype=np.complex128)
    keys.real, keys.imag = rows, scores
    return keys


def _best(values: NDArray[Any], depth: int) -> NDArray[Any]:
    """Each row's best scores, ascending. Most runs are already sorted."""
    if (values[:, 1:] <= values[:, :-1]).all():
        return values[:, depth - 1 :: -1]
    kept = np.partition(values, -depth, axis=1)[:, -depth:] if depth < values.shape[1] else values
    return np.sort(kept, axis=1)


def _where(scores: Mapping[str, float], chosen: NDArray[np.bool_]) -> list[str]:
    """The chosen ids. It stops at the last one, since touching an id costs a cache miss."""
    indices = chosen.nonzero()[0].tolist()
    names = list(islice(scores, indices[-1] + 1))
    return [names[index] for index in indices]


def join_arrays(
    documents: NDArray[np.integer[Any]],
    judged_query: NDArray[np.integer[Any]],
    judged_document: NDArray[np.integer[Any]],
    judged_grade: NDArray[np.integer[Any]],
    depth: int | None = None,
) -> RankedGrades:
    """Joins document indices (queries × places, −1 past a ranking's end) to (query, document, grade) triples."""
    if (
        judged_query.max(initial=-1) >= len(documents)
        or min(judged_query.min(initial=0), judged_document.min(initial=0)) < 0
    ):
        raise ValueError("a judgment's index is out of range")
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
    # One cell per document, filled for one query at a time. Padding (−1) reads the last cell.
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


def ideal_grades(judgments: Judgments, query_ids: Sequence[str]) -> Grades:
    """All judged grades of each query, best first: the source of NDCG's ideal and of the relevant count."""
    return _ideal(*_flat([judgments.get(query, {}) for query in query_ids]))


def _flat(judged: Sequence[Mapping[str, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of grades per query, and all grades in one array."""
    counts = np.array([len(grades) for grades in judged], dtype=np.int64)
    return counts, np.fromiter(chain.from_iterable(g.values() for g in judged), np.int64, int(counts.sum()))


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


def blank_grades(returned: Grades) -> Grades:
    """As many unjudged places as documents were returned."""
    width = int(returned.max(initial=0))
    return np.where(np.arange(width) < returned[:, None], np.int32(UNJUDGED), np.int32(NO_DOCUMENT))


def _refuse_repeated(documents: NDArray[np.integer[Any]]) -> None:
    ranked = np.sort(documents, axis=1)
    repeated = np.argwhere((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0))
    if len(repeated):
        row, column = repeated[0]
        raise InputError(f"row {row}: document {ranked[row, column]} appears twice in one ranking")


Lines = NDArray[np.int64]
_Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class RunTable:
    """The lines of a run by query: `starts` bounds the lines of each, `scores` has one entry per line.

    `lines_of` returns the line of each (query's place, document), −1 if there is none. `ids` returns the documents of
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
        """The grade at each judged document's place: its place is the number of better scores of its query."""
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
        """The place of each of these lines in its query's ranking. Ids are compared only if scores tie."""
        scores: _Floats = self.scores.astype(np.float32) if ties == "trec_single" else self.scores
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


def _best_first(scores: _Floats, starts: Lines) -> _Floats:
    """Every query's scores, descending. Most runs are already sorted."""
    rises = np.flatnonzero(scores[1:] > scores[:-1]) + 1
    queries = np.searchsorted(starts, rises, "right") - 1
    unsorted = np.unique(queries[rises != starts[queries]])  # a query may begin above the end of the previous one
    if not len(unsorted):
        return scores
    ordered = scores.copy()
    for query in unsorted.tolist():
        ordered[starts[query] : starts[query + 1]][::-1].sort()
    return ordered


def _first_at_most(ordered: _Floats, low: Lines, high: Lines, values: _Floats) -> Lines:
    """For each value, the first place within its bounds whose score is not above it. One search for all."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        above = open_ & (ordered[np.minimum(middle, len(ordered) - 1)] > values)
        low = np.where(above, middle + 1, low)
        high = np.where(open_ & ~above, middle, high)
    return low
