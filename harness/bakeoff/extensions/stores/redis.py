"""Redis with its search module, by URL: an HNSW index, or exact, in the server's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.needs import Needs

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.base import (
    CANDIDATES,
    LINKS,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    M,
    SizeModel,
    Store,
    Url,
    graph_bytes,
)
from bakeoff.search.stores.servers import collection_name, key, listeners, marks, note_dropped, note_made, server_url

URL = "REDIS_URL"
STEP = 1000  # documents in one request
PATIENCE = 60_000  # milliseconds: by default Redis stops after half a second with partial results


class Redis(Store):
    """Needs a server with the search module. Under a filter Redis scans the documents that pass.

    Keys and conditions are encoded as letters and digits, since punctuation has a meaning in filters.
    A search may take a minute; by default Redis stops after half a second with partial results.
    """

    name = "redis"
    extra = "redis"
    modules = ("redis",)
    distributions = ("redis",)
    reads_while_writing = True
    query_options = ("ef",)
    named_by_value = ("index",)
    build_grid: ClassVar[Grid] = {"m": LINKS}

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        url: Url = "",
        index: Annotated[Literal["HNSW", "FLAT"], "FLAT is exact"] = "HNSW",
        m: M = 16,
        ef_construction: EfConstruction = 128,
        ef: Ef = 64,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import redis

        self.index, self.m, self.ef_construction, self.ef = index, m, ef_construction, ef
        self._url = server_url(url, URL)
        if not self._url:
            raise Unavailable(f"redis: no server: name it by `url`, or {URL} in the environment")
        self.failures = (redis.RedisError,)
        self._name = collection_name(folder)
        with self._failures_as_unavailable():
            self._client: Any = redis.Redis.from_url(
                self._url, protocol=2, socket_connect_timeout=servers.CONNECT, socket_timeout=servers.ANSWER
            )
            if self._name.encode() not in self._client.execute_command("FT._LIST"):
                self._create()

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """A server named by the line-up or the environment."""
        basic = super().needs(**options)
        return basic if options.get("url") else replace(basic, server=URL)

    def _create(self) -> None:
        settings = ["TYPE", "FLOAT32", "DIM", self.dimensions, "DISTANCE_METRIC", "COSINE"]
        if self.index == "HNSW":
            settings += ["M", int(self.m), "EF_CONSTRUCTION", int(self.ef_construction)]
        place = ["ON", "HASH", "PREFIX", 1, f"{self._name}:"]
        vector = ["vector", "VECTOR", self.index, len(settings), *settings]
        note_made(self.folder, self.name, self._url, URL)
        self._client.execute_command("FT.CREATE", self._name, *place, "SCHEMA", "tokens", "TAG", *vector)

    @property
    def capabilities(self) -> Capabilities:
        """Exact with FLAT."""
        return Capabilities(exact=self.index == "FLAT", filters=True, persistent=True, updates=True, in_process=False)

    def tunings(self) -> Grid:
        """The graph's parameters, if there is a graph."""
        return {"ef": CANDIDATES} if self.index == "HNSW" else {}

    def _key(self, item: str) -> str:
        return f"{self._name}:{key(item).hex}"

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        for start in range(0, len(ids), STEP):
            part = slice(start, start + STEP)
            request = self._client.pipeline(transaction=False)
            for item, vector, fields in zip(ids[part], vectors[part], metadata[part], strict=True):
                kept = {"id": item, "tokens": ",".join(marks(tokens(fields))), "vector": vector.tobytes()}
                request.hset(self._key(item), mapping=kept)
            request.execute()

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), STEP):
            self._client.unlink(*map(self._key, ids[start : start + STEP]))

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        how = f" EF_RUNTIME {max(int(self.ef), int(k))}" if self.index == "HNSW" else ""
        passing = "*"
        if filters:
            allowed = ("|".join(marks(condition.tokens())) for condition in filters)
            passing = f"({' '.join(f'@tokens:{{{either}}}' for either in allowed)})"
            how = " HYBRID_POLICY ADHOC_BF"
        query = f"{passing}=>[KNN {int(k)} @vector $vector{how} AS distance]"
        values = ["PARAMS", 2, "vector", np.asarray(vector, dtype=np.float32).tobytes()]
        shown = ["RETURN", 2, "id", "distance", "SORTBY", "distance", "LIMIT", 0, int(k)]
        answer = self._client.execute_command(
            "FT.SEARCH", self._name, query, *values, *shown, "TIMEOUT", PATIENCE, "DIALECT", 2
        )
        rows = [dict(zip(fields[::2], fields[1::2], strict=True)) for fields in answer[2::2]]
        return Hits([row[b"id"].decode() for row in rows], [1.0 - float(row[b"distance"]) for row in rows])

    def count(self) -> int:
        """The number of indexed documents."""
        return int(self._fact(b"num_docs"))

    def size_bytes(self) -> int:
        """The index in the server's memory, without the documents."""
        return round(float(self._fact(b"vector_index_sz_mb")) * 2**20)

    def _fact(self, name: bytes) -> bytes:
        facts = self._client.execute_command("FT.INFO", self._name)
        value: bytes = facts[facts.index(name) + 1]
        return value

    def size_model(self) -> SizeModel:
        """The graph, or the vectors."""
        if self.index == "HNSW":
            return graph_bytes(self.dimensions, self.m)
        return SizeModel(4 * self.dimensions, 0, "n · 4d")

    def processes(self) -> list[int]:
        """The server's process, if it runs on this machine."""
        return listeners(self._url)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def discard(self) -> None:
        """Drop the index and its documents."""
        with self._failures_as_unavailable():
            if self._name.encode() in self._client.execute_command("FT._LIST"):
                self._client.execute_command("FT.DROPINDEX", self._name, "DD")
        note_dropped(self.folder)
        self.close()
