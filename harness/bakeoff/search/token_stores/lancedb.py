"""LanceDB's multivector column: many vectors in one row, compared by MaxSim of cosines inside the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from bakeoff.core.filters import Where, conditions, filterable, tokens
from bakeoff.embedding.token_rows import TokenRows
from bakeoff.search.hits import Hits
from bakeoff.search.stores.lancedb import quoted
from bakeoff.search.stores.shared_options import Probes
from bakeoff.search.token_stores.base import TokenStore


class LanceTokens(TokenStore):
    """`index` "none" compares with everything; "IVF_PQ" with what its lists hold, again with the originals."""

    name: ClassVar[str] = "lancedb"
    extra: ClassVar[str | None] = "lancedb"
    modules: ClassVar[tuple[str, ...]] = ("lancedb", "pyarrow")
    distributions: ClassVar[tuple[str, ...]] = ("lancedb",)

    def __init__(
        self,
        *,
        folder: Path,
        index: Annotated[str, "none compares with everything; IVF_PQ with what its lists hold"] = "none",
        nprobes: Probes = 20,
        refine_factor: Annotated[int, "how many times k are compared again with the vectors themselves"] = 5,
    ) -> None:
        super().__init__(folder=folder)
        if index not in ("none", "IVF_PQ"):
            raise InputError(f"unknown index {index!r}", place="index", remedy='"none" or "IVF_PQ"')
        self._index, self._nprobes, self._refine_factor = index, nprobes, refine_factor
        self._table: Any = None

    @property
    def exact(self) -> bool:
        """Without an index."""
        return self._index == "none"

    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """A block of documents at a time."""
        import lancedb
        import pyarrow

        vector = pyarrow.list_(pyarrow.float32(), rows.dimensions)
        texts = pyarrow.list_(pyarrow.string())
        schema = pyarrow.schema([("id", pyarrow.string()), ("tokens", texts), ("vector", pyarrow.list_(vector))])
        self._table = lancedb.connect(self.folder).create_table("documents", schema=schema)
        for first, vectors, begins in rows.blocks():
            part = slice(first, first + len(begins))
            flat = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), rows.dimensions)
            offsets = pyarrow.array([*begins.tolist(), len(vectors)], pyarrow.int32())
            fields = [tokens(filterable(document)) for document in metadata[part]]
            columns = {
                "id": pyarrow.array(list(ids[part]), pyarrow.string()),
                "tokens": pyarrow.array(fields, texts),
                "vector": pyarrow.ListArray.from_arrays(offsets, flat),
            }
            self._table.add(pyarrow.table(columns, schema=schema))
        if self._index != "none":
            from lancedb import index

            self._table.create_index("vector", config=index.IvfPq(distance_type="cosine"))

    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """Its distance is the number of the query's tokens less MaxSim."""
        search = self._table.search(query, vector_column_name="vector", query_type="vector").distance_type("cosine")
        clauses = [
            f"array_has_any(tokens, [{', '.join(map(quoted, condition.tokens()))}])" for condition in conditions(where)
        ]
        if clauses:
            search = search.where(" and ".join(clauses), prefilter=True)
        if self._index != "none":
            search = search.nprobes(self._nprobes).refine_factor(self._refine_factor)
        found = search.limit(k).select(["id", "_distance"]).to_arrow()
        return Hits(found["id"].to_pylist(), [len(query) - distance for distance in found["_distance"].to_pylist()])

    def size_bytes(self) -> int:
        """Its files."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
