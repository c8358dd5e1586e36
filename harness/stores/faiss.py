"""FAISS in this process, exact by default; other indexes by their index_factory string."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.stores.base import Hits, Store
from providers.base import Vectors
from providers.errors import InputError


class Faiss(Store):
    """Inner product over unit vectors, which is cosine. One thread: two make a single query slower, not faster."""

    name = "faiss"
    modules = ("faiss",)

    def __init__(self, *, dimensions: int, folder: Path, index: str = "Flat") -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import faiss

        faiss.omp_set_num_threads(1)
        try:
            self._index = faiss.index_factory(dimensions, index, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"faiss does not know the index {index!r} ({reason})", remedy="try 'Flat'") from None
        self.exact = index == "Flat"
        self._ids: list[str] = []

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Trains the index first, where its kind wants that."""
        if not self._index.is_trained:
            self._index.train(vectors)
        self._index.add(vectors)
        self._ids += ids

    def search(self, vector: Vectors, k: int) -> Hits:
        """FAISS pads with −1 where an approximate index finds fewer than k."""
        scores, places = self._index.search(vector[None], min(k, len(self._ids)))
        found = [
            (self._ids[place], score) for place, score in zip(places[0], scores[0].tolist(), strict=True) if place >= 0
        ]
        return Hits([item for item, _ in found], [score for _, score in found])

    def size_bytes(self) -> int:
        """The index as FAISS would write it to disk."""
        import faiss

        return int(faiss.serialize_index(self._index).nbytes)
