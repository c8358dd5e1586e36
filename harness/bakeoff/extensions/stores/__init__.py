"""Stores besides FAISS and Chroma, and readers of their existing indexes, one file per engine."""

_HERE = "bakeoff.extensions.stores"
STORES = {
    "pgvector": f"{_HERE}.pgvector:PgVector",
    "qdrant": f"{_HERE}.qdrant:Qdrant",
    "lancedb": f"{_HERE}.lancedb:LanceDB",
    "sqlite_vec": f"{_HERE}.sqlite_vec:SqliteVec",
    "usearch": f"{_HERE}.usearch:USearch",
    "hnswlib": f"{_HERE}.hnswlib:Hnswlib",
    "milvus": f"{_HERE}.milvus:Milvus",
    "clickhouse": f"{_HERE}.clickhouse:ClickHouse",
    "redis": f"{_HERE}.redis:Redis",
    "typesense": f"{_HERE}.typesense:Typesense",
    "duckdb_vss": f"{_HERE}.duckdb_vss:DuckdbVss",
}
EXISTING = {
    "pgvector": f"{_HERE}.pgvector:ExistingPgVector",
    "qdrant": f"{_HERE}.qdrant:ExistingQdrant",
    "lancedb": f"{_HERE}.lancedb:ExistingLanceDB",
    "sqlite_vec": f"{_HERE}.sqlite_vec:ExistingSqliteVec",
}
BEFORE_REMOVAL = {"postgres": f"{_HERE}.pgvector_connection:stop_servers"}
