"""Exact nearest neighbours by plain products, a block of queries at a time: the truth that nothing can argue with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from providers.base import Vectors

BLOCK_CELLS = 1 << 22  # similarities held at once: 16 MB of float32, whatever the size of the corpus


def exact_topk(queries: Vectors, documents: Vectors, k: int) -> tuple[NDArray[np.int64], Vectors]:
    """The k best documents of each query by inner product, best first, equal ones in the order of the documents."""
    k = min(k, len(documents))
    indices, scores = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=np.float32)
    step = max(1, BLOCK_CELLS // max(1, len(documents)))
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        similarity = queries[rows] @ documents.T
        found = np.argpartition(-similarity, k - 1, axis=1)[:, :k] if k < len(documents) else _all(similarity)
        found.sort(axis=1)  # so that the stable sort below leaves equal ones in the order of the documents
        values = np.take_along_axis(similarity, found, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        indices[rows], scores[rows] = (np.take_along_axis(part, order, axis=1) for part in (found, values))
    return indices, scores


def _all(similarity: Vectors) -> NDArray[np.int64]:
    return np.tile(np.arange(similarity.shape[1]), (len(similarity), 1))
