"""Exact search over a store's vectors, the reference for its index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.core.filters import conditions
from bakeoff.core.ranking import RankedRun, Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.vector_rows import VectorRows, select_rows
from bakeoff.search import brute_force
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index
from bakeoff.search.stores.base import UNIT

K = 10  # cut-off of recall
HELD = 1 << 21  # hits in memory, 12 bytes each
WORK = 1 << 32  # multiplications to spend on checking an exact store: a quarter of a second
FEWEST, MOST = 32, 1000  # fewest queries to check it on

T = TypeVar("T")


def sample(queries: Sequence[T], multiplications: int, depth: int) -> Sequence[T]:
    """The queries on which an exact store is checked; all of them if that is cheap.

    `multiplications` is the cost of one query, `depth` the length of its ranking.
    """
    most = max(FEWEST, min(MOST, WORK // max(1, multiplications), HELD // max(1, depth)))
    return queries[:: -(-len(queries) // most) or 1]


class Nearness(NamedTuple):
    """Recall of the ten nearest documents, and the error of the returned scores."""

    recall: float
    score_error: float


@dataclass(slots=True)
class ExactRankings(ABC):
    """Exact rankings, computed once per query and shared by all stores that hold the same vectors.

    `queries` are the query vectors that the store got; a sample of them for an exact store.
    """

    index: Index
    queries: dict[str, Vectors]
    _rankings: RankedRun = field(default_factory=RankedRun, init=False)

    def rankings(self, queries: Sequence[Query]) -> Mapping[str, Ranking]:
        """The exact ranking of every query, computed once; queries with the same filter share a search."""
        groups: dict[str, list[Query]] = {}
        for query in queries:
            if query.id not in self._rankings:
                groups.setdefault(repr(query.where), []).append(query)
        for group in groups.values():
            self._search(group)
        return self._rankings

    def nearness(self, query: Query, retrieved: Ranking) -> Nearness:
        """A document that ties with the tenth counts as returned."""
        nearest = self.rankings([query])[query.id]
        wanted = min(K, len(nearest))
        returned = retrieved.ids[:K]
        if not wanted or not returned:
            return Nearness(0.0 if wanted else 1.0, 0.0)
        scores = np.array([self.score(document, query) for document in returned])
        listed = np.isin(returned, nearest.ids[:wanted])
        return Nearness(
            brute_force.recall(scores, nearest.scores[wanted - 1], wanted, listed),
            float(np.abs(scores - retrieved.scores[:K]).max()),
        )

    @abstractmethod
    def _search(self, group: Sequence[Query]) -> None:
        """Fills the rankings of queries that have the same filter."""

    @property
    @abstractmethod
    def tolerance(self) -> float:
        """The largest difference between two scores that are both correct in float32."""

    @abstractmethod
    def score(self, document: str, query: Query) -> float:
        """How near a document is, by its chunks."""


@dataclass(slots=True)
class ExactSearch(ExactRankings):
    """One vector for each chunk, by inner product."""

    vectors: Vectors | VectorRows
    nearest: brute_force.Nearest = brute_force.nearest

    def _search(self, group: Sequence[Query]) -> None:
        filters = conditions(group[0].where)
        ids, vectors = self.index.ids, self.vectors
        if filters:
            kept = self.index.passing(filters).astype(np.intp)
            ids, vectors = [ids[row] for row in kept], select_rows(vectors, kept)
        waiting, size = list(group), max(self.index.fetch_size(excluding=query.excluded) for query in group)
        while waiting:
            unsettled = []
            for part in _parts(waiting, size):
                places, scores = self.nearest(np.stack([self.queries[query.id] for query in part]), vectors, size)
                for row, query in enumerate(part):
                    hits = Hits([ids[place] for place in places[row]], scores[row].tolist())
                    ranking = self.index.settle(hits, size, query.excluded)
                    if ranking is None:
                        unsettled.append(query)
                    else:
                        self._rankings.add(query.id, ranking)
            waiting, size = unsettled, min(len(self.index.ids), 2 * size)

    @property
    def tolerance(self) -> float:
        """That of a cosine, once per chunk where chunks are summed."""
        chunks = max(Counter(self.index.owners).values()) if self.index.parents == "sum" else 1
        return chunks * cosine_tolerance(self.vectors.shape[1])

    def score(self, document: str, query: Query) -> float:
        """The score by the document's own vectors."""
        return self.index.document_score(self.vectors[self.index.rows_of(document)] @ self.queries[query.id])


def cosine_tolerance(dimensions: int) -> float:
    """The largest difference between two correctly computed cosines.

    A float32 inner product of unit vectors is off by at most d · 2⁻²⁴, in whatever order it is summed (Higham 2002,
    section 3.1); one side may also divide by lengths that the other takes for 1, and scores are rounded.
    """
    return dimensions * 2.0**-23 + UNIT + brute_force.TOLERANCE


def _parts(queries: Sequence[Query], size: int) -> Iterator[Sequence[Query]]:
    """Batches of queries, sized by the memory of their hits."""
    count = max(1, HELD // size)
    count -= count % brute_force.QUERIES if count > brute_force.QUERIES else 0
    for start in range(0, len(queries), count):
        yield queries[start : start + count]
