"""Unit length, so that the inner product is the cosine in every store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import EmbeddingFailed
from numpy.typing import NDArray

_AT_ONCE = 256  # rows whose float64 copy fits the processor's cache

Norms = NDArray[np.float64]


def norms_of(vectors: Vectors) -> Norms:
    """Lengths in double precision."""
    norms = np.empty(len(vectors))
    for start in range(0, len(vectors), _AT_ONCE):
        part = vectors[start : start + _AT_ONCE].astype(np.float64)
        norms[start : start + _AT_ONCE] = np.linalg.norm(part, axis=1)
    return norms


def unit(vectors: Vectors, model: str, norms: Norms | None = None) -> Vectors:
    """Every row divided by its length. Pass `norms` if they are known."""
    norms = norms_of(vectors) if norms is None else norms
    if not norms.all():
        raise EmbeddingFailed(f"{model} returned a zero vector")
    scaled = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        scaled[part] = vectors[part] / norms[part, None]
    return scaled


@dataclass(frozen=True, slots=True)
class NotingUnit:
    """Normalises document vectors and records their lengths, for the row's warnings."""

    model: str
    note: Callable[[float, float], None]

    def __call__(self, raw: Vectors) -> Vectors:
        """Rows of length one."""
        norms = norms_of(raw)
        self.note(float(norms.min()), float(norms.max()))
        return unit(raw, self.model, norms)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles without the record: other processes record nothing."""
        return _noting_nothing, (self.model,)


def _noting_nothing(model: str) -> partial[Vectors]:
    return partial(unit, model=model)
