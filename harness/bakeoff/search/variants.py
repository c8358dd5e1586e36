"""Smaller vectors from those in the cache: fewer dimensions, int8, binary. Each is a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from bakeoff.embedding.unit import unit
from bakeoff.embedding.vector_rows import VectorRows

Precision = Literal["float32", "int8", "binary"]
_STEPS = 255  # as FAISS counts them: a dimension's maximum has a code of its own
_BITS: dict[Precision, int] = {"float32": 32, "int8": 8, "binary": 1}


@dataclass(frozen=True, slots=True)
class Variant:
    """Dimensions and precision of stored vectors; by default those of the model."""

    dimensions: int | None = None
    precision: Precision = "float32"

    def __str__(self) -> str:
        parts = [str(self.dimensions) if self.dimensions else "", "" if self.precision == "float32" else self.precision]
        return "-".join(part for part in parts if part)

    def bytes_each(self, dimensions: int) -> float:
        """Bytes of one vector, without index overhead."""
        return (self.dimensions or dimensions) * _BITS[self.precision] / 8

    def fit(self, documents: Vectors | VectorRows) -> FittedVariant:
        """Fit to the documents: int8 needs the range of each dimension."""
        if self.dimensions is not None and self.dimensions > documents.shape[1]:
            raise InputError(
                f"{self.dimensions} dimensions requested, but the vectors have {documents.shape[1]}",
                remedy=f"ask for {documents.shape[1]} or fewer",
            )
        if self.precision != "int8" and isinstance(documents, VectorRows):
            nothing = np.empty(0, dtype=np.float32)
            return FittedVariant(self, nothing, nothing)
        return FittedVariant(self, *_range(documents, self.dimensions))


@dataclass(frozen=True, slots=True)
class FittedVariant:
    """A variant ready to apply. Its output is float32 of unit length, for any store."""

    variant: Variant
    low: Vectors
    high: Vectors

    def corpus(self, vectors: VectorRows) -> VectorRows:
        """All documents, converted as they are read."""
        if self.variant.precision == "float32" and self.variant.dimensions in (None, vectors.dimensions):
            return vectors
        return vectors.transform(self.documents, self.variant.dimensions or vectors.dimensions)

    def truncate(self, vectors: VectorRows) -> VectorRows:
        """Truncated but not quantised, for stores that quantise themselves."""
        return replace(self, variant=Variant(self.variant.dimensions)).corpus(vectors)

    def documents(self, vectors: Vectors) -> Vectors:
        """Documents as a store of this precision would return them."""
        kept = _truncate(vectors, self.variant.dimensions)
        match self.variant.precision:
            case "float32":
                return kept
            case "int8":
                return unit(self._round(kept), "an int8 variant")
            case "binary":
                return _signs(kept)
            case _:
                assert_never(self.variant.precision)

    def queries(self, vectors: Vectors) -> Vectors:
        """Queries stay float for int8, as in stores, and become signs for binary (Hamming distance)."""
        kept = _truncate(vectors, self.variant.dimensions)
        return _signs(kept) if self.variant.precision == "binary" else kept

    def _round(self, vectors: Vectors) -> Vectors:
        """Quantise: the centre of each value's step, by dimension."""
        span = np.where(self.high > self.low, self.high - self.low, 1.0)
        codes = np.clip(np.floor((vectors - self.low) / span * _STEPS), 0, _STEPS)
        return np.asarray(self.low + (codes + 0.5) / _STEPS * span, dtype=np.float32)


def _range(documents: Vectors | VectorRows, dimensions: int | None) -> tuple[Vectors, Vectors]:
    """Minimum and maximum of each dimension, computed blockwise."""
    parts = (block for _, block in documents.blocks()) if isinstance(documents, VectorRows) else (documents,)
    ranges = [(kept.min(axis=0), kept.max(axis=0)) for kept in (_truncate(part, dimensions) for part in parts)]
    return np.min([low for low, _ in ranges], axis=0), np.max([high for _, high in ranges], axis=0)


def _truncate(vectors: Vectors, dimensions: int | None) -> Vectors:
    """Keep the first dimensions and normalise again, as Matryoshka models are trained for."""
    if dimensions is None or dimensions == vectors.shape[1]:
        return vectors
    return unit(vectors[:, :dimensions], f"{dimensions} of {vectors.shape[1]} dimensions")


def _signs(vectors: Vectors) -> Vectors:
    """±1/√d: the inner product of two such vectors is 1 − 2 · Hamming distance / d."""
    return np.where(vectors >= 0, 1.0, -1.0).astype(np.float32) / np.float32(np.sqrt(vectors.shape[1]))
