"""Stores that say they are exact, or that they hold what they were given, and are wrong: each way by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bakeoff.core.filters import Condition, Metadata
from bakeoff.search.hits import Hits
from bakeoff.search.stores.faiss import Faiss
from bakeoff_providers.base import Vectors

LOST = 3  # documents that are lost on the way in

# What a row of a run with such a store must be told by: the number of rows, or the answers.
BY_COUNT = ("loses",)
BY_ANSWERS = (
    "loses and lies",
    "skips the first",
    "empty",
    "short",
    "reversed",
    "scaled",
    "shifted",
    "distances",
    "far",
)


class Liar(Faiss):
    """FAISS's flat index, which is exact, with one thing gone wrong."""

    name = "liar"

    def __init__(self, *, dimensions: int, folder: Path, how: str = "", index: str = "Flat") -> None:
        super().__init__(dimensions=dimensions, folder=folder, index=index)
        self.how, self.lost, self.asked = how, 0, b""

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        first = min(LOST, len(ids) - 1) if self.how.startswith("loses") else 0
        self.lost += first
        super()._add(ids[first:], vectors[first:], metadata[first:])

    def count(self) -> int:
        """The truth, unless it lies about that, too."""
        return super().count() + (self.lost if self.how == "loses and lies" else 0)

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        if self.how == "far":  # the third place goes to the document that is furthest away, under the right score
            every = super()._search(vector, len(self._ids), filters)
            ids, scores = list(every.ids), list(every.scores)
            return Hits([*ids[:2], ids[-1], *ids[3:-1], ids[2]][:k], scores[:k])
        self.asked = self.asked or vector.tobytes()
        how = self.how
        if how == "skips the first later":  # than the first query
            how = "" if vector.tobytes() == self.asked else "skips the first"
        hits = super()._search(vector, k + 1 if how == "skips the first" else k, filters)
        ids, scores = list(hits.ids), list(hits.scores)
        match how:
            case "skips the first":
                return Hits(ids[1:], scores[1:])
            case "empty":
                return Hits([], [])
            case "short":
                return Hits(ids[: k // 2], scores[: k // 2])
            case "reversed":
                return Hits(ids[::-1], scores)
            case "scaled":
                return Hits(ids, [1e6 * score for score in scores])
            case "shifted":
                return Hits(ids, [score - 2e-3 for score in scores])
            case "distances":
                return Hits(ids, [1 - score for score in scores])
        return hits
