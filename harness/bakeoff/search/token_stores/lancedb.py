"""LanceDB's multivector column: many vectors in one row, compared by MaxSim inside the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest
from msgspec import Meta

from bakeoff.core.filters import Where, conditions, filterable, tokens
from bakeoff.embedding.token_rows import TokenRows
from bakeoff.search.hits import Hits
from bakeoff.search.stores.lancedb import quoted
from bakeoff.search.stores.shared_options import Probes
from bakeoff.search.token_stores.base import TokenStore

INDEXES = {"IVF_SQ": "IvfSq", "IVF_RQ": "IvfRq", "IVF_PQ": "IvfPq"}
PER_LIST = 4096  # token vectors; LanceDB's own choice counts documents


class LanceTokens(TokenStore):
    """`index` "none" compares with everything. An index finds candidates by its codes, and these are compared again.

    Its own scores leave out tokens that its lists did not find, so they are no MaxSim: every answer is refined.
    """

    name: ClassVar[str] = "lancedb"
    extra: ClassVar[str | None] = "lancedb"
    modules: ClassVar[tuple[str, ...]] = ("lancedb", "pyarrow")
    distributions: ClassVar[tuple[str, ...]] = ("lancedb",)

    def __init__(
        self,
        *,
        folder: Path,
        index: Annotated[
            Literal["none", "IVF_SQ", "IVF_RQ", "IVF_PQ"],
            "none compares with everything; the others with bytes, bits or a code book's codes, in lists",
        ] = "none",
        nprobes: Probes = 20,
        refine_factor: Annotated[
            int, "candidates per wanted document that are compared again with all their vectors", Meta(ge=1, le=10_000)
        ] = 1,
    ) -> None:
        super().__init__(folder=folder)
        if index != "none" and index not in INDEXES:
            remedy = nearest(index, ["none", *INDEXES])
            raise InputError(f"lancedb has no index {index!r} of token vectors", place="index", remedy=remedy)
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

            config = getattr(index, INDEXES[self._index])
            lists = max(1, rows.count // PER_LIST)
            self._table.create_index("vector", config=config(distance_type="cosine", num_partitions=lists))

    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """Its distance is the number of the query's tokens less MaxSim, by products as by cosines of unit vectors.

        Without an index products take four fifths of the time; an index over many vectors is of cosines alone.
        """
        metric = "dot" if self._index == "none" else "cosine"
        search = self._table.search(query, vector_column_name="vector", query_type="vector").distance_type(metric)
        clauses = [
            f"array_has_any(tokens, [{', '.join(map(quoted, condition.tokens()))}])" for condition in conditions(where)
        ]
        if clauses:
            search = search.where(" and ".join(clauses), prefilter=True)
        if self._index != "none":
            search = search.nprobes(self._nprobes).refine_factor(self._refine_factor)
        nearest = search.limit(k).select(["id", "_distance"]).to_arrow()
        return Hits(nearest["id"].to_pylist(), [len(query) - distance for distance in nearest["_distance"].to_pylist()])

    def size_bytes(self) -> int:
        """Its files."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
