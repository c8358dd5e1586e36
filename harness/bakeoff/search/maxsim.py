"""Late interaction: a document's score is the sum, over the query's tokens, of the best that its tokens match each."""

from __future__ import annotations

import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.embedding.token_rows import TokenRows
from bakeoff.search.brute_force import Similarities


def maxsim(query: Vectors, tokens: Vectors, begins: NDArray[np.integer]) -> Similarities:
    """The scores of documents whose token vectors follow one another, the first of each at `begins`."""
    if not len(begins):
        return np.empty(0, dtype=np.float32)
    best = np.maximum.reduceat(tokens @ query.T, begins, axis=0)
    scores: Similarities = best.sum(axis=1, dtype=np.float32)
    return scores


def maxsim_all(query: Vectors, rows: TokenRows) -> Similarities:
    """The score of every document, a block at a time."""
    return np.concatenate([maxsim(query, tokens, begins) for _, tokens, begins in rows.blocks()])
