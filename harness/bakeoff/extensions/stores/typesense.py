"""Typesense, a search server by URL, with an in-memory HNSW index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import httpx
import msgspec
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.keys import key_in
from bakeoff_providers.needs import Needs

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.base import CANDIDATES, Capabilities, Ef, Grid, SizeModel, Store, Url, graph_bytes
from bakeoff.search.stores.servers import collection_name, key, listeners, marks, note_dropped, note_made, server_url

URL, KEY = "TYPESENSE_URL", "TYPESENSE_API_KEY"
STEP = 1000  # documents in one request
PAGE = 250  # Typesense's largest page
EXACT = 10_000  # up to this many documents that pass a filter are scanned
LINKS = 16  # hnswlib's default, which Typesense uses


class Typesense(Store):
    """Needs a server; its key is TYPESENSE_API_KEY in the environment.

    Typesense tokenises texts and drops punctuation, so ids and conditions are encoded as letters and digits.
    """

    name = "typesense"
    capabilities = Capabilities(exact=False, filters=True, persistent=True, updates=True, in_process=False)
    reads_while_writing = True
    query_options = ("ef",)
    query_grid: ClassVar[Grid] = {"ef": CANDIDATES}
    failures = (httpx.HTTPError,)

    def __init__(self, *, dimensions: int, folder: Path, url: Url = "", ef: Ef = 64) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self.ef = ef
        self._url = server_url(url, URL)
        if not self._url:
            raise Unavailable(f"typesense: no server: name it by `url`, or {URL} in the environment")
        self._client = httpx.Client(
            base_url=self._url, headers={"X-TYPESENSE-API-KEY": key_in(KEY)}, timeout=servers.ANSWER
        )
        self._name = collection_name(folder)
        with self._failures_as_unavailable():
            if not self._exists():
                note_made(folder, self.name, self._url, URL)
                self._ask("POST", "/collections", json={"name": self._name, "fields": self._fields()})

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """A server named by the line-up or the environment."""
        basic = super().needs(**options)
        return basic if options.get("url") else replace(basic, server=URL)

    def _exists(self) -> bool:
        collections = msgspec.json.decode(self._ask("GET", "/collections"))
        return any(collection["name"] == self._name for collection in collections)

    def _fields(self) -> list[dict[str, Any]]:
        return [
            {"name": "tokens", "type": "string[]"},
            {"name": "name", "type": "string", "index": False, "optional": True},
            {"name": "vector", "type": "float[]", "num_dim": self.dimensions, "vec_dist": "cosine"},
        ]

    def _ask(self, method: str, path: str, **how: Any) -> bytes:
        """Send a request. An error response raises an error with the server's own message."""
        response = self._client.request(method, path, **how)
        if response.is_error:
            raise Unavailable(f"typesense: {response.status_code}: {response.text[:200]}")
        content: bytes = response.content
        return content

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        encode = msgspec.json.encode
        for start in range(0, len(ids), STEP):
            part = slice(start, start + STEP)
            lines = [
                encode({"id": key(item).hex, "name": item, "tokens": marks(tokens(fields)), "vector": vector})
                for item, fields, vector in zip(ids[part], metadata[part], vectors[part].tolist(), strict=True)
            ]
            answer = self._ask(
                "POST",
                f"/collections/{self._name}/documents/import",
                params={"action": "upsert", "batch_size": PAGE},
                content=b"\n".join(lines),
            )
            for line in answer.splitlines():
                result = msgspec.json.decode(line)
                if not result["success"]:
                    raise Unavailable(f"typesense: {result.get('error')}")

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), STEP):
            points = ",".join(key(item).hex for item in ids[start : start + STEP])
            self._ask(
                "DELETE",
                f"/collections/{self._name}/documents",
                params={"filter_by": f"id:[{points}]", "batch_size": STEP},
            )

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Read page by page, since pages are small. Under a selective filter, the documents that pass are scanned.

        The graph considers as many candidates as are requested, so a search requests `ef` and reads k.
        """
        numbers = ",".join(map(repr, vector.tolist()))
        passing = " && ".join(f"tokens:=[{','.join(marks(condition.tokens()))}]" for condition in filters)
        cutoff = f", flat_search_cutoff: {EXACT}" if filters else ""
        asked = {
            "collection": self._name,
            "q": "*",
            "vector_query": f"vector:([{numbers}], k: {max(int(k), int(self.ef))}{cutoff})",
            "include_fields": "name",
            "filter_by": passing,
            "per_page": min(PAGE, k),
        }
        ids: list[str] = []
        scores: list[float] = []
        for page in range(1, 2 + (k - 1) // PAGE):
            answer = self._ask("POST", "/multi_search", json={"searches": [{**asked, "page": page}]})
            (result,) = msgspec.json.decode(answer)["results"]
            if "error" in result:
                raise Unavailable(f"typesense: {result['error']}")
            ids += [hit["document"]["name"] for hit in result["hits"]]
            scores += [1.0 - hit["vector_distance"] for hit in result["hits"]]
            if len(result["hits"]) < min(PAGE, k):
                break
        return Hits(ids[:k], scores[:k])

    def count(self) -> int:
        """The server's own count."""
        return int(msgspec.json.decode(self._ask("GET", f"/collections/{self._name}"))["num_documents"])

    def size_bytes(self) -> None:
        """The index is in the server's memory."""

    def size_model(self) -> SizeModel:
        """The graph."""
        return graph_bytes(self.dimensions, LINKS)

    def processes(self) -> list[int]:
        """The server's process, if it runs on this machine."""
        return listeners(self._url)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def discard(self) -> None:
        """Drop the collection."""
        if not self._client.is_closed:
            self._ask("DELETE", f"/collections/{self._name}")
            note_dropped(self.folder)
        self.close()
