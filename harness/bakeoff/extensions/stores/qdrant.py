"""Qdrant: its engine in this process (qdrant-edge-py), a server by URL, and existing collections."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.keys import key_in
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import nearest

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.base import (
    CANDIDATES,
    LINKS,
    POOL,
    C,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    HybridStore,
    M,
    SearchKind,
    SizeModel,
    Url,
    graph_bytes,
)
from bakeoff.search.stores.existing import BLOCK, Existing, ExistingIndex, choose_name, field_of, is_url, path_of
from bakeoff.search.stores.servers import collection_name, key, listeners, note_dropped, note_made, server_url
from bakeoff.search.variants import Precision

INDEX_FROM_KB = 1000  # segments larger than this get a graph; Qdrant's own default waits for 10 or 20 MB
MEMORY = ":memory:"
WORDS = "words"  # the sparse vector beside the plain one
Words = tuple[list[int], list[float]]  # numbers of words, and how much each counts


@dataclass(frozen=True, slots=True)
class Collection:
    """The settings of a collection."""

    dimensions: int
    m: int
    ef_construction: int
    quantization: str
    words: bool


@dataclass(frozen=True, slots=True)
class QdrantRow:
    """One point, with words if the collection has them."""

    point: str
    vector: list[float]
    payload: dict[str, Any]
    words: Words | None = None


class QdrantEngine(Protocol):
    """The common interface of the embedded engine and a server."""

    def upsert(self, rows: Sequence[QdrantRow]) -> None:
        """Insert or replace points."""

    def delete(self, points: list[str]) -> None:
        """Delete points, whether or not they exist."""

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, and similarities."""

    def search_hybrid(self, words: Words, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, and fused scores."""

    def count(self) -> int:
        """The number of points."""

    def build(self) -> None:
        """Return once the graph is built."""

    def close(self) -> None:
        """Release files and connections."""


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

    def upsert(self, rows: Sequence[QdrantRow]) -> None:
        """Insert or replace points."""
        q = self._q

        def vectors(row: QdrantRow) -> Any:
            return row.vector if row.words is None else {"": row.vector, WORDS: q.SparseVector(*row.words)}

        points = [q.Point(row.point, vectors(row), row.payload) for row in rows]
        self.shard.update(q.UpdateOperation.upsert_points(points))

    def delete(self, points: list[str]) -> None:
        """Delete points, whether or not they exist."""
        self.shard.update(self._q.UpdateOperation.delete_points(points))

    def _filter(self, filters: Sequence[Condition]) -> Any:
        q = self._q
        must = [q.FieldCondition("tokens", match=q.MatchAny(condition.tokens())) for condition in filters]
        return q.Filter(must=must) if must else None

    def _parameters(self, ef: int) -> Any:
        q = self._q
        return q.SearchParams(hnsw_ef=ef, quantization=q.QuantizationSearchParams(rescore=self._rescore))

    def search(self, vector: Vectors, k: int, filters: Sequence[Condition], ef: int) -> Hits:
        """Ids from the payload, and similarities."""
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
        """Search both ways; the engine fuses the rankings."""
        q, passing, pool = self._q, self._filter(filters), max(k, POOL)
        nearest = q.Query.Nearest(vector.tolist())
        parts = [q.Prefetch(pool, query=nearest, filter=passing, params=self._parameters(ef))]
        if words[0]:
            parts.append(q.Prefetch(pool, query=q.Query.Nearest(q.SparseVector(*words), WORDS), filter=passing))
        payload = q.PayloadSelector.Include(["id"])
        request = q.QueryRequest(k, query=q.Fusion.Rrf(k=C), prefetches=parts, with_payload=payload)
        return _hits(self.shard.query(request))

    def count(self) -> int:
        """Exactly."""
        return int(self.shard.count(self._q.CountRequest(exact=True)))

    def build(self) -> None:
        """Run the optimisers until nothing is left to do."""
        self.shard.optimize()

    def close(self) -> None:
        """Flush and release the lock."""
        self.shard.close()


class QdrantServer:
    """A collection on a server."""

    def __init__(self, url: str, name: str, collection: Collection, before: Callable[[], None]) -> None:
        """`before` is called once the server has responded, before anything is created on it."""
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

    def upsert(self, rows: Sequence[QdrantRow]) -> None:
        """Insert or replace points."""

        def vectors(row: QdrantRow) -> Any:
            return row.vector if row.words is None else {"": row.vector, WORDS: self._sparse(row.words)}

        points = [self._models.PointStruct(id=row.point, vector=vectors(row), payload=row.payload) for row in rows]
        self._client.upsert(self._name, points, wait=True)

    def _sparse(self, words: Words) -> Any:
        return self._models.SparseVector(indices=words[0], values=words[1])

    def delete(self, points: list[str]) -> None:
        """Delete points, whether or not they exist."""
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
        """Ids from the payload, and similarities."""
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
        """Search both ways; the engine fuses the rankings."""
        models, passing, pool = self._models, self._filter(filters), max(k, POOL)
        parts = [models.Prefetch(query=vector.tolist(), limit=pool, filter=passing, params=self._parameters(ef))]
        if words[0]:
            parts.append(models.Prefetch(query=self._sparse(words), using=WORDS, limit=pool, filter=passing))
        fused = models.RrfQuery(rrf=models.Rrf(k=C))
        points = self._client.query_points(self._name, prefetch=parts, query=fused, limit=k, with_payload=["id"]).points
        return _hits(points)

    def count(self) -> int:
        """Exactly."""
        return int(self._client.count(self._name, exact=True).count)

    def build(self) -> None:
        """Wait until the server has optimised its segments."""
        while self._client.get_collection(self._name).status != self._models.CollectionStatus.GREEN:
            time.sleep(0.2)

    def drop(self) -> None:
        """Drop the collection."""
        self._client.delete_collection(self._name)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _hits(points: Sequence[Any]) -> Hits:
    return Hits([point.payload["id"] for point in points], [point.score for point in points])


URL = "QDRANT_URL"
STEP = 1000
QUANTIZATIONS = {"none": 0.0, "int8": 1.0, "binary": 1 / 8}  # bytes per component, beside the vectors themselves


class Qdrant(HybridStore):
    """Point ids are UUIDs made from document ids, so each hit's id is read from its payload, as in an application.

    With `url` (or QDRANT_URL) it uses a server. ":memory:" is the client's Python engine, for experiments: its latency
    says nothing about Qdrant. `quantization` is "int8" or "binary". Results by int8 keep its scores; results by bits
    are rescored with the vectors, as is Qdrant's default.
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
            Literal["none", "int8", "binary"], "codes that a search uses first, besides the vectors"
        ] = "none",
        search: SearchKind = "vectors",
        ef: Ef = 64,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._url = server_url(url, URL)
        if quantization not in QUANTIZATIONS:
            known = nearest(quantization, list(QUANTIZATIONS))
            raise InputError(f"qdrant has no quantization {quantization!r}", remedy=known)
        self.quantization = quantization
        self.m, self.ef = m, ef
        self._words = WordWeights() if search == "hybrid" else None
        collection = Collection(dimensions, m, ef_construction, quantization, words=self._words is not None)
        self._engine: QdrantEngine
        if self._url:
            from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

            self.failures = (ApiException, ResponseHandlingException)
            self._engine = QdrantServer(self._url, collection_name(folder), collection, self._note_made)
        else:
            self._engine = Edge(folder / "shard", collection)

    def _note_made(self) -> None:
        if self._url != MEMORY:
            note_made(self.folder, self.name, self._url, URL)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The embedded engine, or the client if a server is named."""
        client = ("qdrant_client",)
        if options.get("url"):
            return Needs(client, cls.extra)
        return Needs(extra=cls.extra, server=URL, client=client, engine=cls.modules)

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Qdrant's own quantisation, which the Python engine lacks."""
        return None if options.get("url") == MEMORY else {**options, "quantization": precision}

    @classmethod
    def keeps_originals(cls, precision: Precision) -> bool:  # noqa: ARG003 - of both
        """Originals are always kept for rescoring."""
        return True

    @property
    def capabilities(self) -> Capabilities:
        """The Python engine is exact."""
        memory = self._url == MEMORY
        return Capabilities(
            exact=memory, filters=True, persistent=not memory, updates=True, in_process=memory or not self._url
        )

    def tunings(self) -> Grid:
        """The length of the candidate list."""
        return {} if self._url == MEMORY else {"ef": CANDIDATES}

    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        for start in range(0, len(ids), STEP):
            part = slice(start, start + STEP)
            words: Sequence[Words | None] = [None] * len(ids[part])
            if self._words is not None:
                words = self._words.of_documents(texts[part])
            batch = zip(ids[part], vectors[part].tolist(), metadata[part], words, strict=True)
            self._engine.upsert(
                [QdrantRow(str(key(i)), vector, {"id": i, "tokens": tokens(m)}, w) for i, vector, m, w in batch]
            )

    def _delete(self, ids: list[str]) -> None:
        self._engine.delete([str(key(item)) for item in ids])

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        return self._engine.search(vector, k, filters, self.ef)

    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        assert self._words is not None
        return self._engine.search_hybrid(self._words.of_query(text), vector, k, filters, self.ef)

    def count(self) -> int:
        """The number of points."""
        return self._engine.count()

    def build(self) -> None:
        """Build the graph; before this, searches scan every vector."""
        self._engine.build()

    def on_disk(self) -> bool:
        """True for the embedded engine."""
        return not self._url

    def size_bytes(self) -> int | None:
        """The size of our own files."""
        return None if self._url else super().size_bytes()

    def size_model(self) -> SizeModel:
        """The graph, its vectors and their codes."""
        graph, code = graph_bytes(self.dimensions, self.m), QUANTIZATIONS[self.quantization]
        return SizeModel(graph.per_document + code * self.dimensions, 0, f"{graph.formula} + n · {code:g}d")

    def processes(self) -> list[int]:
        """The server's process, if it runs on this machine."""
        return listeners(self._url) if self._url and self._url != MEMORY else []

    def persist(self) -> None:
        """Flush; the embedded engine writes only on request."""
        if isinstance(self._engine, Edge):
            self._engine.shard.flush()

    def close(self) -> None:
        """Close, so that another process can open the folder."""
        self._engine.close()

    def discard(self) -> None:
        """Drop a server's collection."""
        if isinstance(self._engine, QdrantServer):
            self._engine.drop()
            note_dropped(self.folder)
        self.close()


