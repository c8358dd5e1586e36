"""Qdrant's two interfaces: its engine in this process, and a server by its URL."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.keys import key_in

from bakeoff.core.filters import Condition
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.hybrid import POOL, C

INDEX_FROM_KB = 1000  # segments larger than this get a graph; Qdrant's own default waits for 10 or 20 MB
MEMORY = ":memory:"
WORDS = "words"  # the sparse vector beside the plain one
Words = tuple[list[int], list[float]]  # numbers of words, and how much each counts


@dataclass(frozen=True, slots=True)
class Collection:
    """How it is set up."""

    dimensions: int
    m: int
    ef_construction: int
    quantization: str
    words: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One point; words where the collection has them."""

    point: str
    vector: list[float]
    payload: dict[str, Any]
    words: Words | None = None


class Engine(Protocol):
    """What both interfaces can do, with the same signatures."""

    def upsert(self, rows: Sequence[Row]) -> None:
        """Points with their vectors and payloads."""

    def delete(self, points: list[str]) -> None:
        """Points that may not be there."""

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, similarities."""

    def search_hybrid(self, words: Words, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, fused scores."""

    def build(self) -> None:
        """Returns when the graph is there."""

    def close(self) -> None:
        """Releases files and connections."""


class Edge:
    """The engine in this process."""

    def __init__(self, path: Path, collection: Collection) -> None:
        import qdrant_edge as q

        self._q: Any = q
        self._rescore = collection.quantization == "binary"
        codes: dict[str, Any] = {
            "none": None,
            "int8": q.ScalarQuantizationConfig(q.ScalarType.Int8, always_ram=True),
            "binary": q.BinaryQuantizationConfig(always_ram=True),
        }
        graph = self._q.HnswIndexConfig(
            m=collection.m, ef_construct=collection.ef_construction, full_scan_threshold=INDEX_FROM_KB
        )
        vectors = {
            "": q.EdgeVectorParams(
                size=collection.dimensions,
                distance=q.Distance.Cosine,
                hnsw_config=graph,
                quantization_config=codes[collection.quantization],
                on_disk=collection.quantization != "none",
            )
        }
        if path.exists():
            self.shard: Any = q.EdgeShard.load(str(path))
            return
        path.mkdir(parents=True)
        optimizers = q.EdgeOptimizersConfig(indexing_threshold=INDEX_FROM_KB)
        words = {WORDS: q.EdgeSparseVectorParams(modifier=q.Modifier.Idf)} if collection.words else None
        config = q.EdgeConfig(vectors=vectors, sparse_vectors=words, optimizers=optimizers)
        self.shard = q.EdgeShard.create(str(path), config)
        self.shard.update(q.UpdateOperation.create_field_index("tokens", q.PayloadSchemaType.Keyword))

    def upsert(self, rows: Sequence[Row]) -> None:
        """Points with their vectors and payloads."""
        q = self._q

        def vectors(row: Row) -> Any:
            return row.vector if row.words is None else {"": row.vector, WORDS: q.SparseVector(*row.words)}

        points = [q.Point(row.point, vectors(row), row.payload) for row in rows]
        self.shard.update(q.UpdateOperation.upsert_points(points))

    def delete(self, points: list[str]) -> None:
        """Points that may not be there."""
        self.shard.update(self._q.UpdateOperation.delete_points(points))

    def _filter(self, filters: Sequence[Condition]) -> Any:
        q = self._q
        must = [q.FieldCondition("tokens", match=q.MatchAny(condition.tokens())) for condition in filters]
        return q.Filter(must=must) if must else None

    def _parameters(self, ef: int) -> Any:
        q = self._q
        return q.SearchParams(hnsw_ef=ef, quantization=q.QuantizationSearchParams(rescore=self._rescore))

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, similarities."""
        q = self._q
        points = self.shard.search(
            q.SearchRequest(
                q.Query.Nearest(vector.tolist()),
                k,
                filter=self._filter(filters),
                params=self._parameters(ef),
                with_payload=q.PayloadSelector.Include(["id"]),
            )
        )
        return _hits(points)

    def search_hybrid(self, words: Words, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Both rankings, fused by the engine."""
        q, passing, pool = self._q, self._filter(filters), max(k, POOL)
        nearest = q.Query.Nearest(vector.tolist())
        parts = [q.Prefetch(pool, query=nearest, filter=passing, params=self._parameters(ef))]
        if words[0]:
            parts.append(q.Prefetch(pool, query=q.Query.Nearest(q.SparseVector(*words), WORDS), filter=passing))
        payload = q.PayloadSelector.Include(["id"])
        request = q.QueryRequest(k, query=q.Fusion.Rrf(k=C), prefetches=parts, with_payload=payload)
        return _hits(self.shard.query(request))

    def build(self) -> None:
        """Runs the optimisers until there is nothing left to do."""
        self.shard.optimize()

    def close(self) -> None:
        """Writes, and releases the lock."""
        self.shard.close()


