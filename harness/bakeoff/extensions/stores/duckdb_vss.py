"""DuckDB with its vss extension: an HNSW index inside an analytical database."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import (
    CANDIDATES,
    LINKS,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    M,
    SizeModel,
    Store,
    Threads,
    graph_bytes,
)


class DuckdbVss(Store):
    """The index serves unfiltered searches. With a filter, DuckDB scans the documents that pass.

    Under a filter or after deletes, its index would silently return too few results. Searches wait for each
    other, because two at once corrupt memory (1.5.5). Rebuild it after writes; until then it misses results.
    """

    name = "duckdb_vss"
    extra = "duckdb"
    modules = ("duckdb", "duckdb_extension_vss", "pyarrow")
    distributions = ("duckdb",)
    query_options = ("ef",)
    build_grid: ClassVar[Grid] = {"m": LINKS}
    query_grid: ClassVar[Grid] = {"ef": CANDIDATES}
    # A deleted vector stays in the graph until the index is compacted, which `build` does.
    capabilities = Capabilities(exact=False, filters=True, persistent=True, updates=True, in_process=True)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        m: M = 16,
        ef_construction: EfConstruction = 128,
        ef: Ef = 64,
        threads: Threads = 1,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import duckdb

        self.m, self.ef_construction, self.ef = m, ef_construction, ef
        self._local = threading.local()
        self._one_reader = threading.Lock()  # two searches of its index at the same time corrupt memory
        # Only the extension can read the file's index, so the file is attached after the extension is loaded.
        self._database = duckdb.connect(":memory:", config={"threads": threads, "allow_unsigned_extensions": True})
        self._database.execute(f"load '{_extension(duckdb.__version__)}'")
        self._database.execute("set global hnsw_enable_experimental_persistence = true")
        path = str(folder / "vectors.duckdb").replace("'", "''")
        self._database.execute(f"attach '{path}' as store")
        self._execute(
            "create table if not exists store.documents"
            f" (id varchar, tokens varchar[], embedding float[{int(dimensions)}])"
        )
        self._apply_tuning()

    def _apply_tuning(self) -> None:
        self._execute(f"set global hnsw_ef_search = {int(self.ef)}")

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement on this thread's cursor."""
        if not hasattr(self._local, "cursor"):
            self._local.cursor = self._database.cursor()
        return self._local.cursor.execute(statement, list(values))

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """Insert as one Arrow table, since row by row takes minutes."""
        import pyarrow

        self._delete(list(ids))
        flat = pyarrow.array(vectors.reshape(-1))
        rows = pyarrow.table(
            {
                "id": pyarrow.array(list(ids), pyarrow.string()),
                "tokens": pyarrow.array([tokens(document) for document in metadata], pyarrow.list_(pyarrow.string())),
                "embedding": pyarrow.FixedSizeListArray.from_arrays(flat, self.dimensions),
            }
        )
        self._execute("select 1")
        self._local.cursor.register("incoming", rows)
        self._execute("insert into store.documents select id, tokens, embedding from incoming")
        self._local.cursor.unregister("incoming")

    def _delete(self, ids: list[str]) -> None:
        self._execute("delete from store.documents where list_contains(?, id)", [ids])

    def build(self) -> None:
        """Rebuild the graph."""
        self._execute("drop index if exists store.nearest")
        self._execute(
            "create index nearest on store.documents using hnsw (embedding) with"
            f" (metric = 'cosine', m = {int(self.m)}, m0 = {2 * int(self.m)},"
            f" ef_construction = {int(self.ef_construction)})"
        )

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """The vector is passed as text, since DuckDB takes fifteen times as long to bind a list."""
        distance = f"array_cosine_distance(embedding, {vector.tolist()}::float[{self.dimensions}])"
        if not filters:
            with self._one_reader:
                rows = self._execute(
                    f"select id, {distance} as distance from store.documents order by distance limit {int(k)}"
                ).fetchall()
            if len(rows) == k or len(rows) == self.count():
                return _hits(rows)
        passing = " and ".join(["true", *("list_has_any(tokens, ?)" for _ in filters)])
        rows = self._execute(
            f"with passing as materialized (select id, embedding from store.documents where {passing})"
            f" select id, {distance} as distance from passing order by distance limit {int(k)}",
            [condition.tokens() for condition in filters],
        ).fetchall()
        return _hits(rows)

    def count(self) -> int:
        """Rows of the table."""
        return int(self._execute("select count(*) from store.documents").fetchone()[0])

    def persist(self) -> None:
        """Checkpoint the log into the file."""
        self._execute("checkpoint store")

    def on_disk(self) -> bool:
        """A file."""
        return True

    def size_bytes(self) -> int:
        """The size of the file after a checkpoint."""
        self.persist()
        return super().size_bytes() or 0

    def size_model(self) -> SizeModel:
        """Vectors are stored twice, in the table and in the graph."""
        graph = graph_bytes(self.dimensions, self.m)
        return SizeModel(graph.per_document + 4 * self.dimensions, 0, f"{graph.formula} + n · 4d")

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _hits(rows: list[tuple[str, float]]) -> Hits:
    return Hits([row[0] for row in rows], [1.0 - row[1] for row in rows])


def _extension(version: str) -> Path:
    """The extension's binary from the wheel, which fits only one DuckDB version."""
    spec = importlib.util.find_spec("duckdb_extension_vss")
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        file = Path(place) / "extensions" / f"v{version}" / "vss.duckdb_extension"
        if file.is_file():
            return file
    raise Unavailable(f"duckdb_vss: no vss extension for DuckDB {version}: install duckdb-extension-vss=={version}")
