"""Stores with native hybrid search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable

from bakeoff.core.filters import Condition, Metadata, Where
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Store

POOL = 100  # fewest candidates of each ranking to fuse
C = 60  # a place counts 1 / (C + place), as in our own fusion


class HybridStore(Store):
    """With `search = "hybrid"` it also stores texts, with English stemming like our BM25 by default.

    Both rankings are fused by RRF, so scores are only meaningful for ordering.
    """

    search_kinds = ("vectors", "hybrid")

    def add_texts(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str],
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Like `add`, with texts."""
        units, fields = self._check_rows(ids, vectors, metadata)
        if len(ids):
            with self._failures_as_unavailable():
                self._add_texts(ids, units, fields, texts)

    def search_hybrid(self, text: str, vector: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k best that pass the filter. A text without known words leaves the vectors' order."""
        vector = self._check_query(vector)
        try:
            return self._search_hybrid(text, vector, k, self._conditions(where) if where else ()).read(k)
        except self.failures as error:
            raise Unavailable(f"{self.name}: {error}") from error

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        self._add_texts(ids, vectors, metadata, [""] * len(ids))

    @abstractmethod
    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        """Like `_add`; texts are empty if the store was opened for vectors only."""

    @abstractmethod
    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Any text, a unit vector, checked conditions."""
