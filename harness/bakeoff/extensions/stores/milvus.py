"""Milvus through pymilvus: milvus-lite, an engine in its own process, or a server by URL."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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
    POOL,
    C,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    HybridStore,
    Lists,
    M,
    Probes,
    SearchKind,
    SizeModel,
    Url,
    graph_bytes,
)
from bakeoff.search.stores.servers import collection_name, key, listeners, note_dropped, note_made, server_url
from bakeoff.search.variants import Precision

URL = "MILVUS_URL"
STEP = 500
MOST = 16_384  # Milvus's largest k
LOCAL = ("FLAT",)  # milvus-lite accepts IVF_FLAT too, but scans everything
SERVED = ("FLAT", "IVF_FLAT", "IVF_SQ8", "HNSW")
TEXT, FIELDS = 65_535, 256  # the longest text, and the most conditions, of a document


class Milvus(HybridStore):
    """Primary keys are UUIDs made from ids, since milvus-lite does not escape them in SQL.

    `index` is "FLAT" (exact), and on a server also "IVF_FLAT", "IVF_SQ8" or "HNSW".
    """

    name = "milvus"
    extra = "milvus"
    modules = ("pymilvus",)
    distributions = ("pymilvus", "milvus-lite")
    query_options = ("ef", "nprobe")
    named_by_value = ("index",)
    build_grid: ClassVar[Grid] = {"index": LOCAL}

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        url: Url = "",
        index: Annotated[
            Literal["FLAT", "IVF_FLAT", "IVF_SQ8", "HNSW"], "FLAT is exact; the others need a server"
        ] = "FLAT",
        m: M = 16,
        ef_construction: EfConstruction = 128,
        lists: Lists = 128,
        search: SearchKind = "vectors",
        ef: Ef = 64,
        nprobe: Probes = 16,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._url = server_url(url, URL)
        known = SERVED if self._url else LOCAL
        if index not in known:
            where = "milvus" if self._url else "milvus-lite"
            raise InputError(f"{where} has no index {index!r}", remedy=nearest(index, list(known)))
        self.index, self.m, self.ef_construction, self.lists = index, m, ef_construction, lists
        self.ef, self.nprobe, self._texts = ef, nprobe, search == "hybrid"
        self._filled = self._closed = False
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # pymilvus logs the errors that it raises
        warnings.filterwarnings("ignore", "pkg_resources is deprecated", module="milvus_lite")
        import pymilvus

        self._milvus: Any = pymilvus
        self._name = collection_name(folder)
        try:
            with _logs_in(folder):
                self._client: Any = pymilvus.MilvusClient(
                    self._url or str(folder / "milvus.db"),
                    token=key_in("MILVUS_TOKEN"),
                    timeout=servers.CONNECT,
                )
            if not self._client.has_collection(self._name):
                if self._url:
                    note_made(folder, self.name, self._url, URL)
                self._client.create_collection(self._name, schema=self._schema(), consistency_level="Strong")
                self._make_index()
            self._client.load_collection(self._name)
        except pymilvus.MilvusException as error:
            raise Unavailable(f"milvus: {error.message}") from None
        self.failures = (pymilvus.MilvusException,)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The client, and the engine if no server is named."""
        if options.get("url"):
            return super().needs(**options)
        return Needs(cls.modules, cls.extra, server=URL, engine=("milvus_lite",))

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """int8 in a server's index."""
        served = options.get("url") or os.environ.get(URL)
        return {**options, "index": "IVF_SQ8"} if precision == "int8" and served else None

    @classmethod
    def keeps_originals(cls, precision: Precision) -> bool:  # noqa: ARG003 - of bytes, the only ones
        """The segments keep the originals."""
        return True

    def _schema(self) -> Any:
        kinds = self._milvus.DataType
        schema = self._client.create_schema(auto_id=False)
        schema.add_field("point", kinds.VARCHAR, is_primary=True, max_length=36)
        schema.add_field("id", kinds.VARCHAR, max_length=TEXT)
        schema.add_field("tokens", kinds.ARRAY, element_type=kinds.VARCHAR, max_capacity=FIELDS, max_length=TEXT)
        schema.add_field("vector", kinds.FLOAT_VECTOR, dim=self.dimensions)
        if self._texts:
            schema.add_field(
                "text", kinds.VARCHAR, max_length=TEXT, enable_analyzer=True, analyzer_params={"type": "english"}
            )
            schema.add_field("words", kinds.SPARSE_FLOAT_VECTOR)
            bm25 = self._milvus.FunctionType.BM25
            schema.add_function(self._milvus.Function("bm25", bm25, ["text"], ["words"]))
        return schema

    def _make_index(self) -> None:
        parameters = self._client.prepare_index_params()
        settings = {
            "IVF_FLAT": {"nlist": self.lists},
            "IVF_SQ8": {"nlist": self.lists},
            "HNSW": {"M": self.m, "efConstruction": self.ef_construction},
        }.get(self.index, {})
        parameters.add_index("vector", index_type=self.index, metric_type="COSINE", params=settings)
        if self._texts:
            parameters.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        self._client.create_index(self._name, parameters)

    @property
    def capabilities(self) -> Capabilities:
        """Exact with FLAT."""
        return Capabilities(exact=self.index == "FLAT", filters=True, persistent=True, updates=True, in_process=False)

    def tunings(self) -> Grid:
        """Each index type has one parameter."""
        probes = {"nprobe": (1, 2, 4, 8, 16, 32, 64, 128)}
        grids: dict[str, Grid] = {"FLAT": {}, "IVF_FLAT": probes, "IVF_SQ8": probes, "HNSW": {"ef": CANDIDATES}}
        return grids[self.index]

    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        for start in range(0, len(ids), STEP):
            part = slice(start, start + STEP)
            rows = [
                {"point": str(key(item)), "id": item, "tokens": tokens(fields), "vector": vector}
                for item, vector, fields in zip(ids[part], vectors[part].tolist(), metadata[part], strict=True)
            ]
            if self._texts:
                for row, text in zip(rows, texts[part], strict=True):
                    row["text"] = text.encode()[:TEXT].decode(errors="ignore").replace("\0", " ")
            self._client.upsert(self._name, rows)

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), STEP):
            self._client.delete(self._name, ids=[str(key(item)) for item in ids[start : start + STEP]])

    def count(self) -> int:
        """A consistent count, since a server may lag and its statistics count replaced rows twice."""
        (row,) = self._client.query(
            self._name, output_fields=["count(*)"], consistency_level="Strong", timeout=servers.ANSWER
        )
        return int(row["count(*)"])

    def build(self) -> None:
        """Flush, so that a server seals and indexes its segments."""
        if self._url:
            self._client.flush(self._name)
            self._client.release_collection(self._name)
            self._client.load_collection(self._name)

    def _parameters(self, k: int) -> dict[str, Any]:
        return {"metric_type": "COSINE", "params": {"ef": max(self.ef, k), "nprobe": self.nprobe}}

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Its field `distance` is a cosine. Under a filter every list is read.

        A server searches unindexed data by an interim index, which may return too few results. Such a search is
        repeated as a scan of all that pass.
        """
        k, passing = min(k, MOST), _filter_expression(filters)
        parameters = self._parameters(k)
        if filters:
            parameters["params"]["nprobe"] = self.lists
        (hits,) = self._client.search(
            self._name,
            [vector.tolist()],
            anns_field="vector",
            limit=k,
            filter=passing,
            search_params=parameters,
            output_fields=["id"],
            timeout=servers.ANSWER,
        )
        if len(hits) == k or self.index == "FLAT":
            return _hits(hits)
        rows = self._client.query(
            self._name,
            filter=passing or 'point != ""',
            output_fields=["id", "vector"],
            limit=MOST,
            timeout=servers.ANSWER,
        )
        scores = np.array([row["vector"] for row in rows], dtype=np.float32).reshape(-1, self.dimensions) @ vector
        nearest_first = np.argsort(-scores)[:k]
        return Hits([rows[place]["id"] for place in nearest_first], scores[nearest_first].tolist())

    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Its BM25 divides by zero over an empty collection."""
        self._filled = self._filled or self._client.get_collection_stats(self._name)["row_count"] > 0
        if not self._filled:
            return Hits([], [])
        request, pool, passing = self._milvus.AnnSearchRequest, max(min(k, MOST), POOL), _filter_expression(filters)
        parts = [request([vector.tolist()], "vector", self._parameters(pool), pool, expr=passing)]
        said = text.replace("\0", " ").strip()
        if said:
            parts.append(request([said], "words", {"metric_type": "BM25"}, pool, expr=passing))
        (hits,) = self._client.hybrid_search(
            self._name,
            parts,
            self._milvus.RRFRanker(C),
            limit=min(k, MOST),
            output_fields=["id"],
            timeout=servers.ANSWER,
        )
        return _hits(hits)

    def on_disk(self) -> bool:
        """True for milvus-lite."""
        return not self._url

    def size_bytes(self) -> int | None:
        """The size of our own files."""
        return None if self._url else super().size_bytes()

    def size_model(self) -> SizeModel:
        """The vectors, with a graph or lists."""
        if self.index == "HNSW":
            return graph_bytes(self.dimensions, self.m)
        return SizeModel(4 * self.dimensions, 0, "n · 4d")

    def processes(self) -> list[int]:
        """The server's process, if it runs on this machine."""
        if self._url:
            return listeners(self._url)
        import psutil

        file = str(self.folder / "milvus.db")
        return [child.pid for child in psutil.Process().children(recursive=True) if file in child.cmdline()]

    def close(self) -> None:
        """Close the connection, and stop milvus-lite's engine."""
        self._client.close()
        self._closed = True
        if not self._url:
            from milvus_lite.server_manager import server_manager_instance

            server_manager_instance.release_server(str(self.folder / "milvus.db"))

    def discard(self) -> None:
        """Drop the collection."""
        if self._url and not self._closed:
            self._client.drop_collection(self._name)
            note_dropped(self.folder)
        self.close()


@contextmanager
def _logs_in(folder: Path) -> Iterator[None]:
    """Log only fatal errors, and into the folder: milvus-lite would leave its logs in /tmp."""
    wanted = {"GLOG_log_dir": str(folder), "GLOG_minloglevel": "3"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _hits(hits: Sequence[Any]) -> Hits:
    return Hits([hit["entity"]["id"] for hit in hits], [hit["distance"] for hit in hits])


def _filter_expression(filters: Sequence[Condition]) -> str:
    return " and ".join(
        f"array_contains_any(tokens, [{', '.join(map(_quote, condition.tokens()))}])" for condition in filters
    )


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
