"""LanceDB in this process: columnar files, with an index over them once it is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Capabilities, Grid, SizeModel, Store, graph_bytes

TRAINABLE = 256  # fewer rows than this train no quantiser, and need no index
# An index's name → its configuration class, and its bytes per component of a vector.
INDEXES = {
    "IVF_FLAT": ("IvfFlat", 4.0),
    "IVF_SQ": ("IvfSq", 1.0),
    "IVF_PQ": ("IvfPq", 1 / 16),
    "IVF_HNSW_SQ": ("HnswSq", 1.0),
    "IVF_HNSW_PQ": ("HnswPq", 1 / 16),
}


class LanceDB(Store):
    """Filters come before the search: after it, they would lose two thirds of the answers. `index` "none" is exact."""

    name = "lancedb"
    extra = "lancedb"
    modules = ("lancedb", "pyarrow")
    distributions = ("lancedb",)
    query_options = ("nprobes", "ef", "refine_factor")
    named_by_value = ("index",)
    build_grid: ClassVar[Grid] = {"index": ("none", "IVF_HNSW_SQ", "IVF_SQ", "IVF_PQ")}

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        index: str = "IVF_HNSW_SQ",
        m: int = 20,
        ef_construction: int = 300,
        partitions: int | None = None,
        nprobes: int = 20,
        ef: int = 100,
        refine_factor: int = 5,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import lancedb
        import pyarrow

        if index != "none" and index not in INDEXES:
            raise InputError(f"lancedb has no index {index!r}", remedy=nearest(index, ["none", *INDEXES]))
        self.index, self.m, self.ef_construction, self.partitions = index, m, ef_construction, partitions
        self.nprobes, self.ef, self.refine_factor = nprobes, ef, refine_factor
        self._schema = pyarrow.schema(
            [
                ("id", pyarrow.string()),
                ("tokens", pyarrow.list_(pyarrow.string())),
                ("vector", pyarrow.list_(pyarrow.float32(), dimensions)),
            ]
        )
        self._table = lancedb.connect(folder).create_table("documents", schema=self._schema, exist_ok=True)

    @property
    def capabilities(self) -> Capabilities:
        """Exact as long as no index is built."""
        return Capabilities(exact=self.index == "none", filters=True, persistent=True, updates=True, in_process=True)

    def tunings(self) -> Grid:
        """Lists, candidates, and how many times k is compared again with the originals."""
        if self.index == "none":
            return {}
        graph = {"ef": (32, 64, 128, 256)} if "HNSW" in self.index else {"nprobes": (1, 2, 4, 8, 16, 32)}
        return {**graph, "refine_factor": (1, 5)}

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """merge_insert replaces; add would keep both."""
        import pyarrow

        rows = pyarrow.table(
            {
                "id": pyarrow.array(list(ids), pyarrow.string()),
                "tokens": pyarrow.array([tokens(document) for document in metadata], pyarrow.list_(pyarrow.string())),
                "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), self.dimensions),
            },
            schema=self._schema,
        )
        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows)

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), 1000):
            self._table.delete(f"id in ({', '.join(map(_quoted, ids[start : start + 1000]))})")

    def build(self) -> None:
        """Indexes the vectors and the fields; rows that come later are compared one by one."""
        if self.index == "none" or self._table.count_rows() < TRAINABLE:
            return
        from lancedb import index

        graph = {"m": self.m, "ef_construction": self.ef_construction} if "HNSW" in self.index else {}
        config = getattr(index, INDEXES[self.index][0])
        self._table.create_index(
            "vector", config=config(distance_type="cosine", num_partitions=self.partitions, **graph)
        )
        self._table.create_index("tokens", config=index.LabelList())

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Where the index answers fewer than asked for, the search is repeated without it."""
        ef = max(self.ef, k * self.refine_factor)  # it refuses a shorter list than it is asked for
        search = self._query(vector, k, filters).nprobes(self.nprobes).ef(ef).refine_factor(self.refine_factor)
        hits = _hits(search)
        if len(hits.ids) < k and self._table.list_indices():
            return _hits(self._query(vector, k, filters).bypass_vector_index())
        return hits

    def _query(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Any:
        query = self._table.search(vector, vector_column_name="vector", query_type="vector").distance_type("cosine")
        clauses = [f"array_has_any(tokens, [{', '.join(map(_quoted, condition.tokens()))}])" for condition in filters]
        if clauses:
            query = query.where(" and ".join(clauses), prefilter=True)
        return query.limit(k).select(["id", "_distance"])

    def size_model(self) -> SizeModel:
        """The columns, and the index's own copy of the vectors in fewer bits."""
        if self.index == "none":
            return SizeModel(4 * self.dimensions, 0, "n · 4d")
        code = INDEXES[self.index][1] * self.dimensions
        if "HNSW" in self.index:
            graph = graph_bytes(self.dimensions, self.m, vector_bytes=code)
            return SizeModel(4 * self.dimensions + graph.per_document, 0, f"n · 4d + {graph.formula}")
        return SizeModel(4 * self.dimensions + code + 8, 0, f"n · (4d + {code:g} + 8)")


def _hits(query: Any) -> Hits:
    rows = query.to_arrow()
    return Hits(rows["id"].to_pylist(), [1.0 - distance for distance in rows["_distance"].to_pylist()])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
