"""sqlite-vec: exact search in SQLite, through apsw since Python's sqlite3 may not load extensions."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, assert_never

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Capabilities, SizeModel, Store, bit_codes, bit_similarity, int8_codes
from bakeoff.search.stores.existing import BLOCK, Existing, ExistingIndex, choose_name, path_of
from bakeoff.search.variants import Precision

MOST = 4096  # sqlite-vec answers no larger k; beyond, its distance function and a sort do
TYPES = {"float": 4.0, "int8": 1.0, "bit": 1 / 8}  # a column's type → its bytes per component
COLUMNS: dict[Precision, str] = {"int8": "int8", "binary": "bit"}


class SqliteVec(Store):
    """One file and an exact scan. Filters select rows before the search.

    `type` is that of the column: "float", "int8" (the query becomes bytes too) or "bit" (Hamming distance).
    """

    name = "sqlite_vec"
    extra = "sqlite-vec"
    modules = ("sqlite_vec", "apsw")
    distributions = ("sqlite-vec",)
    reads_while_writing = True
    named_by_value = ("type",)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        type: Annotated[Literal["float", "int8", "bit"], "column type: 32-bit floats, int8, or sign bits"] = "float",
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        if type not in TYPES:
            raise InputError(f"sqlite_vec has no type {type!r}", remedy=nearest(type, list(TYPES)))
        self.type = type
        size = 8 * math.ceil(dimensions / 8) if type == "bit" else dimensions  # bits are packed into whole bytes
        metric = "" if type == "bit" else " distance_metric=cosine"
        self._local = threading.local()
        self._open: list[Any] = []
        with self._connection as connection:
            connection.execute(
                "create table if not exists documents (number integer primary key, id text not null unique);"
                "create table if not exists tokens (token text, number integer, primary key (token, number))"
                " without rowid;"
                "create index if not exists tokens_by_number on tokens (number);"
                "create virtual table if not exists vectors using vec0"
                f"(embedding {type}[{int(size)}]{metric})"
            )

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Through the column's type."""
        return {**options, "type": COLUMNS[precision]}

    @property
    def capabilities(self) -> Capabilities:
        """Exact for floats only, since int8 and bits are rounded."""
        exact = self.type == "float"
        return Capabilities(exact=exact, filters=True, persistent=True, updates=True, in_process=True)

    def _encode(self, vector: Vectors) -> bytes:
        match self.type:
            case "int8":
                return int8_codes(vector).tobytes()
            case "bit":
                return bit_codes(vector).tobytes()
            case "float":
                return vector.tobytes()
            case _:
                assert_never(self.type)

    @property
    def _value(self) -> str:
        """The SQL expression that reads a vector of this type."""
        return "?" if self.type == "float" else f"vec_{self.type}(?)"

    @property
    def _connection(self) -> Any:
        """One connection per thread, for parallel reads."""
        if not hasattr(self._local, "connection"):
            import apsw
            import sqlite_vec

            connection = apsw.Connection(str(self.folder / "vectors.sqlite"))
            connection.set_busy_timeout(10_000)
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.execute("pragma journal_mode = wal; pragma synchronous = normal")
            self._local.connection = connection
            self._open.append(connection)
        return self._local.connection

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """vec0 has no upsert, so existing rows are deleted in the same transaction."""
        with self._connection as connection:
            self._forget(connection, list(ids))
            first = next(connection.execute("select coalesce(max(number), 0) + 1 from documents"))[0]
            numbers = range(first, first + len(ids))
            connection.executemany("insert into documents values (?, ?)", zip(numbers, ids, strict=True))
            connection.executemany(
                f"insert into vectors (rowid, embedding) values (?, {self._value})",
                ((number, self._encode(vector)) for number, vector in zip(numbers, vectors, strict=True)),
            )
            connection.executemany(
                "insert into tokens values (?, ?)",
                ((token, number) for number, fields in zip(numbers, metadata, strict=True) for token in tokens(fields)),
            )

    def _delete(self, ids: list[str]) -> None:
        with self._connection as connection:
            self._forget(connection, ids)

    @staticmethod
    def _forget(connection: Any, ids: list[str]) -> None:
        known = [
            row[0] for item in ids for row in connection.execute("select number from documents where id = ?", (item,))
        ]
        for table, key in (("documents", "number"), ("tokens", "number"), ("vectors", "rowid")):
            connection.executemany(f"delete from {table} where {key} = ?", ((number,) for number in known))

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Distances are 1 − cosine, or the Hamming distance of bits."""
        passing, values = _filter_sql(filters)
        if k <= MOST:
            limit = f" and rowid in ({passing})" if passing else ""
            nearest = (
                "select rowid as number, distance from vectors"
                f" where embedding match {self._value} and k = {int(k)}{limit}"
            )
        else:
            limit = f" where rowid in ({passing})" if passing else ""
            nearest = (
                f"select rowid as number, vec_distance_{'hamming' if self.type == 'bit' else 'cosine'}(embedding,"
                f" {self._value}) as distance from vectors{limit}"
                f" order by distance limit {int(k)}"
            )
        rows = list(
            self._connection.execute(
                f"with nearest as materialized ({nearest})"
                " select id, distance from nearest join documents using (number)",
                (self._encode(vector), *values),
            )
        )
        if self.type == "bit":
            return Hits([row[0] for row in rows], [bit_similarity(row[1], self.dimensions) for row in rows])
        return Hits([row[0] for row in rows], [1.0 - row[1] for row in rows])

    def count(self) -> int:
        """The number of searchable vectors."""
        return int(next(self._connection.execute("select count(*) from vectors"))[0])

    def on_disk(self) -> bool:
        """A file."""
        return True

    def size_bytes(self) -> int:
        """The size of the file after a checkpoint."""
        self._connection.execute("pragma wal_checkpoint(truncate)")
        return super().size_bytes() or 0

    def size_model(self) -> SizeModel:
        """The vectors alone."""
        return SizeModel(TYPES[self.type] * self.dimensions, 0, f"n · {TYPES[self.type]:g}d")

    def close(self) -> None:
        """Close all threads' connections."""
        for connection in self._open:
            connection.close()
        self._open.clear()


