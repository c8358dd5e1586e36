"""LanceDB in this process: columnar files with an index, and existing tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest
from msgspec import Meta

from bakeoff.core.filters import Condition, Metadata, tokens
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import (
    POOL,
    C,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    HybridStore,
    M,
    Probes,
    SearchKind,
    SizeModel,
    bit_codes,
    bit_similarity,
    graph_bytes,
)
from bakeoff.search.stores.existing import BLOCK, Existing, ExistingIndex, choose_name, field_of, path_of
from bakeoff.search.variants import Precision

TRAINABLE = 256  # fewer rows can't train a quantiser and need no index
Index = Literal["none", "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
# An index's name → its configuration class, and its bytes per component of a vector.
INDEXES: dict[str, tuple[str, float]] = {
    "IVF_FLAT": ("IvfFlat", 4.0),
    "IVF_SQ": ("IvfSq", 1.0),
    "IVF_PQ": ("IvfPq", 1 / 16),
    "IVF_HNSW_SQ": ("HnswSq", 1.0),
    "IVF_HNSW_PQ": ("HnswPq", 1 / 16),
}
METRICS = {"cosine": "cosine", "l2": "l2", "ip": "dot"}  # of existing tables, in LanceDB's words


class LanceDB(HybridStore):
    """Filters apply before the search; afterwards they would lose two thirds of the results. `index` "none" is exact.

    `type` "bit" stores sign bits, compared by Hamming distance, with IVF_FLAT or no index. `refine_factor` 0 scores by
    the index's codes alone; other values rescore with the vectors.
    """

    name = "lancedb"
    extra = "lancedb"
    modules = ("lancedb", "pyarrow")
    distributions = ("lancedb",)
    reads_while_writing = True
    query_options = ("nprobes", "ef", "refine_factor")
    named_by_value = ("index", "type")
    build_grid: ClassVar[Grid] = {"index": ("none", "IVF_HNSW_SQ", "IVF_SQ", "IVF_PQ")}

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        index: Annotated[Index, "index type; none is exact"] = "IVF_HNSW_SQ",
        type: Annotated[Literal["float", "bit"], "floats, or sign bits by Hamming distance"] = "float",
        search: SearchKind = "vectors",
        m: M = 20,
        ef_construction: EfConstruction = 300,
        partitions: Annotated[int | None, "number of lists; LanceDB chooses if left out"] = None,
        nprobes: Probes = 20,
        ef: Ef = 100,
        refine_factor: Annotated[int, "candidates per result to rescore exactly; 0: none", Meta(ge=0, le=10_000)] = 5,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import lancedb
        import pyarrow

        if index != "none" and index not in INDEXES:
            raise InputError(f"lancedb has no index {index!r}", remedy=nearest(index, ["none", *INDEXES]))
        if type not in ("float", "bit"):
            raise InputError(f"lancedb has no type {type!r}", remedy='use "float" or "bit"')
        if type == "bit" and index not in ("IVF_FLAT", "none"):
            raise InputError(f"lancedb has no {index} for bit vectors", remedy='use index = "IVF_FLAT" or "none"')
        self._texts = search == "hybrid"
        self._bits, self._metric = type == "bit", "hamming" if type == "bit" else "cosine"
        self.index, self.m, self.ef_construction, self.partitions = index, m, ef_construction, partitions
        self.nprobes, self.ef, self.refine_factor = nprobes, ef, refine_factor
        self._schema = pyarrow.schema(
            [
                ("id", pyarrow.string()),
                ("tokens", pyarrow.list_(pyarrow.string())),
                (
                    "vector",
                    pyarrow.list_(pyarrow.uint8(), math.ceil(dimensions / 8))
                    if self._bits
                    else pyarrow.list_(pyarrow.float32(), dimensions),
                ),
                *([("text", pyarrow.string())] if search == "hybrid" else []),
            ]
        )
        self._table = lancedb.connect(folder).create_table("documents", schema=self._schema, exist_ok=True)
        self._covered = self._is_indexed()

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Bits in the column, or int8 in the index."""
        if precision == "binary":
            return {**options, "type": "bit", "index": "none"} if options.get("index", "none") == "none" else None
        index = options.get("index", "IVF_HNSW_SQ")
        return {**options, "index": index, "refine_factor": 0} if index.endswith("_SQ") else None

    @classmethod
    def keeps_originals(cls, precision: Precision) -> bool:
        """int8 codes are in the index; the column keeps the vectors."""
        return precision == "int8"

    @property
    def capabilities(self) -> Capabilities:
        """Exact without an index."""
        exact = self.index == "none" and not self._bits
        return Capabilities(exact=exact, filters=True, persistent=True, updates=True, in_process=True)

    def tunings(self) -> Grid:
        """Lists, candidates, and the refine factor."""
        if self.index == "none":
            return {}
        graph = {"ef": (32, 64, 128, 256)} if "HNSW" in self.index else {"nprobes": (1, 2, 4, 8, 16, 32)}
        return {**graph, "refine_factor": (1, 5)}

    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        """Upsert by merge_insert, since add would duplicate rows."""
        import pyarrow

        coded = bit_codes(vectors) if self._bits else vectors
        rows = pyarrow.table(
            {
                "id": pyarrow.array(list(ids), pyarrow.string()),
                "tokens": pyarrow.array([tokens(document) for document in metadata], pyarrow.list_(pyarrow.string())),
                "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(coded.reshape(-1)), coded.shape[1]),
            }
            | ({"text": pyarrow.array(list(texts), pyarrow.string())} if self._texts else {}),
            schema=self._schema,
        )
        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows)
        self._covered = False

    def _delete(self, ids: list[str]) -> None:
        for start in range(0, len(ids), 1000):
            self._table.delete(f"id in ({', '.join(map(quote, ids[start : start + 1000]))})")

    def build(self) -> None:
        """Index vectors, fields and words. Rows added later are scanned."""
        if self._texts:
            self._index_words()
        if self.index == "none" or self._table.count_rows() < TRAINABLE:
            return
        from lancedb import index

        graph = {"m": self.m, "ef_construction": self.ef_construction} if "HNSW" in self.index else {}
        config = getattr(index, INDEXES[self.index][0])
        self._table.create_index(
            "vector", config=config(distance_type=self._metric, num_partitions=self.partitions, **graph)
        )
        self._table.create_index("tokens", config=index.LabelList())
        self._covered = self._is_indexed()

    def _is_indexed(self) -> bool:
        stats = self._table.index_stats("vector_idx")
        return stats is not None and stats.num_unindexed_rows == 0

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """If the index returns fewer than k, repeat the search without it."""
        ef = max(self.ef, k * max(self.refine_factor, 1))  # LanceDB refuses a shorter candidate list
        search = self._query(vector, k, filters).nprobes(self.nprobes).ef(ef)
        if self.refine_factor and not self._bits:
            search = search.refine_factor(self.refine_factor)
        hits = self._hits(search, coded=not self.refine_factor)
        if len(hits.ids) < k and self._table.list_indices():
            return self._hits(self._query(vector, k, filters).bypass_vector_index())
        return hits

    def _index_words(self) -> None:
        from lancedb.index import FTS

        self._table.create_index("text", config=FTS(language="English", stem=True, remove_stop_words=True))

    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """Two lists of equal length, fused by LanceDB's own reranker."""
        from lancedb.query import MatchQuery
        from lancedb.rerankers import RRFReranker

        if not any(index.columns == ["text"] for index in self._table.list_indices()):
            self._index_words()
        search = self._table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
        asked = bit_codes(vector) if self._bits else vector
        query = search.vector(asked).text(MatchQuery(text, "text")).distance_type(self._metric)
        query = query.rerank(RRFReranker(K=C)).limit(max(k, POOL))
        if clauses := _clauses(filters):
            query = query.where(clauses, prefilter=True)
        if not self._bits:
            refine = max(self.refine_factor, 1)
            query = query.nprobes(self.nprobes).ef(max(self.ef, max(k, POOL) * refine)).refine_factor(refine)
        rows = query.to_arrow()  # all columns, since LanceDB warns about any selection
        return Hits(rows["id"].to_pylist()[:k], rows["_relevance_score"].to_pylist()[:k])

    def _query(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Any:
        asked = bit_codes(vector) if self._bits else vector
        query = self._table.search(asked, vector_column_name="vector", query_type="vector").distance_type(self._metric)
        if clauses := _clauses(filters):
            query = query.where(clauses, prefilter=True)
        return query.limit(k).select(["id", "_distance"])

    def _hits(self, query: Any, *, coded: bool = False) -> Hits:
        """Scores by codes alone are squared distances of unit vectors, which are 2 · (1 − cosine).

        That holds only while the index covers every row; otherwise LanceDB compares with the vectors.
        """
        rows = query.to_arrow()
        distances = rows["_distance"].to_pylist()
        if self._bits:
            return Hits(rows["id"].to_pylist(), [bit_similarity(distance, self.dimensions) for distance in distances])
        halved = 2 if coded and self._covered else 1
        return Hits(rows["id"].to_pylist(), [1.0 - distance / halved for distance in distances])

    def count(self) -> int:
        """The number of rows."""
        return int(self._table.count_rows())

    def on_disk(self) -> bool:
        """Tables are folders."""
        return True

    def size_model(self) -> SizeModel:
        """The columns, and the index's quantised copy of the vectors."""
        if self._bits:
            return SizeModel(self.dimensions / 8, 0, "n · d/8")
        if self.index == "none":
            return SizeModel(4 * self.dimensions, 0, "n · 4d")
        code = INDEXES[self.index][1] * self.dimensions
        if "HNSW" in self.index:
            graph = graph_bytes(self.dimensions, self.m, vector_bytes=code)
            return SizeModel(4 * self.dimensions + graph.per_document, 0, f"n · 4d + {graph.formula}")
        return SizeModel(4 * self.dimensions + code + 8, 0, f"n · (4d + {code:g} + 8)")


def _clauses(filters: Sequence[Condition]) -> str:
    return " and ".join(
        f"array_has_any(tokens, [{', '.join(map(quote, condition.tokens()))}])" for condition in filters
    )


def quote(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


class ExistingLanceDB(ExistingIndex):
    """`existing` is the folder, `collection` the table, `id` and `vector` its columns.

    A table with an index uses the index's metric, otherwise `metric` (default "l2").
    """

    name: ClassVar[str] = "lancedb"
    extra: ClassVar[str | None] = "lancedb"
    modules: ClassVar[tuple[str, ...]] = ("lancedb", "pyarrow")

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        if self.metric and self.metric not in METRICS:
            raise InputError(f"unknown metric {self.metric!r}", place="metric", remedy=f"one of: {', '.join(METRICS)}")
        import lancedb
        import pyarrow

        connection = lancedb.connect(str(path_of(existing)))
        names = list(connection.table_names())
        self._table = connection.open_table(choose_name(self.collection, names, "table", "collection"))
        schema = self._table.schema
        lists = [field.name for field in schema if pyarrow.types.is_fixed_size_list(field.type)]
        self.vector = choose_name(self.vector, lists, "vector column", "vector")
        self._column, *self._fields = self.id.split(".")
        if self._column not in schema.names:
            raise InputError(f"there is no column {self._column!r}", place="id", remedy=f"one of: {schema.names}")
        if own := self._index_metric():
            self._compare_by(own)
        self.metric = self.metric or "l2"
        self.dimensions, self.entries = int(schema.field(self.vector).type.list_size), int(self._table.count_rows())

    def search(self, vector: Vectors, k: int) -> Hits:
        """Negated distances as scores."""
        query = self._table.search(vector, vector_column_name=self.vector).distance_type(METRICS[self.metric])
        rows = query.select([self._column, "_distance"]).limit(k).to_arrow()
        return Hits(self._names(rows[self._column].to_pylist()), [-value for value in rows["_distance"].to_pylist()])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """In table order."""
        for start in range(0, self.entries, size):
            rows = self._table.search().select([self._column, self.vector]).limit(size).offset(start).to_arrow()
            vectors = np.asarray(rows[self.vector].to_pylist(), dtype=np.float32)
            yield self._names(rows[self._column].to_pylist()), vectors

    def documents(self) -> set[str]:
        """Without the vectors."""
        rows = self._table.search().select([self._column]).limit(max(self.entries, 1)).to_arrow()
        return set(self._names(rows[self._column].to_pylist()))

    def _index_metric(self) -> str:
        """ "" without an index on the vectors."""
        names = {own: ours for ours, own in METRICS.items()}
        for index in self._table.list_indices():
            if index.columns == [self.vector]:
                statistics = self._table.index_stats(index.name)
                return names[statistics.distance_type]
        return ""

    def _names(self, values: list[Any]) -> list[str]:
        return [self._document(field_of(value, self._fields) if self._fields else value) for value in values]
