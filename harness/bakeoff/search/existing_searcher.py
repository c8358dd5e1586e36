"""An index that exists as something that can be asked: only the query is embedded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import StoreError

from bakeoff.core.clock import timed
from bakeoff.core.filters import conditions, passes
from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Query
from bakeoff.search.existing.base import ExistingIndex
from bakeoff.search.hits import Hits
from bakeoff.search.searchers import Answer, EmbeddingSearcher


@dataclass(slots=True)
class ExistingSearcher(EmbeddingSearcher):
    """Documents by their best entry; those that the task lacks have no place in the ranking."""

    existing: ExistingIndex
    depth: int

    def ask(self, query: Query) -> Answer:
        """Asks for more entries while chunks of the same documents, or foreign ones, keep the list short.

        The time is that of the search which was enough: an application would know how far to look.
        """
        found = self._vector(query)
        vector = found.vector
        if vector.shape[-1] != self.existing.dimensions:
            raise StoreError(f"the index has {self.existing.dimensions} dimensions, the query {vector.shape[-1]}")
        size = min(self.existing.entries, self.depth + 1)
        while True:
            hits, search_ns = self._search(vector, size)
            ranking = self._ranking(hits, query)
            if len(ranking) == self.depth or size >= self.existing.entries or len(hits.ids) < size:
                return self._answer(query, ranking, search_ns, found)
            size = min(self.existing.entries, 2 * size)

    def close(self) -> None:
        """The index is left as it was."""
        self.existing.close()

    def _search(self, vector: Vectors, size: int) -> tuple[Hits, int]:
        return timed(lambda: self.existing.search(vector, size))

    def _ranking(self, hits: Hits, query: Query) -> Ranking:
        filters = conditions(query.where) if query.where else ()
        best: dict[str, float] = {}
        known = self.index.known(hits.ids)
        for document, score in zip(hits.ids, hits.scores, strict=True):
            if np.isnan(score):
                raise StoreError(f"the index answered NaN as the score of {document!r}")
            if document not in known or document == query.excluded:
                continue
            if not filters or passes(self.index.metadata.get(document, {}), filters):
                best[document] = max(score, best.get(document, score))
        return ordered(best.items(), self.depth)
