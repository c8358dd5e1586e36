"""The pieces of the corpus and whose they are: what turns hits on pieces into a ranking of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bakeoff.core.ranking import Ranking, ordered
from bakeoff.embedding.chunking import Chunk
from bakeoff.search.hits import SIMILARITY_DIGITS, Hits, document_scores


@dataclass(slots=True)
class Index:
    """The pieces and their documents. `texts` holds whole documents, for queries that are items of the corpus."""

    chunks: Sequence[Chunk]
    depth: int
    texts: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parents: str = "best"  # how a document is scored by its pieces; all but the best one need every piece
    top: int = 3
    owner: dict[str, str] = field(init=False)
    most_pieces: int = field(init=False)
    _documents: list[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.owner = {chunk.id: chunk.document for chunk in self.chunks}
        pieces: dict[str, int] = {}
        for chunk in self.chunks:
            pieces[chunk.document] = pieces.get(chunk.document, 0) + 1
        self.most_pieces = max(pieces.values())

    def fetch_size(self, excluding: str = "") -> int:
        """How many pieces to ask for: enough for `depth` documents however they are cut, and one to see a tie by.

        A query that is an item itself is excluded from its ranking, so its own pieces come on top.
        """
        if self.parents != "best" and self.most_pieces > 1:
            return len(self.owner)
        wanted = self.depth * self.most_pieces + 1 + (self.most_pieces if excluding else 0)
        return min(len(self.owner), wanted)

    @property
    def documents(self) -> list[str]:
        """The documents' ids in their order; sorted once, when first asked for."""
        if self._documents is None:
            self._documents = sorted(set(self.owner.values()))
        return self._documents

    def fields(self, chunk: Chunk) -> Mapping[str, Any]:
        """What a filter sees of a piece: its document's metadata."""
        return self.metadata.get(chunk.document, {})

    def ranking(self, hits: Hits, more: Callable[[int], Hits], excluding: str = "") -> Ranking:
        """Documents by their best piece. Asks for more while documents that tie with the last may be missing.

        `excluding` is the document that asks: it has no place in its own ranking.
        """
        while True:
            scores = [round(score, SIMILARITY_DIGITS) for score in hits.scores]
            best = document_scores(hits.ids, scores, self.owner, self.parents, self.top)
            best.pop(excluding, None)
            ranking = ordered(best.items(), self.depth)
            complete = len(hits.ids) >= len(self.owner) or len(hits.ids) < self.fetch_size(excluding)
            if complete or (len(ranking) == self.depth and min(scores) < ranking.scores[-1]):
                return ranking
            wider = more(min(len(self.owner), 2 * len(hits.ids)))
            if len(wider.ids) <= len(hits.ids):
                return ranking
            hits = wider
