"""Qdrant: its engine in this process (qdrant-edge-py), or a server by its URL (qdrant-client)."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.registry import missing_modules, nearest

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import CANDIDATES, LINKS, Capabilities, Grid, SizeModel, Store, graph_bytes
from bakeoff.search.stores.servers import collection_name, listeners, server_url
from bakeoff.search.stores.shared_options import Ef, EfConstruction, M, Url
from bakeoff.search.variants import Precision

URL = "QDRANT_URL"
STEP = 1000
INDEX_FROM_KB = 1000  # segments larger than this get a graph; Qdrant's own default waits for 10 or 20 MB
MEMORY = ":memory:"
QUANTIZATIONS = {"none": 0.0, "int8": 1.0, "binary": 1 / 8}  # bytes per component, beside the vectors themselves


class Engine(Protocol):
    """What both interfaces can do, with the same signatures."""

    def upsert(self, rows: list[tuple[str, list[float], dict[str, Any]]]) -> None:
        """Point, vector, payload."""

    def delete(self, points: list[str]) -> None:
        """Points that may not be there."""

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, similarities."""

    def build(self) -> None:
        """Returns when the graph is there."""

    def close(self) -> None:
        """Releases files and connections."""


class Qdrant(Store):
    """Points are UUIDs made from ids, so each hit's payload is read for its id, as an application would.

    With `url` (or QDRANT_URL) a server is asked; ":memory:" is the client's own engine in Python, for trying things
    out: its times say nothing about Qdrant. `quantization` is "int8" or "binary". Answers by int8 are scored by it;
    those by bits are scored again with the vectors, as Qdrant's own default is.
    """

    name = "qdrant"
    extra = "qdrant"
    modules = ("qdrant_edge",)
    distributions = ("qdrant-edge-py", "qdrant-client")
    reads_while_writing = True
    query_options = ("ef",)
    build_grid: ClassVar[Grid] = {"m": LINKS}

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        url: Url = "",
        m: M = 16,
        ef_construction: EfConstruction = 100,
        quantization: Annotated[
            Literal["none", "int8", "binary"], "codes beside the vectors that a search goes by first"
        ] = "none",
        ef: Ef = 64,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._url = server_url(url, URL)
        if quantization not in QUANTIZATIONS:
            known = nearest(quantization, list(QUANTIZATIONS))
            raise InputError(f"qdrant has no quantization {quantization!r}", remedy=known)
        self.quantization = quantization
        self.m, self.ef = m, ef
        self._engine: Engine
        if self._url:
            from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

            self.failures = (ApiException, ResponseHandlingException)
            self._engine = Server(self._url, collection_name(folder), dimensions, m, ef_construction, quantization)
        else:
            self._engine = Edge(folder / "shard", dimensions, m, ef_construction, quantization)

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """The engine, or the client where a server is named."""
        served = options.get("url") or os.environ.get(URL)
        return missing_modules(("qdrant_client",) if served else cls.modules, cls.extra)

    @classmethod
    def quantised(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Its own quantisation, which the client's engine in Python has not."""
        return None if options.get("url") == MEMORY else {**options, "quantization": precision}

    @classmethod
    def keeps_originals(cls, precision: Precision) -> bool:  # noqa: ARG003 - of both
        """Always: it could score anew with them."""
        return True

    @property
    def capabilities(self) -> Capabilities:
        """The client's Python engine compares with everything."""
        memory = self._url == MEMORY
        return Capabilities(
            exact=memory, filters=True, persistent=not memory, updates=True, in_process=memory or not self._url
        )

    def tunings(self) -> Grid:
        """The length of the candidate list."""
        return {} if self._url == MEMORY else {"ef": CANDIDATES}

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        for start in range(0, len(ids), STEP):
            part = slice(start, start + STEP)
            batch = zip(ids[part], vectors[part].tolist(), metadata[part], strict=True)
            self._engine.upsert([(_point(i), vector, {"id": i, "tokens": tokens(m)}) for i, vector, m in batch])

    def _delete(self, ids: list[str]) -> None:
        self._engine.delete([_point(item) for item in ids])

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        return self._engine.search(vector, k, filters, self.ef)

    def build(self) -> None:
        """Until here every vector is compared with."""
        self._engine.build()

    def size_bytes(self) -> int | None:
        """Files, where they are ours."""
        return None if self._url else super().size_bytes()

    def size_model(self) -> SizeModel:
        """A graph with its vectors, and their codes."""
        graph, code = graph_bytes(self.dimensions, self.m), QUANTIZATIONS[self.quantization]
        return SizeModel(graph.per_document + code * self.dimensions, 0, f"{graph.formula} + n · {code:g}d")

    def processes(self) -> list[int]:
        """The server, if it runs on this machine."""
        return listeners(self._url) if self._url and self._url != MEMORY else []

    def persist(self) -> None:
        """The engine in this process writes only on request."""
        if isinstance(self._engine, Edge):
            self._engine.shard.flush()

    def close(self) -> None:
        """Needed before another can open the folder: only one may."""
        self._engine.close()

    def discard(self) -> None:
        """A server forgets the collection."""
        if isinstance(self._engine, Server):
            self._engine.drop()
        self.close()


class Edge:
    """The engine in this process."""

    def __init__(self, path: Path, dimensions: int, m: int, ef_construction: int, quantization: str) -> None:
        import qdrant_edge as q

        self._q: Any = q
        self._rescore = quantization == "binary"
        codes: dict[str, Any] = {
            "none": None,
            "int8": q.ScalarQuantizationConfig(q.ScalarType.Int8, always_ram=True),
            "binary": q.BinaryQuantizationConfig(always_ram=True),
        }
        graph = self._q.HnswIndexConfig(m=m, ef_construct=ef_construction, full_scan_threshold=INDEX_FROM_KB)
        vectors = {
            "": q.EdgeVectorParams(
                size=dimensions,
                distance=q.Distance.Cosine,
                hnsw_config=graph,
                quantization_config=codes[quantization],
                on_disk=quantization != "none",
            )
        }
        if path.exists():
            self.shard: Any = q.EdgeShard.load(str(path))
            return
        path.mkdir(parents=True)
        optimizers = q.EdgeOptimizersConfig(indexing_threshold=INDEX_FROM_KB)
        self.shard = q.EdgeShard.create(str(path), q.EdgeConfig(vectors=vectors, optimizers=optimizers))
        self.shard.update(q.UpdateOperation.create_field_index("tokens", q.PayloadSchemaType.Keyword))

    def upsert(self, rows: list[tuple[str, list[float], dict[str, Any]]]) -> None:
        """Point, vector, payload."""
        q = self._q
        self.shard.update(q.UpdateOperation.upsert_points([q.Point(*row) for row in rows]))

    def delete(self, points: list[str]) -> None:
        """Points that may not be there."""
        self.shard.update(self._q.UpdateOperation.delete_points(points))

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, similarities."""
        q = self._q
        must = [q.FieldCondition("tokens", match=q.MatchAny(condition.tokens())) for condition in filters]
        points = self.shard.search(
            q.SearchRequest(
                q.Query.Nearest(vector.tolist()),
                k,
                filter=q.Filter(must=must) if must else None,
                params=q.SearchParams(hnsw_ef=ef, quantization=q.QuantizationSearchParams(rescore=self._rescore)),
                with_payload=q.PayloadSelector.Include(["id"]),
            )
        )
        return _hits(points)

    def build(self) -> None:
        """Runs the optimisers until there is nothing left to do."""
        self.shard.optimize()

    def close(self) -> None:
        """Writes, and releases the lock."""
        self.shard.close()


class Server:
    """A collection on a server."""

    def __init__(self, url: str, name: str, dimensions: int, m: int, ef_construction: int, quantization: str) -> None:
        import qdrant_client
        from qdrant_client import models

        self._rescore = quantization == "binary"
        codes: dict[str, Any] = {
            "none": None,
            "int8": models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8)),
            "binary": models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
        }
        self._models, self._name, self._memory = models, name, url == MEMORY
        key = os.environ.get("QDRANT_API_KEY")
        self._client: Any = qdrant_client.QdrantClient(
            **({"location": MEMORY} if self._memory else {"url": url, "api_key": key, "check_compatibility": False})
        )
        try:
            known = self._client.collection_exists(name)
        except Exception as error:  # the client lets each transport's own errors through
            raise Unavailable(f"qdrant: {url} does not answer ({error})") from None
        if known:
            return
        self._client.create_collection(
            name,
            vectors_config=models.VectorParams(
                size=dimensions, distance=models.Distance.COSINE, quantization_config=codes[quantization]
            ),
            hnsw_config=models.HnswConfigDiff(m=m, ef_construct=ef_construction, full_scan_threshold=INDEX_FROM_KB),
            optimizers_config=models.OptimizersConfigDiff(indexing_threshold=INDEX_FROM_KB),
        )
        if not self._memory:
            self._client.create_payload_index(name, "tokens", models.PayloadSchemaType.KEYWORD, wait=True)

    def upsert(self, rows: list[tuple[str, list[float], dict[str, Any]]]) -> None:
        """Point, vector, payload."""
        points = [self._models.PointStruct(id=point, vector=vector, payload=load) for point, vector, load in rows]
        self._client.upsert(self._name, points, wait=True)

    def delete(self, points: list[str]) -> None:
        """Points that may not be there."""
        self._client.delete(self._name, self._models.PointIdsList(points=points), wait=True)

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, similarities."""
        models = self._models
        must = [
            models.FieldCondition(key="tokens", match=models.MatchAny(any=condition.tokens())) for condition in filters
        ]
        points = self._client.query_points(
            self._name,
            query=vector.tolist(),
            limit=k,
            query_filter=models.Filter(must=must) if must else None,
            search_params=None
            if self._memory
            else models.SearchParams(hnsw_ef=ef, quantization=models.QuantizationSearchParams(rescore=self._rescore)),
            with_payload=["id"],
        ).points
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


def _point(item: str) -> str:
    """Qdrant takes numbers and UUIDs only."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, item))
