"""Chroma with cosine instead of its default, squared L2. On disk, in memory, or on a server by URL.

Existing folders and servers are not modified.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, assert_never
from urllib.parse import urlsplit

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.keys import key_in
from bakeoff_providers.secrets import scrub
from bakeoff_providers.stopping import DeadlineTimeout, in_time

from bakeoff.core.filters import Condition, Metadata, Scalar
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.base import Capabilities, Ef, EfConstruction, Grid, M, SizeModel, Store, Url, graph_bytes
from bakeoff.search.stores.existing import BLOCK, Existing, ExistingIndex, choose_name, field_of, is_url, path_of
from bakeoff.search.stores.scratch import scratch
from bakeoff.search.stores.servers import collection_name, listeners, note_dropped, note_made, server_url

URL, TOKEN = "CHROMA_URL", "CHROMA_API_KEY"


def server_client(url: str) -> Any:
    """A client of the server at this URL; its token, tenant and database are in the environment."""
    import chromadb
    import httpx
    from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings

    parts, token = urlsplit(url), key_in(TOKEN)

    def connect() -> Any:  # requests the tenant, without a timeout
        return chromadb.HttpClient(
            host=parts.hostname or "",
            port=parts.port or (443 if parts.scheme == "https" else 8000),
            ssl=parts.scheme == "https",
            headers={"Authorization": f"Bearer {token}", "X-Chroma-Token": token} if token else None,
            settings=Settings(anonymized_telemetry=False),
            tenant=os.environ.get("CHROMA_TENANT") or DEFAULT_TENANT,
            database=os.environ.get("CHROMA_DATABASE") or DEFAULT_DATABASE,
        )

    try:
        client = in_time(connect, servers.CONNECT)
    except (ValueError, DeadlineTimeout) as error:
        raise Unavailable(f"chroma: {scrub(str(error))}") from None
    session = getattr(client._server, "_session", None)  # it has no timeout option
    if isinstance(session, httpx.Client):
        session.timeout = httpx.Timeout(servers.ANSWER)
    return client


Mode = Literal["persistent", "ephemeral", "server"]


class Chroma(Store):
    """An HNSW index, so not exact. On a few thousand documents it loses little or nothing. Two builds may differ.

    `mode` is "persistent", "ephemeral" or "server"; the server's address is `url` or CHROMA_URL, its
    token CHROMA_API_KEY. An index keeps the `ef_search` that it was loaded with: a folder is opened again to change it,
    in memory and on a server it stays as built.
    """

    name = "chroma"
    modules = ("chromadb",)
    distributions = ("chromadb",)
    reads_while_writing = True
    query_options = ("ef_search",)
    build_grid: ClassVar[Grid] = {"max_neighbors": (16, 32)}

    @classmethod
    def takes(cls, field: str, value: Scalar) -> bool:
        """Operators and reserved names begin like this; numbers have 64 bits."""
        if field.startswith(("$", "#", "chroma:")) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
            return False
        return super().takes(field, value)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        mode: Annotated[Mode, "on disk, in memory, or on the server at url"] = "persistent",
        url: Url = "",
        ef_search: Ef = 100,
        ef_construction: EfConstruction = 100,
        max_neighbors: M = 16,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._url = server_url(url, URL)
        self.mode: Mode = "server" if url else mode
        self.max_neighbors, self.ef_search = max_neighbors, ef_search
        self._name = f"bakeoff_{uuid.uuid4().hex}" if mode == "ephemeral" else collection_name(folder)
        if self.mode == "server":
            import httpx
            from chromadb.errors import ChromaError

            self.failures = (httpx.HTTPError, ChromaError)
        self._client = self._connect()
        if self.mode == "server":
            note_made(folder, self.name, self._url, URL, mode=self.mode)
        with self._failures_as_unavailable():
            self._collection = self._client.get_or_create_collection(
                self._name,
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

    def _connect(self) -> Any:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        match self.mode:
            case "persistent":
                return chromadb.PersistentClient(str(self.folder), settings=settings)
            case "ephemeral":  # clients in memory share their collections, so the name is drawn
                return chromadb.EphemeralClient(settings=settings)
            case "server":
                if not urlsplit(self._url).hostname:
                    raise Unavailable(f"chroma: {URL} is not set, and the line-up names no url")
                return server_client(self._url)
            case _:
                assert_never(self.mode)

    @property
    def capabilities(self) -> Capabilities:
        """The same engine in all three."""
        return Capabilities(
            exact=False,
            filters=True,
            persistent=self.mode != "ephemeral",
            updates=True,
            in_process=self.mode != "server",
        )

    def tunings(self) -> Grid:
        """The length of the candidate list, if it can be changed after building."""
        return {"ef_search": (16, 32, 64, 128, 256)} if self.mode == "persistent" else {}

    def _apply_tuning(self) -> None:
        """An open index ignores a changed length, so the collection is opened again."""
        if self.mode != "persistent":
            raise InputError(
                f"chroma can't change ef_search of an index in {self.mode} mode", remedy="give it when it is built"
            )
        self._collection.modify(configuration={"hnsw": {"ef_search": self.ef_search}})
        self._client.close()
        self._client = self._connect()
        self._collection = self._client.get_collection(self._name, embedding_function=None)

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """Add in Chroma's batch size. Known ids are deleted first: `add` ignores them, `upsert` merges fields."""
        step = self._client.get_max_batch_size()
        for start in range(0, len(ids), step):
            batch = list(ids[start : start + step])
            known = self._collection.get(ids=batch, include=[])["ids"]
            if known:
                self._collection.delete(ids=known)
            fields = [dict(document) or None for document in metadata[start : start + step]]
            self._collection.upsert(
                ids=batch, embeddings=vectors[start : start + step], metadatas=fields if any(fields) else None
            )

    def _delete(self, ids: list[str]) -> None:
        step = self._client.get_max_batch_size()
        for start in range(0, len(ids), step):
            self._collection.delete(ids=ids[start : start + step])

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Chroma returns distances, 1 − cosine."""
        clauses = [{condition.field: {"$in": list(condition.values)}} for condition in filters]
        where = {"$and": clauses} if len(clauses) > 1 else clauses[0] if clauses else None
        answer = self._collection.query(query_embeddings=vector[None], n_results=k, include=["distances"], where=where)
        return Hits(answer["ids"][0], [1.0 - distance for distance in answer["distances"][0]])

    def count(self) -> int:
        """The collection's."""
        return int(self._collection.count())

    def on_disk(self) -> bool:
        """Where it is neither in memory nor on a server."""
        return self.mode == "persistent"

    def size_bytes(self) -> int | None:
        """Only files can be measured, not memory or a server."""
        return super().size_bytes() if self.mode == "persistent" else None

    def size_model(self) -> SizeModel:
        """A graph with its vectors."""
        return graph_bytes(self.dimensions, self.max_neighbors)

    def processes(self) -> list[int]:
        """The server, if it runs on this machine."""
        return listeners(self._url) if self.mode == "server" else []

    def close(self) -> None:
        """Stops the system that Chroma keeps for each path."""
        self._client.close()

    def discard(self) -> None:
        """Deletes the collection from a server."""
        if self.mode != "persistent":
            self._client.delete_collection(self._name)
            note_dropped(self.folder)
        self.close()


class ExistingChroma(ExistingIndex):
    """`existing` is its folder or URL (token: CHROMA_API_KEY); the collection defines the distance.

    Chroma rewrites its index files when a folder is merely queried, so a copy of the folder is opened.
    """

    name: ClassVar[str] = "chroma"
    modules: ClassVar[tuple[str, ...]] = ("chromadb",)

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        self._resources = contextlib.ExitStack()
        try:
            self._client = self._connect()
            self._resources.callback(self._client.close)
            self._open()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Any:
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
        chosen = choose_name(self.collection, names, "collection", "collection")
        self._collection = self._client.get_collection(chosen, embedding_function=None)
        self._fields = self.id.split(".")[1:] if self.id.startswith("metadata.") else []
        self.entries = int(self._collection.count())
        sample = self._collection.peek(1)["embeddings"] if self.entries else np.zeros((0, 0))
        self.dimensions = int(np.asarray(sample).shape[1])
        settings = self._collection.configuration
        self._compare_by(str((settings.get("hnsw") or settings.get("spann"))["space"]))

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
