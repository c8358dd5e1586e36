"""Vectors in fewer bits, for engines that take bytes and bits directly."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

LARGEST = 127


def int8_codes(vectors: Vectors) -> NDArray[np.int8]:
    """Scale each vector by its largest value. Cosine ignores length, so no scale is stored."""
    scale = LARGEST / np.abs(vectors).max(axis=-1, keepdims=True)
    return np.asarray(np.round(vectors * scale), dtype=np.int8)


def bit_codes(vectors: Vectors, order: Literal["big", "little"] = "big") -> NDArray[np.uint8]:
    """Sign bits, eight to a byte; padding is equal in all."""
    return np.packbits(vectors >= 0, axis=-1, bitorder=order)


def signs(codes: NDArray[np.uint8], dimensions: int) -> Vectors:
    """The unit vectors that bits represent."""
    bits = np.unpackbits(codes, axis=-1, count=dimensions)
    return np.where(bits, 1.0, -1.0).astype(np.float32) / np.float32(np.sqrt(dimensions))


def bit_similarity(hamming: Any, dimensions: int) -> Any:
    """Cosine of the signs, from their Hamming distance."""
    return 1 - 2 * hamming / dimensions
