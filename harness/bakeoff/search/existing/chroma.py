"""A Chroma folder or server that exists."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.search.existing.base import BLOCK, Existing, ExistingIndex, field_of, is_url, known, path_of
from bakeoff.search.hits import Hits
from bakeoff.search.stores.chroma import URL, server_client
from bakeoff.search.stores.scratch import scratch
from bakeoff.search.stores.servers import server_url


class ExistingChroma(ExistingIndex):
    """`existing` is its folder or URL (token: CHROMA_API_KEY); the collection says by which distance it compares.

    Chroma rewrites its index files when a folder is merely queried, so a copy of the folder is opened.
    """

    name: ClassVar[str] = "chroma"
    modules: ClassVar[tuple[str, ...]] = ("chromadb",)

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        self._resources = contextlib.ExitStack()
        try:
            self._client = self._connected()
            self._resources.callback(self._client.close)
            self._open()
        except BaseException:
            self.close()
            raise

    def _connected(self) -> Any:
        if is_url(self.existing):
            return server_client(server_url(self.existing, URL))
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False, migrations="validate")
        copy = self._resources.enter_context(scratch("chroma")) / "copy"
        shutil.copytree(path_of(self.existing), copy)
        return chromadb.PersistentClient(str(copy), settings=settings)

    def _open(self) -> None:
        names = [str(getattr(collection, "name", collection)) for collection in self._client.list_collections()]
        chosen = known(self.collection, names, "collection", "collection")
        self._collection = self._client.get_collection(chosen, embedding_function=None)
        self._fields = self.id.split(".")[1:] if self.id.startswith("metadata.") else []
        self.entries = int(self._collection.count())
        sample = self._collection.peek(1)["embeddings"] if self.entries else np.zeros((0, 0))
        self.dimensions = int(np.asarray(sample).shape[1])

    def search(self, vector: Vectors, k: int) -> Hits:
        """Distances of any space are smaller when nearer."""
        include = ["distances", "metadatas"] if self._fields else ["distances"]
        answer = self._collection.query(query_embeddings=vector[None], n_results=min(k, self.entries), include=include)
        metadata = answer["metadatas"][0] if self._fields else None
        return Hits(self._names(answer["ids"][0], metadata), [-float(value) for value in answer["distances"][0]])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """In the order of the collection."""
        for start in range(0, self.entries, size):
            rows = self._collection.get(limit=size, offset=start, include=["embeddings", "metadatas"])
            yield self._names(rows["ids"], rows["metadatas"]), np.asarray(rows["embeddings"], dtype=np.float32)

    def documents(self) -> set[str]:
        """Without the vectors."""
        rows = self._collection.get(include=["metadatas"] if self._fields else [])
        return set(self._names(rows["ids"], rows["metadatas"]))

    def close(self) -> None:
        """Stops the system that Chroma keeps for each path."""
        self._resources.close()

    def _names(self, ids: list[str], metadata: Any) -> list[str]:
        if not self._fields:
            return [self._document(item) for item in ids]
        return [self._document(field_of(entry, self._fields)) for entry in metadata]
