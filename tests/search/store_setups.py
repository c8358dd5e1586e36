"""Every store in every setup that matters, over real engines: what the conformance suite runs against."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bakeoff.extensions.conformance.stores import DIMENSIONS, OpenStore
from bakeoff.extensions.stores.pgvector import PgVector
from bakeoff.search.stores import STORES


@dataclass(frozen=True)
class Setup:
    """A store with its options; `loss` is how far a score may be off, where the index keeps fewer bits."""

    store: str
    options: dict[str, Any] = field(default_factory=dict)
    server: str = ""
    loss: float = 1e-5
    loses_under_writes: bool = False  # known; said in docs/guides/test-a-store.md

    def __str__(self) -> str:
        shown = "-".join(str(value) for value in self.options.values())
        return f"{self.store}{'-' * bool(shown)}{shown}{'-' * bool(self.server)}{self.server}"


SETUPS = [
    Setup("faiss", {"index": "Flat"}),
    Setup("faiss", {"index": "HNSW32"}),
    Setup("faiss", {"index": "IVF16,Flat"}),
    Setup("faiss", {"index": "IVF16,PQ8x8,RFlat"}),
    Setup("faiss", {"index": "SQ8"}, loss=0.02),
    Setup("faiss", {"index": "RaBitQ,RFlat", "k_factor": 20}),
    Setup("faiss_shards", {"shards": 3}),
    Setup("faiss_shards", {"shards": 2, "index": "HNSW32"}),
    Setup("chroma"),
    Setup("chroma", {"mode": "ephemeral"}),
    Setup("chroma", server="chroma"),
    Setup("pgvector", {"index": "hnsw"}, server="postgres"),
    Setup("pgvector", {"index": "ivfflat", "lists": 16}, server="postgres"),
    Setup("pgvector", {"index": "none", "type": "halfvec"}, server="postgres", loss=0.002),
    Setup("pgvector", {"index": "hnsw", "type": "halfvec"}, server="postgres", loss=0.002),
    Setup("qdrant"),
    Setup("qdrant", {"url": ":memory:"}),
    Setup("lancedb"),
    Setup("lancedb", {"index": "none"}),
    Setup("sqlite_vec"),
    Setup("sqlite_vec", {"type": "int8"}, loss=0.02),
    Setup("usearch"),
    Setup("usearch", {"dtype": "i8"}, loss=0.02),
    Setup("hnswlib"),
    Setup("duckdb_vss", loses_under_writes=True),
]


# Stores from larger packages, and the tests in tests/servers that put them through the suite.
ELSEWHERE = {
    "milvus": "test_milvus.py",
    "clickhouse": "test_clickhouse.py",
    "redis": "test_redis.py",
    "typesense": "test_typesense.py",
}


def opener(setup: Setup, url: str | None = None) -> OpenStore:
    """How to open this setup in a folder, and to open it again; `url` is its server's."""
    options = dict(setup.options) | ({"url": url} if url else {})
    return lambda folder, dimensions: STORES.create(setup.store, dimensions=dimensions, folder=folder, **options)


@contextmanager
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL, in a folder of its own: its user may not enter pytest's."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = PgVector(dimensions=DIMENSIONS, folder=Path(folder))
        try:
            yield store.url
        finally:
            store.discard()


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """`chroma run` on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen([*command, "--path", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not _answers(f"{url}/api/v2/heartbeat"):
            assert process.poll() is None, "chroma ended"
            assert time.monotonic() < deadline, "chroma does not answer"
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False