class WordWeights:
    """Texts as sparse vectors of stems with BM25 weights without IDF, for engines that take no text.

    The engine multiplies by IDF, which only it knows. The average length is assumed, as in Qdrant's own model.
    """

    K1, B, AVERAGE = 1.2, 0.75, 256

    @cached_property
    def _tools(self) -> tuple[Any, Any]:
        import bm25s
        import Stemmer

        return bm25s, Stemmer.Stemmer("english")

    def of_documents(self, texts: Sequence[str]) -> list[tuple[list[int], list[float]]]:
        """Stem numbers and weights."""
        return [self._weigh(Counter(words)) for words in self._words(texts)]

    def of_query(self, text: str) -> tuple[list[int], list[float]]:
        """Each stem once, with weight 1."""
        stems = sorted({_number(word) for word in self._words([text])[0]})
        return stems, [1.0] * len(stems)

    def _weigh(self, counts: Counter[str]) -> tuple[list[int], list[float]]:
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


METRICS = {"Cosine": "cosine", "Euclid": "l2", "Dot": "ip", "Manhattan": "l1"}


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
        self._name = choose_name(self.collection, names, "collection", "collection")
        info = self._client.get_collection(self._name)
        vectors = info.config.params.vectors
        if isinstance(vectors, dict):
            self.vector = choose_name(self.vector, list(vectors), "vector", "vector")
            vectors = vectors[self.vector]
        self.dimensions = int(vectors.size)
        self._compare_by(METRICS[vectors.distance.value])
        self._sign = -1.0 if self.metric in ("l2", "l1") else 1.0
        self.entries = int(self._client.count(self._name).count)
        self._fields = self.id.split(".")[1:] if self.id.partition(".")[0] in ("payload", "metadata") else []

    def search(self, vector: Vectors, k: int) -> Hits:
        """Similarities, or negated distances."""
        points = self._client.query_points(
            self._name,
            query=vector.tolist(),
            using=self.vector or None,
            limit=min(k, self.entries),
            with_payload=bool(self._fields),
        ).points
        return Hits([self._name_of(point) for point in points], [self._sign * float(point.score) for point in points])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """In order of point id."""
        start: Any = None
        while True:
            points, start = self._client.scroll(self._name, limit=size, offset=start, with_vectors=True)
            if points:
                rows = [point.vector[self.vector] if self.vector else point.vector for point in points]
                yield [self._name_of(point) for point in points], np.asarray(rows, dtype=np.float32)
            if start is None:
                return

    def close(self) -> None:
        """Close the connection, or release the folder's lock."""
        self._client.close()

    def _name_of(self, point: Any) -> str:
        return self._document(field_of(point.payload, self._fields) if self._fields else point.id)