class Server:
    """A collection on a server."""

    def __init__(self, url: str, name: str, collection: Collection, before: Callable[[], None]) -> None:
        """`before` is called when the server has answered, and before anything is made on it."""
        import qdrant_client
        from qdrant_client import models

        self._rescore = collection.quantization == "binary"
        codes: dict[str, Any] = {
            "none": None,
            "int8": models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8)),
            "binary": models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
        }
        self._models, self._name, self._memory = models, name, url == MEMORY
        key = key_in("QDRANT_API_KEY") or None
        self._client: Any = qdrant_client.QdrantClient(
            **({"location": MEMORY} if self._memory else {"url": url, "api_key": key, "check_compatibility": False}),
            timeout=servers.ANSWER,
        )
        try:
            known = self._client.collection_exists(name)
        except Exception as error:  # the client lets each transport's own errors through
            raise Unavailable(f"qdrant: {url} does not answer ({error})") from None
        if known:
            return
        before()
        self._client.create_collection(
            name,
            vectors_config=models.VectorParams(
                size=collection.dimensions,
                distance=models.Distance.COSINE,
                quantization_config=codes[collection.quantization],
            ),
            sparse_vectors_config=(
                {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)} if collection.words else None
            ),
            hnsw_config=models.HnswConfigDiff(
                m=collection.m, ef_construct=collection.ef_construction, full_scan_threshold=INDEX_FROM_KB
            ),
            optimizers_config=models.OptimizersConfigDiff(indexing_threshold=INDEX_FROM_KB),
        )
        if not self._memory:
            self._client.create_payload_index(name, "tokens", models.PayloadSchemaType.KEYWORD, wait=True)

    def upsert(self, rows: Sequence[Row]) -> None:
        """Points with their vectors and payloads."""

        def vectors(row: Row) -> Any:
            return row.vector if row.words is None else {"": row.vector, WORDS: self._sparse(row.words)}

        points = [self._models.PointStruct(id=row.point, vector=vectors(row), payload=row.payload) for row in rows]
        self._client.upsert(self._name, points, wait=True)

    def _sparse(self, words: Words) -> Any:
        return self._models.SparseVector(indices=words[0], values=words[1])

    def delete(self, points: list[str]) -> None:
        """Points that may not be there."""
        self._client.delete(self._name, self._models.PointIdsList(points=points), wait=True)

    def _filter(self, filters: Sequence[Condition]) -> Any:
        models = self._models
        must = [
            models.FieldCondition(key="tokens", match=models.MatchAny(any=condition.tokens())) for condition in filters
        ]
        return models.Filter(must=must) if must else None

    def _parameters(self, ef: int) -> Any:
        models = self._models
        if self._memory:
            return None
        return models.SearchParams(hnsw_ef=ef, quantization=models.QuantizationSearchParams(rescore=self._rescore))

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, similarities."""
        points = self._client.query_points(
            self._name,
            query=vector.tolist(),
            limit=k,
            query_filter=self._filter(filters),
            search_params=self._parameters(ef),
            with_payload=["id"],
        ).points
        return _hits(points)

    def search_hybrid(self, words: Words, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Both rankings, fused by the engine."""
        models, passing, pool = self._models, self._filter(filters), max(k, POOL)
        parts = [models.Prefetch(query=vector.tolist(), limit=pool, filter=passing, params=self._parameters(ef))]
        if words[0]:
            parts.append(models.Prefetch(query=self._sparse(words), using=WORDS, limit=pool, filter=passing))
        fused = models.RrfQuery(rrf=models.Rrf(k=C))
        points = self._client.query_points(self._name, prefetch=parts, query=fused, limit=k, with_payload=["id"]).points
        return _hits(points)

    def build(self) -> None:
        """Waits until the server has optimised its segments."""
        while self._client.get_collection(self._name).status != self._models.CollectionStatus.GREEN:
            time.sleep(0.2)

    def drop(self) -> None:
        """Removes the collection."""
        self._client.delete_collection(self._name)

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()


def _hits(points: Sequence[Any]) -> Hits:
    return Hits([point.payload["id"] for point in points], [point.score for point in points])
