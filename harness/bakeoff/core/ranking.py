"""The order of every ranking: score descending, then id ascending. Stores and files never decide ties.

A run has the rankings of many queries in a few arrays.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from struct import Struct
from typing import Any

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Wanted = Sequence[Collection[str]]  # ids, ranking by ranking


@dataclass(frozen=True, slots=True)
class Ranking:
    """A contender's answer to one query: ids with scores, best first.

    `matched` is set if the ranking was filled up: later places hold documents that matched nothing, by id.
    """

    ids: tuple[str, ...]
    scores: tuple[float, ...]
    matched: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, depth: int) -> Ranking:
        """The first `depth` places."""
        return Ranking(self.ids[:depth], self.scores[:depth], self.matched)

    @property
    def found(self) -> tuple[str, ...]:
        """The ids that matched. Fusions, pools and counts of unjudged documents use only these."""
        return self.ids[: self.matched]

    def fill(self, documents: Iterable[str], depth: int) -> Ranking:
        """Fills the ranking up to `depth` with these documents in their order, scored below all others: 0 or less."""
        present = set(self.ids)
        rest = tuple(islice((document for document in documents if document not in present), depth - len(self)))
        floor = self.scores[-1] - 1.0 if self.scores and self.scores[-1] < 0 else 0.0
        return Ranking(self.ids + rest, self.scores + (floor,) * len(rest), len(self))


def make_ranking(pairs: Iterable[tuple[str, float]], depth: int | None = None) -> Ranking:
    """Orders (id, score) pairs. NaN and duplicate ids are errors, never silently dropped."""
    rows = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    seen: set[str] = set()
    for item, score in rows:
        if math.isnan(score):
            raise InputError(f"the score of {item!r} is NaN")
        if item in seen:
            raise InputError(f"{item!r} appears twice in one ranking")
        seen.add(item)
    kept = rows if depth is None else rows[:depth]
    return Ranking(tuple(item for item, _ in kept), tuple(float(score) for _, score in kept))


class Run(Mapping[str, Ranking]):
    """Rankings by query id. Their lines, one per document, stand end to end in arrays.

    Ranking n has the lines from `ends[n]` to `ends[n + 1]`. `matched` is −1 if it was not filled up.
    """

    def __init__(self, queries: Iterable[str] = (), ends: Iterable[int] = (0,)) -> None:
        self.rows = {query: row for row, query in enumerate(queries)}
        self.ends, self.matched = array("q", ends), array("q", [-1]) * len(self.rows)

    @abstractmethod
    def places_of(self, rows: Numbers, wanted: Wanted, depth: int | None) -> Numbers:
        """Places (from 0) of the wanted documents in these rankings; past the end if a ranking lacks them.

        Row −1 is an empty ranking. Places from `depth` on may be wrong, but are not below it.
        """

    def __contains__(self, query: object) -> bool:
        return query in self.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class RankedRun(Run):
    """Lines in the order of their rankings, with documents as codes and scores in full precision."""

    def __init__(self) -> None:
        super().__init__()
        self.documents, self.scores = array("i"), array("d")
        self._codes: dict[str, int] = {}
        self._names: list[str] = []  # by code; made when a ranking is read

    def add(self, query: str, ranking: Ranking) -> None:
        """Adds the ranking of another query."""
        if len(set(ranking.ids)) < len(ranking):
            twice = next(item for item, count in Counter(ranking.ids).items() if count > 1)
            raise InputError(f"query {query!r}: {twice!r} appears twice in one ranking")
        codes, self.rows[query] = self._codes, len(self.ends) - 1
        self.documents.extend([codes.setdefault(document, len(codes)) for document in ranking.ids])
        self.scores.extend(ranking.scores)
        self.ends.append(len(self.documents))
        self.matched.append(-1 if ranking.matched is None else ranking.matched)

    def places_of(self, rows: Numbers, wanted: Wanted, depth: int | None) -> Numbers:
        """Uses a table of lines by code, which is rewritten for each ranking."""
        codes = np.fromiter(map(self._codes.get, chain.from_iterable(wanted), repeat(-1)), np.int64)
        lines = np.full(len(self._codes) + 1, -1)  # by code; the last is for unknown ids
        places, documents, first = np.empty_like(codes), np.asarray(self.documents), 0
        for row, ids in zip(rows.tolist(), wanted, strict=True):
            start, stop, last = self.ends[row], self.ends[row + 1], first + len(ids)
            lines[documents[start:stop][:depth]] = np.arange(start, stop)[:depth]
            places[first:last] = lines[codes[first:last]] - start
            first = last
        return places

    def __getitem__(self, query: str) -> Ranking:
        if len(self._names) < len(self._codes):
            self._names = list(self._codes)
        row = self.rows[query]
        part, matched = slice(self.ends[row], self.ends[row + 1]), self.matched[row]
        ids = tuple(map(self._names.__getitem__, self.documents[part]))
        return Ranking(ids, tuple(self.scores[part]), None if matched < 0 else matched)


def run_of(rankings: Mapping[str, Ranking], queries: Iterable[str]) -> Run:
    """The rankings of these queries, if any. A run is returned unchanged."""
    if isinstance(rankings, Run):
        return rankings
    run = RankedRun()
    for query in dict.fromkeys(queries):
        if query in rankings:
            run.add(query, rankings[query])
    return run


class ScoredRun(Run):
    """Lines in any order, ranked as trec_eval does: by score in the precision given, then by descending id.

    `scores_of` has the scores of the wanted documents, NaN if a ranking lacks them. `ids_of` has the documents of some
    lines of one ranking. Only places that are asked for are computed, and ids are compared only if scores tie.
    """

    def __init__(
        self,
        queries: Iterable[str],
        ends: Numbers,
        scores: Floats,
        scores_of: Callable[[Numbers, Wanted], Floats],
        ids_of: Callable[[Numbers], Sequence[str]],
    ) -> None:
        super().__init__(queries, ends.tolist())
        self.scores, self._scores_of, self.ids_of = scores, scores_of, ids_of

    @classmethod
    def of(cls, run: Mapping[str, Mapping[str, float]], precision: type[np.floating[Any]] = np.float64) -> ScoredRun:
        """Scores by query and document. Ids stay in their tables, since touching one costs a cache miss."""
        tables = [*run.values(), {}]  # the last is row −1
        # struct reads floats in half the time that numpy needs
        packed = b"".join(Struct(f"{len(table)}d").pack(*table.values()) for table in tables)
        scores, ends = np.frombuffer(packed).astype(precision, copy=False), np.cumsum([0, *map(len, run.values())])

        def scores_of(rows: Numbers, wanted: Wanted) -> Floats:
            asked = zip(rows.tolist(), wanted, strict=True)
            return np.array([tables[row].get(name, math.nan) for row, ids in asked for name in ids], dtype=precision)

        def ids_of(lines: Numbers) -> list[str]:
            row = int(np.searchsorted(ends, lines[0], "right")) - 1
            places = (lines - ends[row]).tolist()
            names = list(islice(tables[row], places[-1] + 1))
            return [names[place] for place in places]

        if np.isnan(scores).any():
            wrong = np.flatnonzero(np.isnan(scores))[:1]
            query = list(run)[int(np.searchsorted(ends, wrong[0], "right")) - 1]
            raise InputError(f"query {query!r}: the score of {ids_of(wrong)[0]!r} is NaN")
        return cls(run, ends, scores, scores_of, ids_of)

    def places_of(self, rows: Numbers, wanted: Wanted, depth: int | None) -> Numbers:
        """A place is the number of better scores."""
        mine, ends = self._scores_of(rows, wanted), np.array(self.ends)
        places, kept = np.full(len(mine), -1), np.flatnonzero(~np.isnan(mine))
        mine, owners = mine[kept], np.repeat(rows, [len(ids) for ids in wanted])[kept]
        first, last, ordered = ends[owners], ends[owners + 1], _best_first(self.scores, ends)
        better = _search(ordered, first, last, mine, np.greater)
        equals = _search(ordered, better, last, mine, np.greater_equal) - better
        places[kept] = better - first
        tied = np.flatnonzero((equals > 1) & (better - first < (depth or len(ordered))))
        names = list(chain.from_iterable(wanted)) if len(tied) else []
        for at in tied.tolist():
            equal = first[at] + np.flatnonzero(self.scores[first[at] : last[at]] == mine[at])
            places[kept[at]] += sorted(self.ids_of(equal), reverse=True).index(names[kept[at]])
        return places

    def __getitem__(self, query: str) -> Ranking:
        lines = np.arange(self.ends[self.rows[query]], self.ends[self.rows[query] + 1])
        ids = self.ids_of(lines) if len(lines) else ()
        pairs = sorted(zip(self.scores[lines].tolist(), ids, strict=True), reverse=True)
        return Ranking(tuple(name for _, name in pairs), tuple(score for score, _ in pairs))


def _best_first(scores: Floats, ends: Numbers) -> Floats:
    """Every ranking's scores, descending. Most runs are already sorted."""
    rises = np.flatnonzero(scores[1:] > scores[:-1]) + 1
    rows = np.searchsorted(ends, rises, "right") - 1
    unsorted = np.unique(rows[rises != ends[rows]])  # a ranking may begin above the end of the previous one
    if not len(unsorted):
        return scores
    ordered = scores.copy()
    for row in unsorted.tolist():
        ordered[ends[row] : ends[row + 1]][::-1].sort()
    return ordered


def _search(ordered: Floats, low: Numbers, high: Numbers, values: Floats, above: Callable[..., Any]) -> Numbers:
    """For each value, the first line within its bounds whose score is not above it. One search for all."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        better = open_ & above(ordered[np.minimum(middle, len(ordered) - 1)], values)
        low = np.where(better, middle + 1, low)
        high = np.where(open_ & ~better, middle, high)
    return low
