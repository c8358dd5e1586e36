"""Stores of token vectors, searched by MaxSim.

A document's score is the sum, over the query's tokens, of the best match among its tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry, nearest
from msgspec import Meta
from numpy.typing import NDArray

from bakeoff.core.filters import Where, conditions, filterable, passes, tokens
from bakeoff.extensions.late_interaction.token_rows import TokenRows
from bakeoff.search.brute_force import Similarities
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Probes


def maxsim(query: Vectors, tokens: Vectors, begins: NDArray[np.integer]) -> Similarities:
    """MaxSim of documents with concatenated token vectors, which begin at `begins`."""
    if not len(begins):
        return np.empty(0, dtype=np.float32)
    best = np.maximum.reduceat(tokens @ query.T, begins, axis=0)
    scores: Similarities = best.sum(axis=1, dtype=np.float32)
    return scores


def maxsim_all(query: Vectors, rows: TokenRows) -> Similarities:
    """MaxSim of every document, in blocks."""
    return np.concatenate([maxsim(query, tokens, begins) for _, tokens, begins in rows.blocks()])


class TokenStore(Plugin, ABC):
    """A store of documents with one vector per token."""

    name: ClassVar[str]

    def __init__(self, *, folder: Path) -> None:
        self.folder = folder

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether results are exact."""

    @abstractmethod
    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Add all documents and build the index."""

    @abstractmethod
    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k best of those that pass the filter."""

    @abstractmethod
    def count(self) -> int:
        """The engine's own count of documents."""

    @abstractmethod
    def size_bytes(self) -> int:
        """The size of vectors and index."""

    def close(self) -> None:
        """Releases files."""


TOKEN_STORES: Registry[TokenStore] = Registry(
    "store of token vectors",
    "bakeoff.token_stores",
    {
        "exact": "bakeoff.extensions.late_interaction.stores:Exact",
        "lancedb": "bakeoff.extensions.late_interaction.stores:LanceTokens",
    },
    given=("folder",),
)


class Exact(TokenStore):
    """Stores nothing itself; reads the vectors where they were written."""

    name: ClassVar[str] = "exact"
    exact = True

    def __init__(self, *, folder: Path) -> None:
        super().__init__(folder=folder)
        self._ids: Sequence[str] = ()
        self._metadata: Sequence[Mapping[str, Any]] = ()
        self._rows: TokenRows | None = None

    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Keep references to the vectors."""
        self._ids, self._rows, self._metadata = ids, rows, metadata

    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """Score every document, then filter, so that nothing is lost."""
        assert self._rows is not None
        scores = maxsim_all(query, self._rows)
        if where:
            filters = conditions(where)
            out = [row for row, fields in enumerate(self._metadata) if not passes(fields, filters)]
            scores[out] = -np.inf
        order = np.argsort(-scores, kind="stable")[:k]
        order = order[np.isfinite(scores[order])]
        return Hits([self._ids[row] for row in order], scores[order].tolist())

    def count(self) -> int:
        """The documents whose vectors it reads."""
        return len(self._ids)

    def size_bytes(self) -> int:
        """Four bytes per number."""
        assert self._rows is not None
        return 4 * self._rows.count * self._rows.dimensions


TOKEN_INDEXES = {"IVF_SQ": "IvfSq", "IVF_RQ": "IvfRq", "IVF_PQ": "IvfPq"}
PER_LIST = 4096  # token vectors; LanceDB's own choice counts documents


class LanceTokens(TokenStore):
    """`index` "none" is exact. An index finds candidates by its codes, which are then rescored.

    Its own scores omit tokens that its lists did not find, so they are not MaxSim: every result is rescored.
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
            "none is exact; others use lists of int8, binary or product codes",
        ] = "none",
        nprobes: Probes = 20,
        refine_factor: Annotated[
            int, "candidates per result to rescore with all their vectors", Meta(ge=1, le=10_000)
        ] = 1,
    ) -> None:
        super().__init__(folder=folder)
        if index != "none" and index not in TOKEN_INDEXES:
            remedy = nearest(index, ["none", *TOKEN_INDEXES])
            raise InputError(f"lancedb has no index {index!r} of token vectors", place="index", remedy=remedy)
        self._index, self._nprobes, self._refine_factor = index, nprobes, refine_factor
        self._table: Any = None

    @property
    def exact(self) -> bool:
        """Exact without an index."""
        return self._index == "none"

    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Add the documents in blocks."""
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

            config = getattr(index, TOKEN_INDEXES[self._index])
            lists = max(1, rows.count // PER_LIST)
            self._table.create_index("vector", config=config(distance_type="cosine", num_partitions=lists))

    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """Its distance is the number of query tokens minus MaxSim, for inner products and cosines alike.

        Without an index, inner products take four fifths of the time. A multivector index supports cosines only.
        """
        metric = "dot" if self._index == "none" else "cosine"
        search = self._table.search(query, vector_column_name="vector", query_type="vector").distance_type(metric)
        clauses = [
            f"array_has_any(tokens, [{', '.join(map(_quote, condition.tokens()))}])" for condition in conditions(where)
        ]
        if clauses:
            search = search.where(" and ".join(clauses), prefilter=True)
        if self._index != "none":
            search = search.nprobes(self._nprobes).refine_factor(self._refine_factor)
        nearest = search.limit(k).select(["id", "_distance"]).to_arrow()
        return Hits(nearest["id"].to_pylist(), [len(query) - distance for distance in nearest["_distance"].to_pylist()])

    def count(self) -> int:
        """Rows of the table."""
        return int(self._table.count_rows())

    def size_bytes(self) -> int:
        """The size of its files."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())


def _quote(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"
