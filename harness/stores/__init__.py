"""Vectors → nearest ids. A new store is one file here and one line below (third parties: `bakeoff.stores`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from providers.registry import Registry

if TYPE_CHECKING:
    from harness.stores.base import Store

STORES: Registry[Store] = Registry(
    "store",
    "bakeoff.stores",
    {
        "faiss": "harness.stores.faiss:Faiss",
        "chroma": "harness.stores.chroma:Chroma",
        "pgvector": "harness.stores.pgvector:PgVector",
        "qdrant": "harness.stores.qdrant:Qdrant",
        "lancedb": "harness.stores.lancedb:LanceDB",
        "sqlite_vec": "harness.stores.sqlite_vec:SqliteVec",
        "usearch": "harness.stores.usearch:USearch",
        "hnswlib": "harness.stores.hnswlib:Hnswlib",
        "duckdb_vss": "harness.stores.duckdb_vss:DuckdbVss",
    },
)
