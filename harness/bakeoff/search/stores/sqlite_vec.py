"""sqlite-vec: exact search inside SQLite. By apsw, since Python's own sqlite3 may refuse extensions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bakeoff_providers.base import Vectors

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Capabilities, SizeModel, Store

MOST = 4096  # sqlite-vec answers no larger k; beyond, its distance function and a sort do


class SqliteVec(Store):
    """One file, every vector compared with. Filters become a set of rows before the search."""

    name = "sqlite_vec"
    extra = "sqlite-vec"
    modules = ("sqlite_vec", "apsw")
    distributions = ("sqlite-vec",)
    capabilities = Capabilities(exact=True, filters=True, persistent=True, updates=True, in_process=True)

    def __init__(self, *, dimensions: int, folder: Path) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self._local = threading.local()
        self._open: list[Any] = []
        with self._connection as connection:
            connection.execute(
                "create table if not exists documents (number integer primary key, id text not null unique);"
                "create table if not exists tokens (token text, number integer, primary key (token, number))"
                " without rowid;"
                "create index if not exists tokens_by_number on tokens (number);"
                "create virtual table if not exists vectors using vec0"
                f"(embedding float[{int(dimensions)}] distance_metric=cosine)"
            )

    @property
    def _connection(self) -> Any:
        """One for each thread: they read at the same time."""
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
        """vec0 knows no upsert: what is there goes first, in the same transaction."""
        with self._connection as connection:
            self._forget(connection, list(ids))
            first = next(connection.execute("select coalesce(max(number), 0) + 1 from documents"))[0]
            numbers = range(first, first + len(ids))
            connection.executemany("insert into documents values (?, ?)", zip(numbers, ids, strict=True))
            connection.executemany(
                "insert into vectors (rowid, embedding) values (?, ?)",
                ((number, vector.tobytes()) for number, vector in zip(numbers, vectors, strict=True)),
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
        """Distances are 1 − cosine."""
        passing, values = _passing(filters)
        if k <= MOST:
            limit = f" and rowid in ({passing})" if passing else ""
            nearest = f"select rowid as number, distance from vectors where embedding match ? and k = {int(k)}{limit}"
        else:
            limit = f" where rowid in ({passing})" if passing else ""
            nearest = (
                f"select rowid as number, vec_distance_cosine(embedding, ?) as distance from vectors{limit}"
                f" order by distance limit {int(k)}"
            )
        rows = list(
            self._connection.execute(
                f"with nearest as materialized ({nearest})"
                " select id, 1.0 - distance from nearest join documents using (number)",
                (vector.tobytes(), *values),
            )
        )
        return Hits([row[0] for row in rows], [row[1] for row in rows])

    def size_bytes(self) -> int:
        """The file, with the log written into it."""
        self._connection.execute("pragma wal_checkpoint(truncate)")
        return super().size_bytes() or 0

    def size_model(self) -> SizeModel:
        """The vectors and nothing else."""
        return SizeModel(4 * self.dimensions, 0, "n · 4d")

    def close(self) -> None:
        """All threads' connections."""
        for connection in self._open:
            connection.close()
        self._open.clear()


def _passing(filters: Sequence[Condition]) -> tuple[str, list[str]]:
    """The rows that meet all conditions, as SQL with its values."""
    wanted = [condition.tokens() for condition in filters]
    parts = [f"select number from tokens where token in ({', '.join('?' * len(allowed))})" for allowed in wanted]
    return " intersect ".join(parts), [token for allowed in wanted for token in allowed]
