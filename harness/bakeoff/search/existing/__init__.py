"""Indexes that exist already: read, never written. A new one is a file here and a line below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.search.existing.base import ExistingIndex

EXISTING: Registry[ExistingIndex] = Registry(
    "index that exists",
    "bakeoff.existing",
    {
        "chroma": "bakeoff.search.existing.chroma:ExistingChroma",
        "pgvector": "bakeoff.search.existing.pgvector:ExistingPgVector",
        "qdrant": "bakeoff.search.existing.qdrant:ExistingQdrant",
        "lancedb": "bakeoff.search.existing.lancedb:ExistingLanceDB",
        "sqlite_vec": "bakeoff.search.existing.sqlite_vec:ExistingSqliteVec",
        "faiss": "bakeoff.search.existing.faiss:ExistingFaiss",
    },
)
