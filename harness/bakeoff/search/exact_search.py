"""Exact search over the vectors that a store holds: what its index is measured against."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.core.filters import conditions, passes
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.vector_rows import VectorRows, chosen_rows
from bakeoff.search import brute_force
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index

K = 10  # recall is over so many nearest documents


@dataclass(slots=True)
class ExactRankings(ABC):
    """Exact search over what a store holds: done once for each query, compared with every store that holds the same."""

    index: Index
    queries: Mapping[str, Vectors]
    _rankings: dict[str, Ranking] = field(default_factory=dict, init=False)

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
            kept = np.array([row for row in range(len(ids)) if passes(self.index.fields(row), filters)], dtype=np.intp)
            ids, vectors = [ids[row] for row in kept], chosen_rows(vectors, kept)
        asked = np.stack([self.queries[query.id] for query in group])

        def hits(places: brute_force.Rows, scores: brute_force.Similarities) -> Hits:
            return Hits([ids[place] for place in places], scores.tolist())

        def more(row: int, k: int) -> Hits:
            places, scores = self.nearest(asked[row : row + 1], vectors, k)
            return hits(places[0], scores[0])

        size = max(self.index.fetch_size(excluding=query.excluded) for query in group)
        places, scores = self.nearest(asked, vectors, size)
        for row, query in enumerate(group):
            first = hits(places[row], scores[row])
            self._rankings[query.id] = self.index.ranking(first, partial(more, row), query.excluded)

    def _score(self, document: str, query: Vectors) -> float:
        return float((self.vectors[self.index.rows_of(document)] @ query).max())
