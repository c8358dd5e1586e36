"""Qdrant: its engine in this process (qdrant-edge-py), or a server by its URL (qdrant-client)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import nearest

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import CANDIDATES, LINKS, Capabilities, Grid, SizeModel, graph_bytes
from bakeoff.search.stores.hybrid import HybridStore, WordWeights
from bakeoff.search.stores.left_on_servers import note_dropped, note_made
from bakeoff.search.stores.qdrant_engines import MEMORY, Collection, Edge, Engine, Row, Server, Words
from bakeoff.search.stores.servers import collection_name, key, listeners, server_url
from bakeoff.search.stores.shared_options import Ef, EfConstruction, M, SearchKind, Url
from bakeoff.search.variants import Precision

URL = "QDRANT_URL"
STEP = 1000
QUANTIZATIONS = {"none": 0.0, "int8": 1.0, "binary": 1 / 8}  # bytes per component, beside the vectors themselves


class Qdrant(HybridStore):
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
        self._engine: Engine
        if self._url:
            from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

            self.failures = (ApiException, ResponseHandlingException)
            self._engine = Server(self._url, collection_name(folder), collection, self._note_made)
        else:
            self._engine = Edge(folder / "shard", collection)

    def _note_made(self) -> None:
        if self._url != MEMORY:
            note_made(self.folder, self.name, self._url, URL)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The engine, or the client where a server is named."""
        client = ("qdrant_client",)
        if options.get("url"):
            return Needs(client, cls.extra)
        return Needs(extra=cls.extra, server=URL, client=client, engine=cls.modules)

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
                [Row(str(key(i)), vector, {"id": i, "tokens": tokens(m)}, w) for i, vector, m, w in batch]
            )

    def _delete(self, ids: list[str]) -> None:
        self._engine.delete([str(key(item)) for item in ids])

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        return self._engine.search(vector, k, filters, self.ef)

    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        assert self._words is not None
        return self._engine.search_hybrid(self._words.of_query(text), vector, k, filters, self.ef)

    def build(self) -> None:
        """Until here every vector is compared with."""
        self._engine.build()

    def on_disk(self) -> bool:
        """Where it is in this process."""
        return not self._url

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
            note_dropped(self.folder)
        self.close()
