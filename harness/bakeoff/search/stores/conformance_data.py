"""Documents, queries and exact answers for the conformance suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.search.stores.base import Store

DIMENSIONS = 16


def clustered(rows: int, dimensions: int = DIMENSIONS, seed: int = 0, clusters: int = 40) -> Vectors:
    """Unit vectors around a few centres, like those of texts; isotropic ones would be unfair to every index."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1234).normal(size=(clusters, dimensions))
    vectors = centres[rng.integers(clusters, size=rows)] + 0.4 * rng.normal(size=(rows, dimensions))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


ROWS = 1000
IDS = [f"d{number}" for number in range(ROWS)]
VECTORS = clustered(ROWS)
QUERIES = clustered(8, seed=7)
METADATA: list[dict[str, Any]] = [
    {
        "language": ("de", "en", "fr")[number % 3],
        "even": number % 2 == 0,
        "digit": number % 10,
        "rare": number % 100 == 0,  # one in a hundred: 10 documents
        "tags": ["lists", "are", "not", "filterable"],
        "number": str(number % 10),
    }
    for number in range(ROWS)
]

# What pandas calls a column without a name, what engines keep for themselves, and what their languages give a meaning.
ODD_FIELDS: dict[str, Any] = dict.fromkeys(
    ["Unnamed: 0", "", "a.b", "$x", "$or", "_id", "id", "vector", "text", "embedding", "chroma:document", "#x", "1",
     "x" * 300, "a b", "o'neil \"x\"; --", "ключ 日本", "line\nbreak", "rowid", "_distance", "null\0", "half \ud800",
     "metadata"],
    "odd",
)  # fmt: skip
ODD_VALUES: dict[str, Any] = {
    "none": None, "list": [1], "nan": float("nan"), "fraction": 1.5, "table": {"a": 1}, "huge": 10**30, "empty": "",
    "null character": "a\0b", "half a pair": "\ud800", "long": "y" * 5000,
}  # fmt: skip


def similarities(query: Vectors, vectors: Vectors = VECTORS) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Cosines in double precision: what every store's scores are held to."""
    return vectors.astype(np.float64) @ query.astype(np.float64)


def recall(store: Store, k: int, keep: list[bool] | None = None, where: Any = None) -> float:
    """The share of the true k nearest that come back, by score; every list must be full and hold what passes only."""
    kept = np.array(keep) if keep is not None else np.ones(ROWS, dtype=bool)
    hit = 0
    for query in QUERIES:
        truth = np.where(kept, similarities(query), -np.inf)
        hits = store.search(query, k, where)
        places = [int(item[1:]) for item in hits.ids]
        assert len(places) == len(set(places)) == min(k, int(kept.sum()))
        assert kept[places].all()
        hit += int((truth[places] >= np.sort(truth)[::-1][len(places) - 1] - 1e-6).sum())
    return hit / (len(QUERIES) * min(k, int(kept.sum())))


def recall_of(store: Store, held: Mapping[str, Vectors], k: int) -> float:
    """As `recall`, over documents that changed; every answer must be of those that the store should hold."""
    ids, vectors, hit = list(held), np.array(list(held.values())), 0
    places = {item: place for place, item in enumerate(ids)}
    for query in QUERIES:
        truth = similarities(query, vectors)
        answers = [places[item] for item in store.search(query, k).ids]
        assert len(answers) == len(set(answers)) == k
        hit += int((truth[answers] >= np.sort(truth)[::-1][k - 1] - 1e-6).sum())
    return hit / (len(QUERIES) * k)
