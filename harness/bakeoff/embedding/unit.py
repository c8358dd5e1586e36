"""Length one, so that inner product is cosine in every store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import EmbeddingFailed
from numpy.typing import NDArray

_AT_ONCE = 256  # rows whose double-precision copy stays in the processor's cache

Norms = NDArray[np.float64]


def norms_of(vectors: Vectors) -> Norms:
    """Lengths, in double precision."""
    norms = np.empty(len(vectors))
    for start in range(0, len(vectors), _AT_ONCE):
        part = vectors[start : start + _AT_ONCE].astype(np.float64)
        norms[start : start + _AT_ONCE] = np.linalg.norm(part, axis=1)
    return norms


def unit(vectors: Vectors, model: str, norms: Norms | None = None) -> Vectors:
    """Every row divided by its length; `norms` where they are known."""
    norms = norms_of(vectors) if norms is None else norms
    if not norms.all():
        raise EmbeddingFailed(f"{model} answered a zero vector")
    scaled = np.empty(vectors.shape, dtype=np.float32)
    for start in range(0, len(vectors), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        scaled[part] = vectors[part] / norms[part, None]
    return scaled


@dataclass(frozen=True, slots=True)
class NotingUnit:
    """Unit vectors of documents; their lengths are noted on the way, for what the row has to say about them."""

    model: str
    note: Callable[[float, float], None]

    def __call__(self, raw: Vectors) -> Vectors:
        """Rows of length one."""
        norms = norms_of(raw)
        self.note(float(norms.min()), float(norms.max()))
        return unit(raw, self.model, norms)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has nobody to tell."""
        return _noting_nothing, (self.model,)


def _noting_nothing(model: str) -> partial[Vectors]:
    return partial(unit, model=model)
