"""Vectors to disk and back: our shards against one SQLite row a vector, in one run."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bakeoff.core.hashing import text_key
from bakeoff.embedding.cache import VectorCache
from bakeoff_providers.base import Vectors

VECTORS, DIMENSIONS, BATCH, REPEATS, TARGET = 100_000, 384, 64, 3, 5.0
IDENTITY: dict[str, str | int | float | bool | None] = {
    "provider": "bench",
    "model": "bench",
    "dimensions": DIMENSIONS,
    "role": "document",
    "prompt": "",
}


def shards(folder: Path, texts: list[str], vectors: Vectors) -> Vectors:
    space = VectorCache(folder).space(IDENTITY)
    for start in range(0, len(texts), BATCH):
        space.put(texts[start : start + BATCH], vectors[start : start + BATCH], tokens=1)
    space.close()
    return VectorCache(folder).space(IDENTITY).get(texts)[0]


def sqlite(folder: Path, texts: list[str], vectors: Vectors) -> Vectors:
    """As safe as ours against a kill: one commit a batch, write-ahead log, no fsync."""
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "vectors.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB)")
    for start in range(0, len(texts), BATCH):
        batch = zip(texts[start : start + BATCH], vectors[start : start + BATCH], strict=True)
        rows = [(text_key(text), row.tobytes()) for text, row in batch]
        connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        connection.commit()
    connection.close()
    connection = sqlite3.connect(folder / "vectors.db")
    found = [
        connection.execute("SELECT vector FROM vectors WHERE key = ?", (text_key(text),)).fetchone()[0]
        for text in texts
    ]
    connection.close()
    return np.frombuffer(b"".join(found), dtype=np.float32).reshape(len(texts), -1)


def fastest(way: Callable[[Path, list[str], Vectors], Vectors], texts: list[str], vectors: Vectors) -> float:
    times = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            back = way(Path(folder) / "cache", texts, vectors)
            times.append(time.perf_counter() - start)
        np.testing.assert_array_equal(back, vectors)
    return min(times)


def main() -> int:
    texts = [f"text number {number}" for number in range(VECTORS)]
    vectors = np.random.default_rng(0).normal(size=(VECTORS, DIMENSIONS)).astype(np.float32)
    theirs, ours = fastest(sqlite, texts, vectors), fastest(shards, texts, vectors)
    print(f"{VECTORS:,} vectors of {DIMENSIONS}, written in batches of {BATCH} and read back, best of {REPEATS}")
    print(f"  one SQLite row a vector  {theirs:6.2f} s")
    print(f"  shards                   {ours:6.2f} s   {theirs / ours:.1f}× (target {TARGET:g}×)")
    return 0 if theirs / ours >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
