"""A Qdrant collection that exists: on a server, or in a folder of qdrant-client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.keys import key_in

from bakeoff.search.existing.base import BLOCK, Existing, ExistingIndex, field_of, is_url, known, path_of
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.servers import server_url

SMALLER_IS_NEARER = ("Euclid", "Manhattan")


class ExistingQdrant(ExistingIndex):
    """`id` is the point's own id, or "payload.key"; `vector` names one of several. A server's key is QDRANT_API_KEY."""

    name: ClassVar[str] = "qdrant"
    extra: ClassVar[str | None] = "qdrant"
    modules: ClassVar[tuple[str, ...]] = ("qdrant_client",)

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        from qdrant_client import QdrantClient

        if is_url(existing):
            key = key_in("QDRANT_API_KEY") or None
            self._client = QdrantClient(
                url=server_url(existing, "QDRANT_URL"),
                api_key=key,
                check_compatibility=False,
                timeout=servers.ANSWER,
            )
        else:
            self._client = QdrantClient(path=str(path_of(existing)))
        names = [collection.name for collection in self._client.get_collections().collections]
        self._name = known(self.collection, names, "collection", "collection")
        info = self._client.get_collection(self._name)
        vectors = info.config.params.vectors
        if isinstance(vectors, dict):
            self.vector = known(self.vector, list(vectors), "vector", "vector")
            vectors = vectors[self.vector]
        self.dimensions, distance = int(vectors.size), str(vectors.distance.value)
        self._sign = -1.0 if distance in SMALLER_IS_NEARER else 1.0
        self.entries = int(self._client.count(self._name).count)
        self._fields = self.id.split(".")[1:] if self.id.partition(".")[0] in ("payload", "metadata") else []

    def search(self, vector: Vectors, k: int) -> Hits:
        """Similarities, or distances turned round."""
        points = self._client.query_points(
            self._name,
            query=vector.tolist(),
            using=self.vector or None,
            limit=min(k, self.entries),
            with_payload=bool(self._fields),
        ).points
        return Hits([self._name_of(point) for point in points], [self._sign * float(point.score) for point in points])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """In the order of the points' ids."""
        start: Any = None
        while True:
            points, start = self._client.scroll(self._name, limit=size, offset=start, with_vectors=True)
            if points:
                rows = [point.vector[self.vector] if self.vector else point.vector for point in points]
                yield [self._name_of(point) for point in points], np.asarray(rows, dtype=np.float32)
            if start is None:
                return

    def close(self) -> None:
        """The connection, or the lock on the folder."""
        self._client.close()

    def _name_of(self, point: Any) -> str:
        return self._document(field_of(point.payload, self._fields) if self._fields else point.id)
