"""A vec0 table of sqlite-vec that exists, in a database that is opened for reading."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from bakeoff.search.existing.base import BLOCK, Existing, ExistingIndex, known, path_of
from bakeoff.search.hits import Hits

MOST = 4096  # what vec0 answers at once


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
        self._table = known(self.collection, [str(row[0]) for row in tables], "vec0 table", "collection")
        self.vector = self.vector or self._vector_column()
        other, _, column = self.id.rpartition(".")
        self._join = f" join {_quoted(other)} on {_quoted(other)}.rowid = nearest.number" if other else ""
        self._id = f"{_quoted(other)}.{_quoted(column)}" if other else f"nearest.{_quoted(column)}"
        self._own = "" if other or column == "rowid" else f", {_quoted(column)}"
        if not other and column == "rowid":
            self._id = "nearest.number"
        row = self._rows(f"select count(*), max(vec_length({_quoted(self.vector)})) from {_quoted(self._table)}")[0]
        self.entries, self.dimensions = int(row[0]), int(row[1] or 0)

    @classmethod
    def default_id(cls) -> str:
        """vec0 has always that one."""
        return "rowid"

    def search(self, vector: Vectors, k: int) -> Hits:
        """By the table's own distance, as an application asks."""
        nearest = (
            f"select rowid as number, distance{self._own} from {_quoted(self._table)}"
            f" where {_quoted(self.vector)} match ? and k = {min(int(k), MOST)}"
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
                f"select rowid as number, vec_to_json({_quoted(self.vector)}) as v{self._own}"
                f" from {_quoted(self._table)}{after} order by rowid limit {int(size)}"
            )
            columns = f"select number, {self._id}, v from nearest{self._join} order by 1"
            rows = self._rows(f"with nearest as materialized ({part}) {columns}")
            if not rows:
                return
            last = rows[-1][0]
            vectors = np.array([json.loads(row[2]) for row in rows], dtype=np.float32)
            yield [self._document(row[1]) for row in rows], vectors

    def close(self) -> None:
        """The connection."""
        self._connection.close()

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return list(self._connection.execute(query, values))

    def _vector_column(self) -> str:
        import re

        text = self._rows("select sql from sqlite_master where name = ?", (self._table,))[0][0]
        names = re.findall(r"[(,]\s*[\"\[`]?(\w+)[\"\]`]?\s+(?:float|int8|bit)\s*\[", text, flags=re.IGNORECASE)
        return known("", names, "vector column", "vector")


def _quoted(name: str) -> str:
    if '"' in name:
        raise InputError(f"{name!r} is no name of a table or column")
    return f'"{name}"'
