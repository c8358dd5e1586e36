"""Chroma embedded and persistent, set to cosine: its default space is squared L2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.stores.base import Hits, Store
from providers.base import Vectors


class Chroma(Store):
    """An HNSW index, so not exact; with its default list sizes it loses nothing on a few thousand documents."""

    name = "chroma"
    modules = ("chromadb",)
    exact = False

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        ef_search: int = 100,
        ef_construction: int = 100,
        max_neighbors: int = 16,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self._ef_search = ef_search
        self._collection = self._client.create_collection(
            "bakeoff",
            embedding_function=None,  # the default one would download a model
            configuration={
                "hnsw": {
                    "space": "cosine",
                    "ef_search": ef_search,
                    "ef_construction": ef_construction,
                    "max_neighbors": max_neighbors,
                }
            },
        )

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """In batches that Chroma takes; upsert, because its add ignores an id that it knows."""
        step = self._client.get_max_batch_size()
        for start in range(0, len(ids), step):
            self._collection.upsert(ids=list(ids[start : start + step]), embeddings=vectors[start : start + step])

    def search(self, vector: Vectors, k: int) -> Hits:
        """Chroma answers distances, 1 − cosine."""
        answer = self._collection.query(query_embeddings=vector[None], n_results=k, include=["distances"])
        return Hits(answer["ids"][0], [1.0 - distance for distance in answer["distances"][0]])

    def close(self) -> None:
        """Stops the system that Chroma keeps for each path."""
        self._client.close()