def _filter_sql(filters: Sequence[Condition]) -> tuple[str, list[str]]:
    """SQL and values for the rows that meet all conditions."""
    wanted = [condition.tokens() for condition in filters]
    parts = [f"select number from tokens where token in ({', '.join('?' * len(allowed))})" for allowed in wanted]
    return " intersect ".join(parts), [token for allowed in wanted for token in allowed]


class ExistingSqliteVec(ExistingIndex):
    """`collection` is the vec0 table. `id` is a column of it, or "table.column" of another with the same rowid."""

    name: ClassVar[str] = "sqlite_vec"
    extra: ClassVar[str | None] = "sqlite-vec"
    modules: ClassVar[tuple[str, ...]] = ("apsw", "sqlite_vec")

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        import apsw
        import sqlite_vec

        self._connection = apsw.Connection(str(path_of(existing)), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        tables = self._rows("select name from sqlite_master where type = 'table' and sql like '%using vec0%'")
        self._table = choose_name(self.collection, [str(row[0]) for row in tables], "vec0 table", "collection")
        columns = self._vector_columns()
        self.vector = choose_name(self.vector, list(columns), "vector column", "vector")
        self._compare_by(columns[self.vector])
        other, _, column = self.id.rpartition(".")
        self._join = f" join {_quote(other)} on {_quote(other)}.rowid = nearest.number" if other else ""
        self._id = f"{_quote(other)}.{_quote(column)}" if other else f"nearest.{_quote(column)}"
        self._own = "" if other or column == "rowid" else f", {_quote(column)}"
        if not other and column == "rowid":
            self._id = "nearest.number"
        row = self._rows(f"select count(*), max(vec_length({_quote(self.vector)})) from {_quote(self._table)}")[0]
        self.entries, self.dimensions = int(row[0]), int(row[1] or 0)

    @classmethod
    def default_id(cls) -> str:
        """vec0 tables always have rowid."""
        return "rowid"

    def search(self, vector: Vectors, k: int) -> Hits:
        """Search by the table's own distance, as an application would."""
        nearest = (
            f"select rowid as number, distance{self._own} from {_quote(self._table)}"
            f" where {_quote(self.vector)} match ? and k = {min(int(k), MOST)}"
        )
        rows = self._rows(
            f"with nearest as materialized ({nearest}) select {self._id}, distance from nearest{self._join}",
            (np.ascontiguousarray(vector, dtype=np.float32).tobytes(),),
        )
        return Hits([self._document(row[0]) for row in rows], [-float(row[1]) for row in rows])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """By rowid."""
        last = None
        while True:
            after = "" if last is None else f" where rowid > {int(last)}"
            part = (
                f"select rowid as number, vec_to_json({_quote(self.vector)}) as v{self._own}"
                f" from {_quote(self._table)}{after} order by rowid limit {int(size)}"
            )
            columns = f"select number, {self._id}, v from nearest{self._join} order by 1"
            rows = self._rows(f"with nearest as materialized ({part}) {columns}")
            if not rows:
                return
            last = rows[-1][0]
            vectors = np.array([json.loads(row[2]) for row in rows], dtype=np.float32)
            yield [self._document(row[1]) for row in rows], vectors

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return list(self._connection.execute(query, values))

    def _vector_columns(self) -> dict[str, str]:
        """Each vector column and its metric, L2 by default."""
        text = self._rows("select sql from sqlite_master where name = ?", (self._table,))[0][0]
        found = re.findall(
            r"[(,]\s*[\"\[`]?(\w+)[\"\]`]?\s+(?:float|int8|bit)\s*\[\s*\d+\s*\]([^,)]*)", text, flags=re.IGNORECASE
        )
        named = {name: re.search(r"distance_metric\s*=\s*(\w+)", rest, flags=re.IGNORECASE) for name, rest in found}
        return {name: metric[1].lower() if metric else "l2" for name, metric in named.items()}


def _quote(name: str) -> str:
    if '"' in name:
        raise InputError(f"{name!r} is not the name of a table or column")
    return f'"{name}"'
