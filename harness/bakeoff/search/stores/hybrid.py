"""Stores whose engine ranks by words and by vectors in one query, and fuses both itself."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable

from bakeoff.core.filters import Condition, Metadata, Where
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Store

POOL = 100  # how many of each ranking are fused, at least
C = 60  # a place counts 1 / (C + place), as in our own fusion


class HybridStore(Store):
    """Opened with `search` "hybrid" it keeps texts beside vectors; English stems, as our BM25 has by default.

    Both rankings are fused by reciprocal rank (RRF): scores say nothing but the order.
    """

    search_kinds = ("vectors", "hybrid")

    def add_texts(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str],
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """As `add`, with the words to search by."""
        units, fields = self._checked(ids, vectors, metadata)
        if len(ids):
            with self._failures_as_unavailable():
                self._add_texts(ids, units, fields, texts)

    def search_hybrid(self, text: str, vector: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k best by both, of those that pass the filter; a text without a known word leaves the vectors' order."""
        vector = self._checked_query(vector)
        try:
            return self._search_hybrid(text, vector, k, self._conditions(where) if where else ())
        except self.failures as error:
            raise Unavailable(f"{self.name}: {error}") from error

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        self._add_texts(ids, vectors, metadata, [""] * len(ids))

    @abstractmethod
    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        """As `_add`; texts are empty where the store was opened for vectors alone."""

    @abstractmethod
    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Any text, a unit vector, checked conditions."""


class WordWeights:
    """A text as a sparse vector, for engines that take no text: stems with BM25's weights, all but the rarity.

    The engine multiplies by rarity, which only it knows. The average length is assumed, as Qdrant's own model does.
    """

    K1, B, AVERAGE = 1.2, 0.75, 256

    @cached_property
    def _tools(self) -> tuple[Any, Any]:
        import bm25s
        import Stemmer

        return bm25s, Stemmer.Stemmer("english")

    def of_documents(self, texts: Sequence[str]) -> list[tuple[list[int], list[float]]]:
        """Numbers of stems, and how much each counts."""
        return [self._weighted(Counter(words)) for words in self._words(texts)]

    def of_query(self, text: str) -> tuple[list[int], list[float]]:
        """Each stem once."""
        stems = sorted({_number(word) for word in self._words([text])[0]})
        return stems, [1.0] * len(stems)

    def _weighted(self, counts: Counter[str]) -> tuple[list[int], list[float]]:
        length = 1 - self.B + self.B * counts.total() / self.AVERAGE
        weights: dict[int, float] = {}
        for word, count in counts.items():
            weights[_number(word)] = count * (self.K1 + 1) / (count + self.K1 * length)
        return list(weights), list(weights.values())

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        bm25s, stemmer = self._tools
        words: list[list[str]] = bm25s.tokenize(
            list(texts), stopwords="english", stemmer=stemmer, return_ids=False, show_progress=False
        )
        return words


def _number(word: str) -> int:
    return zlib.crc32(word.encode())
