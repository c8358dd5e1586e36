"""Vectors → nearest ids. A new store is one file here and one line below (third parties: `bakeoff.stores`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.search.stores.base import Store

BUILTIN = {
    "faiss": "bakeoff.search.stores.faiss:Faiss",
    "faiss_shards": "bakeoff.search.stores.faiss_shards:FaissShards",
    "chroma": "bakeoff.search.stores.chroma:Chroma",
    "pgvector": "bakeoff.search.stores.pgvector:PgVector",
    "qdrant": "bakeoff.search.stores.qdrant:Qdrant",
    "lancedb": "bakeoff.search.stores.lancedb:LanceDB",
    "sqlite_vec": "bakeoff.search.stores.sqlite_vec:SqliteVec",
    "usearch": "bakeoff.search.stores.usearch:USearch",
    "hnswlib": "bakeoff.search.stores.hnswlib:Hnswlib",
    "milvus": "bakeoff.search.stores.milvus:Milvus",
    "clickhouse": "bakeoff.search.stores.clickhouse:ClickHouse",
    "redis": "bakeoff.search.stores.redis:Redis",
    "typesense": "bakeoff.search.stores.typesense:Typesense",
    "duckdb_vss": "bakeoff.search.stores.duckdb_vss:DuckdbVss",
}

STORES: Registry[Store] = Registry("store", "bakeoff.stores", BUILTIN, given=("dimensions", "folder"))
