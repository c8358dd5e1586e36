"""BM25 by bm25s, with English stop words and a stemmer where one is installed."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rankers.base import Ranker
from harness.stores.base import Hits


class BM25(Ranker):
    """Lucene's variant with its constants as bm25s publishes them, so that its figures can be compared."""

    name = "bm25"
    modules = ("bm25s",)

    def __init__(self, *, k1: float = 1.5, b: float = 0.75) -> None:
        import bm25s

        self._bm25s = bm25s
        self._index = bm25s.BM25(method="lucene", k1=k1, b=b)
        self._ids: list[str] = []

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Builds the whole index at once: BM25's weights depend on all texts."""
        self._ids = list(ids)
        self._index.index(self._tokens(texts), show_progress=False)

    def search(self, text: str, k: int) -> Hits:
        """Drops scores of 0: bm25s fills up with arbitrary ids when too few share a word with the query."""
        places, scores = self._index.retrieve(
            self._tokens([text]), k=min(k, len(self._ids)), show_progress=False, n_threads=0
        )
        found = [
            (self._ids[place], float(score)) for place, score in zip(places[0], scores[0], strict=True) if score > 0
        ]
        return Hits([item for item, _ in found], [score for _, score in found])

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        tokens: list[list[str]] = self._bm25s.tokenize(
            list(texts), stopwords="en", return_ids=False, show_progress=False
        )
        return tokens
