"""Exact search over the vectors that a store holds: what its index is measured against."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.core.filters import conditions
from bakeoff.core.packed_rankings import PackedRankings
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.vector_rows import VectorRows, chosen_rows
from bakeoff.search import brute_force
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index

K = 10  # recall is over so many nearest documents
HELD = 1 << 21  # hits that are held at a time, 12 bytes each


@dataclass(slots=True)
class ExactRankings(ABC):
    """Exact search over what a store holds: done once for each query, compared with every store that holds the same."""

    index: Index
    queries: Mapping[str, Vectors]
    _rankings: PackedRankings = field(default_factory=PackedRankings, init=False)

    def rankings(self, queries: Sequence[Query]) -> Mapping[str, Ranking]:
        """The exact ranking of every query; those with the same filter in one go, and each only once."""
        groups: dict[str, list[Query]] = {}
        for query in queries:
            if query.id not in self._rankings:
                groups.setdefault(repr(query.where), []).append(query)
        for group in groups.values():
            self._search(group)
        return self._rankings

    def recall(self, query: Query, retrieved: Ranking) -> float:
        """Of the ten nearest documents, how many came back; one that ties with the tenth counts as retrieved."""
        nearest = self.rankings([query])[query.id]
        wanted = min(K, len(nearest))
        if not wanted:
            return 1.0
        returned = retrieved.ids[:K]
        scores = np.array([self._score(document, self.queries[query.id]) for document in returned])
        listed = np.isin(returned, nearest.ids[:wanted])
        return brute_force.recall(scores, nearest.scores[wanted - 1], wanted, listed)

    @abstractmethod
    def _search(self, group: Sequence[Query]) -> None:
        """Fills the rankings of queries that have the same filter."""

    @abstractmethod
    def _score(self, document: str, query: Vectors) -> float:
        """How near a document is, by its best chunk."""


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
            ids, vectors = [ids[row] for row in kept], chosen_rows(vectors, kept)
        waiting, size = list(group), max(self.index.fetch_size(excluding=query.excluded) for query in group)
        while waiting:
            unsettled = []
            for part in _parts(waiting, size):
                places, scores = self.nearest(np.stack([self.queries[query.id] for query in part]), vectors, size)
                for row, query in enumerate(part):
                    hits = Hits([ids[place] for place in places[row]], scores[row].tolist())
                    ranking = self.index.settled(hits, size, query.excluded)
                    if ranking is None:
                        unsettled.append(query)
                    else:
                        self._rankings.add(query.id, ranking)
            waiting, size = unsettled, min(len(self.index.ids), 2 * size)

    def _score(self, document: str, query: Vectors) -> float:
        return float((self.vectors[self.index.rows_of(document)] @ query).max())


def _parts(queries: Sequence[Query], size: int) -> Iterator[Sequence[Query]]:
    """As many queries at a time as have room for their hits; full products where there are many, as without parts."""
    count = max(1, HELD // size)
    count -= count % brute_force.QUERIES if count > brute_force.QUERIES else 0
    for start in range(0, len(queries), count):
        yield queries[start : start + count]
