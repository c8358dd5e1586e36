"""Hybrid search in one store, which fuses vectors and words itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bakeoff.core.clock import time_call
from bakeoff.core.progress import steps
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.search.answer import Answer
from bakeoff.search.exact_search import ExactRankings
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import HybridStore
from bakeoff.systems.dense import Dense, DenseSearcher

HYBRID = "hybrid"


@dataclass(frozen=True)
class Hybrid(Dense):
    """Like Dense, but the store also indexes the texts and ranks by both."""

    row_type: ClassVar[str] = HYBRID
    opens_with: ClassVar[dict[str, str]] = {"search": HYBRID}

    @property
    def searcher_type(self) -> type[DenseSearcher]:
        """The class that also adds and queries texts."""
        return HybridSearcher

    def settings(self) -> dict[str, Any]:
        """The settings as in a line-up."""
        return {**super().settings(), "search": HYBRID}


@dataclass(slots=True)
class HybridSearcher(DenseSearcher):
    """Hybrid search in the store. It has no exact reference."""

    store: HybridStore

    def fill(self, vectors: VectorRows) -> int:
        """Add all chunks with their texts."""
        count = len(vectors)
        if count > BLOCK:
            self.store.expect(count, lambda drawn: vectors[np.linspace(0, count - 1, drawn).astype(np.int64)])
        nanoseconds, has_fields = 0, bool(self.index.metadata)
        with steps(f"{self.store.name}: adding", count) as advance:
            for start, block in vectors.blocks():
                ids = self.index.ids[start : start + len(block)]
                metadata = [self.index.fields(row) for row in range(start, start + len(block))] if has_fields else None
                texts = [chunk.text for chunk in self.index.chunks[start : start + len(block)]]
                nanoseconds += time_call(partial(self.store.add_texts, ids, block, texts, metadata))[1]
                advance(len(block))
        return nanoseconds

    def ask(self, query: Query) -> Answer:
        """Embed, then rank by the store's own fusion."""
        found = self._vector(query)
        vector, text = self.variant.queries(found.vector[None])[0], self.index.texts.get(query.item, query.text)

        def search(k: int) -> Hits:
            return self.store.search_hybrid(text, vector, k, query.where)

        size = self.index.fetch_size(excluding=query.excluded)
        hits, search_ns = time_call(lambda: search(size))
        ranking = self.index.ranking(hits, search, query.excluded)
        return self._answer(query, ranking, search_ns, found)

    @property
    def exact(self) -> bool:
        """False: vectors alone do not determine a fused ranking."""
        return False

    def exact_search(self) -> ExactRankings | None:
        """None: a fused ranking has no exact reference."""
        return None

    def short_lists(self, queries: Sequence[Query], rankings: Mapping[str, Ranking]) -> int:
        """None: the vectors alone fill every list."""
        return sum(len(rankings[query.id]) < self.index.full_length(query) for query in queries)
