"""What a store or a ranker returns for one query, and its validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice

from bakeoff_providers.errors import StoreError

# A float32 similarity carries six digits; what differs beyond is the store's noise and would decide ties by chance.
SIMILARITY_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Hits:
    """Ids with similarities, in any order; higher is nearer."""

    ids: Sequence[str]
    scores: Sequence[float]

    def read(self, k: int) -> Hits:
        """Reads at most k ids and scores, since a generator may be endless."""
        if isinstance(self.ids, Sized) and isinstance(self.scores, Sized):
            return self
        return Hits(list(islice(self.ids, k)), list(islice(self.scores, k)))


def document_scores(
    chunk_ids: Sequence[str], scores: Sequence[float], owner: Mapping[str, str], parents: str = "best", top: int = 3
) -> dict[str, float]:
    """Document scores by the best chunk, the mean of the `top` best, or the sum of all chunks found."""
    if parents == "best":
        return best_chunks(chunk_ids, scores, owner)
    best_chunks(chunk_ids, scores, owner)  # raises on invalid hits
    by_document: dict[str, list[float]] = {}
    for chunk, score in zip(chunk_ids, scores, strict=True):
        by_document.setdefault(owner[chunk], []).append(float(score))
    if parents == "sum":
        return {document: sum(sorted(values)) for document, values in by_document.items()}
    kept = {document: sorted(values, reverse=True)[:top] for document, values in by_document.items()}
    return {document: sum(values) / len(values) for document, values in kept.items()}


def best_chunks(chunk_ids: Sequence[str], scores: Sequence[float], owner: Mapping[str, str]) -> dict[str, float]:
    """Document scores by the best chunk. Unknown ids, duplicates and NaN fail the row."""
    best: dict[str, float] = {}
    seen: set[str] = set()
    for chunk, score in zip(chunk_ids, scores, strict=True):
        if chunk not in owner:
            raise StoreError(f"the store returned an unknown id {chunk!r}")
        if chunk in seen:
            raise StoreError(f"the store returned the id {chunk!r} twice")
        if math.isnan(score):
            raise StoreError(f"the store returned NaN as the score of {chunk!r}")
        seen.add(chunk)
        document = owner[chunk]
        if document not in best or score > best[document]:
            best[document] = float(score)
    return best
