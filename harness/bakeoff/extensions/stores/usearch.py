"""USearch in this process: an HNSW graph, with 32, 16, 8 or 1 bits per number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, assert_never

import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.search.stores.base import (
    CANDIDATES,
    LINKS,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    M,
    SizeModel,
    bit_codes,
    bit_similarity,
    graph_bytes,
    int8_codes,
    signs,
)
from bakeoff.search.stores.numbered import Labels, Neighbours, NumberedStore
from bakeoff.search.variants import Precision

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "b1": 1 / 8}
TYPES: dict[Precision, str] = {"int8": "i8", "binary": "b1"}


class USearch(NumberedStore):
    """Built by one thread, so that a rebuild gives the same graph.

    usearch's own int8 quantisation scales unit vectors by 127, which leaves most of the range unused. Ours uses all of
    it.
    """

    name = "usearch"
    extra = "usearch"
    modules = ("usearch",)
    distributions = ("usearch",)
    query_options = ("ef",)
    build_grid: ClassVar[Grid] = {"connectivity": LINKS, "dtype": ("f32", "i8")}
    query_grid: ClassVar[Grid] = {"ef": CANDIDATES}
    # The engine has no filter in its Python interface.
    capabilities = Capabilities(exact=False, filters=False, persistent=True, updates=True, in_process=True)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        connectivity: M = 16,
        ef_construction: EfConstruction = 128,
        dtype: Annotated[Literal["f32", "f16", "bf16", "i8", "b1"], "number type of the stored vectors"] = "f32",
        ef: Ef = 64,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        from usearch.index import Index

        self.connectivity, self.ef = connectivity, ef
        self.dtype = dtype
        self._index = Index(
            ndim=8 * math.ceil(dimensions / 8) if dtype == "b1" else dimensions,  # bits are packed into whole bytes
            metric="hamming" if dtype == "b1" else "cos",
            dtype=dtype,
            connectivity=connectivity,
            expansion_add=ef_construction,
            expansion_search=ef,
        )
        if self._index_file.is_file():
            self._index.load(str(self._index_file))
            self._apply_tuning()

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Through `dtype`."""
        return {**options, "dtype": TYPES[precision]}

    def _encode(self, vectors: Vectors) -> NDArray[Any]:
        match self.dtype:
            case "i8":
                return int8_codes(vectors)
            case "b1":
                return bit_codes(vectors)
            case "f32" | "f16" | "bf16":
                return vectors
            case _:
                assert_never(self.dtype)

    def _apply_tuning(self) -> None:
        self._index.expansion_search = self.ef

    def _insert(self, labels: Labels, vectors: Vectors) -> None:
        self._index.add(labels.astype(np.uint64), self._encode(vectors), threads=1)

    def _remove(self, labels: Labels) -> None:
        if len(labels):
            self._index.remove(labels.astype(np.uint64), threads=1)

    def count(self) -> int:
        """Vectors that were not removed."""
        return len(self._index)

    def _nearest(self, vector: Vectors, k: int) -> Neighbours:
        """Fall back to a full scan if the graph, after deletions, finds fewer than k."""
        k = min(k, len(self._ids))
        matches = self._index.search(self._encode(vector), k, threads=1)
        if len(matches.keys) < k:
            return self._scan(vector, k, np.flatnonzero(self._ids.mask(())))
        bits = self.dtype == "b1"
        scores = bit_similarity(matches.distances, self.dimensions) if bits else 1 - matches.distances
        return matches.keys.astype(np.int64), scores

    def _vectors(self, labels: Labels) -> Vectors:
        keys = labels.astype(np.uint64)
        match self.dtype:
            case "i8":
                codes = np.asarray(self._index.get(keys, dtype="i8"), dtype=np.float32)
                return np.asarray(codes / np.linalg.norm(codes, axis=1, keepdims=True), dtype=np.float32)
            case "b1":
                return signs(np.asarray(self._index.get(keys, dtype="b1"), dtype=np.uint8), self.dimensions)
            case "f32" | "f16" | "bf16":
                return np.asarray(self._index.get(keys, dtype="f32"), dtype=np.float32)
            case _:
                assert_never(self.dtype)

    def _save(self, file: Path) -> None:
        self._index.save(str(file))

    def size_bytes(self) -> int:
        """The size of the index file."""
        return int(self._index.serialized_length)

    def size_model(self) -> SizeModel:
        """The graph and its vectors."""
        return graph_bytes(self.dimensions, self.connectivity, vector_bytes=BYTES[self.dtype] * self.dimensions)
