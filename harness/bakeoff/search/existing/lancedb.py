"""A LanceDB table that exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from bakeoff.search.existing.base import BLOCK, Existing, ExistingIndex, field_of, known, path_of
from bakeoff.search.hits import Hits


class ExistingLanceDB(ExistingIndex):
    """`existing` is the folder, `collection` the table, `id` and `vector` its columns.

    A table with an index is searched by the index's metric; without one `metric` counts ("l2" if nothing is said).
    """

    name: ClassVar[str] = "lancedb"
    extra: ClassVar[str | None] = "lancedb"
    modules: ClassVar[tuple[str, ...]] = ("lancedb", "pyarrow")

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        import lancedb
        import pyarrow

        connection = lancedb.connect(str(path_of(existing)))
        names = list(connection.table_names())
        self._table = connection.open_table(known(self.collection, names, "table", "collection"))
        schema = self._table.schema
        lists = [field.name for field in schema if pyarrow.types.is_fixed_size_list(field.type)]
        self.vector = known(self.vector, lists, "vector column", "vector")
        self._column, *self._fields = self.id.split(".")
        if self._column not in schema.names:
            raise InputError(f"there is no column {self._column!r}", place="id", remedy=f"one of: {schema.names}")
        self.dimensions, self.entries = int(schema.field(self.vector).type.list_size), int(self._table.count_rows())

    def search(self, vector: Vectors, k: int) -> Hits:
        """Distances, turned round."""
        query = self._table.search(vector, vector_column_name=self.vector)
        if self.metric:
            query = query.distance_type(self.metric)
        rows = query.select([self._column, "_distance"]).limit(k).to_arrow()
        return Hits(self._names(rows[self._column].to_pylist()), [-value for value in rows["_distance"].to_pylist()])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """In the order of the table."""
        for start in range(0, self.entries, size):
            rows = self._table.search().select([self._column, self.vector]).limit(size).offset(start).to_arrow()
            vectors = np.asarray(rows[self.vector].to_pylist(), dtype=np.float32)
            yield self._names(rows[self._column].to_pylist()), vectors

    def documents(self) -> set[str]:
        """Without the vectors."""
        rows = self._table.search().select([self._column]).limit(max(self.entries, 1)).to_arrow()
        return set(self._names(rows[self._column].to_pylist()))

    def _names(self, values: list[Any]) -> list[str]:
        return [self._document(field_of(value, self._fields) if self._fields else value) for value in values]
