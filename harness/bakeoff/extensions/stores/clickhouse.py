"""ClickHouse in this process (chdb): a column store with an optional HNSW index."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from bakeoff_providers.base import Vectors

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import CANDIDATES, LINKS, Capabilities, Ef, EfConstruction, Grid, M, SizeModel, Store
from bakeoff.search.stores.scratch import scratch
from bakeoff.search.variants import Precision

# ClickHouse allows disks anywhere below this folder; queries grow with the vector and with the ids that they name.
CONFIG = """<clickhouse>
<custom_local_disks_base_directory>/</custom_local_disks_base_directory>
<logger><console>false</console><level>none</level></logger>
</clickhouse>
"""
LONGEST_QUERY = 2**26
PATCHES = "enable_block_number_column = 1, enable_block_offset_column = 1"  # deletes write patches instead of masks

_lock = threading.Lock()
_users = 0
_open = contextlib.ExitStack()
_connection: Any = None


class ClickHouseTable:
    """A table in a folder, created or attached. The engine stops with its last table."""

    def __init__(self, folder: Path, definition: str) -> None:
        _enter()
        self.name = "t" + uuid.uuid4().hex
        try:
            disk = quote(f"{folder.resolve()}/")
            known = next(folder.glob("store/*/*-*"), None)
            how, number = ("attach", known.name) if known else ("create", str(uuid.uuid4()))
            self.run(
                f"{how} table {self.name} uuid '{number}' {definition}"
                f" settings disk = disk(type = 'local', path = {disk}), old_parts_lifetime = 1, {PATCHES}"
            )
        except BaseException:
            _leave()
            raise

    def run(self, statement: str) -> None:
        """Run a statement without a result."""
        _connection.query(statement)

    def columns(self, statement: str, count: int) -> list[list[Any]]:
        """Run a query and return its columns."""
        answer = _connection.query(statement, "JSONCompactColumns").bytes()
        columns: list[list[Any]] = msgspec.json.decode(answer)
        return columns or [[]] * count

    def insert(self, rows: Any, settings: str) -> None:
        """Insert an Arrow table with the same column names."""
        names = ", ".join(rows.column_names)
        _connection.query(f"insert into {self.name} ({names}) select {names} from Python(rows) settings {settings}")

    def close(self) -> None:
        """Detach from the folder, which keeps the data."""
        if self.name:
            self.run(f"detach table {self.name} sync")
            self.name = ""
            _leave()


def quote(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0") + "'"


def array(texts: list[str]) -> str:
    """An array literal of strings."""
    return f"[{', '.join(map(quote, texts))}]"


def _enter() -> None:
    global _users, _connection
    with _lock:
        if not _users:
            import chdb

            with contextlib.ExitStack() as opened:
                folder = opened.enter_context(scratch("clickhouse"))
                config = folder / "config.xml"
                config.write_text(CONFIG)
                _connection = chdb.connect(f"{folder / 'data'}?config-file={config}")
                opened.callback(_connection.close)
                _connection.query(f"set max_query_size = {LONGEST_QUERY}")
                _open.push(opened.pop_all())
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if not _users:
            _open.close()


STEP = 10_000  # documents in one insert
CODE_BYTES = {"f32": 4, "bf16": 2, "i8": 1}


class ClickHouse(Store):
    """Rows added after the index was built are scanned until the engine merges them into it.

    Under a filter ClickHouse scans the rows that pass. Deleted rows stay hidden in the graph until it is rebuilt, so as
    many more are fetched. If the list is still short, the search is repeated without the index.
    """

    name = "clickhouse"
    extra = "clickhouse"
    modules = ("chdb", "pyarrow")
    distributions = ("chdb-core",)
    threads = 1  # of one search
    reads_while_writing = True
    query_options = ("ef",)
    named_by_value = ("index", "quantization")
    build_grid: ClassVar[Grid] = {"m": LINKS}

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        index: Annotated[Literal["hnsw", "none"], "none is exact"] = "hnsw",
        quantization: Annotated[
            Literal["f32", "bf16", "i8"], "number type in the graph; the table keeps float32"
        ] = "f32",
        m: M = 16,
        ef_construction: EfConstruction = 128,
        ef: Ef = 64,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self.index, self.quantization, self.m, self.ef_construction, self.ef = (
            index,
            quantization,
            m,
            ef_construction,
            ef,
        )
        graph = (
            ", index nearest embedding type vector_similarity("
            f"'hnsw', 'cosineDistance', {int(dimensions)}, '{quantization}', {int(m)}, {int(ef_construction)})"
            " granularity 100000000"
        )
        self._table = ClickHouseTable(
            folder,
            f"(id String, tokens Array(String), embedding Array(Float32){graph if index == 'hnsw' else ''})"
            " engine = MergeTree order by id",
        )
        self._name = self._table.name
        self._rows, self._hidden = 0, 0
        self.count()

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """int8 in the graph."""
        if precision == "int8" and options.get("index", "hnsw") == "hnsw":
            return {**options, "quantization": "i8"}
        return None

    @classmethod
    def keeps_originals(cls, precision: Precision) -> bool:  # noqa: ARG003 - of bytes, the only ones
        """The table keeps the originals."""
        return True

    @property
    def capabilities(self) -> Capabilities:
        """Exact without an index."""
        return Capabilities(exact=self.index == "none", filters=True, persistent=True, updates=True, in_process=True)

    def tunings(self) -> Grid:
        """The graph's parameters, if there is a graph."""
        return {"ef": CANDIDATES} if self.index == "hnsw" else {}

    def count(self) -> int:
        """The number of rows. Also updates the count of deleted rows still in the graph."""
        ((shown,),) = self._table.columns(f"select count() from {self._name}", 1)
        ((stored,),) = self._table.columns(f"select count() from {self._name} settings apply_deleted_mask = 0", 1)
        self._rows, self._hidden = int(shown), int(stored) - int(shown)
        return self._rows

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """Insert without indexing; `build` makes the index."""
        import numpy as np
        import pyarrow

        self._forget(list(ids))
        for start in range(0, len(ids), STEP):
            part = slice(start, start + STEP)
            block = vectors[part]
            ends = np.arange(0, block.size + 1, self.dimensions, dtype=np.int64)
            rows = pyarrow.table(
                {
                    "id": pyarrow.array(list(ids[part]), pyarrow.string()),
                    "tokens": pyarrow.array([tokens(each) for each in metadata[part]], pyarrow.list_(pyarrow.string())),
                    "embedding": pyarrow.LargeListArray.from_arrays(ends, pyarrow.array(block.reshape(-1))),
                }
            )
            self._table.insert(rows, "materialize_skip_indexes_on_insert = 0")
        self.count()

    def _delete(self, ids: list[str]) -> None:
        self._forget(ids)
        self.count()

    def _forget(self, ids: list[str]) -> None:
        """Delete by a patch, which takes a tenth of the time of a mutation."""
        if not self._rows:
            return
        for start in range(0, len(ids), STEP):
            (known,) = self._table.columns(
                f"select id from {self._name} where id in {array(ids[start : start + STEP])}", 1
            )
            if known:
                self._table.run(
                    f"delete from {self._name} where id in {array(known)}"
                    " settings lightweight_delete_mode = 'lightweight_update_force'"
                )

    def build(self) -> None:
        """Merge into one part with one graph, without deleted rows."""
        self._table.run(f"optimize table {self._name} final")
        if self.index == "hnsw":
            self._table.run(f"alter table {self._name} materialize index nearest settings mutations_sync = 2")
        self.count()

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        if filters or self.index == "none":
            return self._compare(vector, k, filters)
        limit = int(k) + min(self._hidden, int(k))
        hits = self._answer(vector, limit, "", f"hnsw_candidate_list_size_for_search = {max(int(self.ef), limit)}")
        hits = Hits(hits.ids[:k], hits.scores[:k])
        return hits if len(hits.ids) >= min(k, self._rows) else self._compare(vector, k, ())

    def _compare(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Scan all rows that pass the filter."""
        passing = " and ".join(f"hasAny(tokens, {array(condition.tokens())})" for condition in filters)
        return self._answer(vector, k, f"where {passing}" if passing else "", "query_plan_try_use_vector_search = 0")

    def _answer(self, vector: Vectors, k: int, where: str, settings: str) -> Hits:
        ids, distances = self._table.columns(
            f"with {vector.tolist()}::Array(Float32) as query"
            f" select id, cosineDistance(embedding, query) as distance from {self._name} {where}"
            f" order by distance limit {int(k)} settings max_threads = {self.threads}, {settings}",
            2,
        )
        return Hits(ids, [1.0 - distance for distance in distances])

    def on_disk(self) -> bool:
        """The table's parts are files."""
        return True

    def size_bytes(self) -> int:
        """Active parts. Merged ones are removed later."""
        ((size,),) = self._table.columns(
            f"select sum(bytes_on_disk) from system.parts where table = '{self._name}' and active", 1
        )
        return int(size)

    def size_model(self) -> SizeModel:
        """Vectors in the table and the graph, and half of the links, since compressed files have no spare slots."""
        table = 4 * self.dimensions
        if self.index == "none":
            return SizeModel(table, 0, "n · 4d")
        code = CODE_BYTES[self.quantization]
        return SizeModel(table + code * self.dimensions + 4 * self.m, 0, f"n · (4d + {code}d + 4·{self.m})")

    def close(self) -> None:
        """Release the folder."""
        self._table.close()
