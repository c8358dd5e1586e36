"""A pgvector table that exists, read in transactions that can't write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.search.existing.base import BLOCK, Existing, ExistingIndex, known
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.pgvector import URL
from bakeoff.search.stores.pgvector_connection import connected
from bakeoff.search.stores.servers import server_url

OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>", "l1": "<+>"}


class ExistingPgVector(ExistingIndex):
    """`existing` is the address without a password (or "env": PGVECTOR_URL), `collection` the table.

    `id` is a column, or "column.key" inside a JSON column; `vector` is needed where there are several such columns.
    The metric must be that of the table's index, or PostgreSQL compares with every row.
    """

    name: ClassVar[str] = "pgvector"
    extra: ClassVar[str | None] = "pgvector"
    modules: ClassVar[tuple[str, ...]] = ("psycopg", "pgvector")
    in_files: ClassVar[bool] = False
    asked_by_metric: ClassVar[bool] = True

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        import psycopg
        from pgvector.psycopg import register_vector
        from psycopg import sql

        if self.metric and self.metric not in OPERATORS:
            raise InputError(f"pgvector has no metric {self.metric!r}", remedy=f"one of: {', '.join(OPERATORS)}")
        self._operator = OPERATORS[self.metric or "cosine"]
        address = server_url("" if existing == "env" else existing, URL)
        if not address:
            raise Unavailable(f"{URL} is not set")
        try:
            self._connection = connected(address, lambda: servers.SCAN)
        except psycopg.OperationalError as error:
            raise Unavailable(f"pgvector: {str(error).splitlines()[0]}") from None
        self._connection.execute("set session characteristics as transaction read only")
        register_vector(self._connection)
        self._table = sql.Identifier(*self._chosen_table().split("."))
        column, *keys = self.id.split(".")
        steps = [sql.SQL("->>") if last else sql.SQL("->") for last in [False] * (len(keys) - 1) + [True] * bool(keys)]
        parts = [sql.SQL("{}{}").format(step, sql.Literal(key)) for step, key in zip(steps, keys, strict=True)]
        self._id = sql.SQL("").join([sql.Identifier(column), *parts])
        self._vector = sql.Identifier(self.vector or self._vector_column())
        self._sql = sql
        row = self._one("select count(*), max(vector_dims({vector})) from {table}")
        self.entries, self.dimensions = int(row[0]), int(row[1] or 0)

    def search(self, vector: Vectors, k: int) -> Hits:
        """Smaller distances are nearer, whatever the metric."""
        query = "select {id}, {vector} {operator} %s as distance from {table} order by distance limit %s"
        rows = self._connection.execute(self._text(query), (vector, k)).fetchall()
        return Hits([self._document(row[0]) for row in rows], [-float(row[1]) for row in rows])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """Through a cursor on the server."""
        with self._connection.transaction(), self._connection.cursor(name="bakeoff_blocks") as cursor:
            cursor.execute(self._text("select {id}, {vector} from {table}"))
            while rows := cursor.fetchmany(size):
                yield [self._document(row[0]) for row in rows], np.stack([_array(row[1]) for row in rows])

    def documents(self) -> set[str]:
        """Without the vectors."""
        rows = self._connection.execute(self._text("select distinct {id} from {table}")).fetchall()
        return {self._document(row[0]) for row in rows}

    def close(self) -> None:
        """The connection."""
        self._connection.close()

    def _text(self, query: str) -> Any:
        operator = self._sql.SQL(self._operator)
        return self._sql.SQL(query).format(id=self._id, vector=self._vector, table=self._table, operator=operator)

    def _one(self, query: str) -> Any:
        return self._connection.execute(self._text(query)).fetchone()

    def _chosen_table(self) -> str:
        rows = self._connection.execute(
            "select distinct table_schema, table_name from information_schema.columns where udt_name = 'vector'"
        ).fetchall()
        names = [table if schema == "public" else f"{schema}.{table}" for schema, table in rows]
        return known(self.collection, names, "table with vectors", "collection")

    def _vector_column(self) -> str:
        table = self._chosen_table().rpartition(".")[2]
        rows = self._connection.execute(
            "select column_name from information_schema.columns where udt_name = 'vector' and table_name = %s", (table,)
        ).fetchall()
        return known("", [row[0] for row in rows], "vector column", "vector")


def _array(value: Any) -> Any:
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value, dtype=np.float32)
