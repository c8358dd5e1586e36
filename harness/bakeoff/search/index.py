"""The chunks of the corpus and whose they are: what turns hits on chunks into a ranking of documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.ranking import Ranking, ordered
from bakeoff.embedding.chunking import Chunk
from bakeoff.embedding.corpus_chunks import StoredChunks
from bakeoff.search.hits import SIMILARITY_DIGITS, Hits, document_scores


@dataclass(slots=True)
class Index:
    """The chunks and their documents. `texts` holds whole documents, for queries that are items of the corpus."""

    chunks: Sequence[Chunk]
    depth: int
    texts: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parents: str = "best"  # how a document is scored by its chunks
    top: int = 3
    ids: list[str] = field(init=False)
    owners: list[str] = field(init=False)  # whose each chunk is
    owner: dict[str, str] = field(init=False)
    most_chunks: int = field(init=False)
    _sizes: Counter[str] | None = field(init=False, default=None)  # how many chunks each document has
    _documents: list[str] | None = field(init=False, default=None)
    _starts: tuple[NDArray[np.int64], NDArray[np.intp]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.chunks, StoredChunks):
            self.ids, self.owners = self.chunks.ids, self.chunks.documents
        else:
            self.ids, self.owners = [chunk.id for chunk in self.chunks], [chunk.document for chunk in self.chunks]
        self.owner = dict(zip(self.ids, self.owners, strict=True))
        self.most_chunks = 1 if self.ids is self.owners else max(Counter(self.owners).values())

    def rows_of(self, document: str) -> list[int]:
        """The numbers of a document's chunks, which follow one another. Found by hash: no object per document."""
        if self._starts is None:
            hashes = np.fromiter(map(hash, self.owners), dtype=np.int64, count=len(self.owners))
            order = np.argsort(hashes, kind="stable")
            self._starts = hashes[order], order
        hashes, order = self._starts
        low, high = (int(np.searchsorted(hashes, hash(document), side=side)) for side in ("left", "right"))
        return [int(row) for row in order[low:high] if self.owners[row] == document]

    def fetch_size(self, excluding: str = "") -> int:
        """How many chunks to ask for: enough for `depth` documents however they are cut, and one to see a tie by.

        A query that is an item itself is excluded from its ranking, so its own chunks come on top. A sum needs every
        chunk: the worst of a document's chunks count as much as its best, and may be anywhere.
        """
        if self.parents == "sum" and self.most_chunks > 1:
            return len(self.owner)
        wanted = self.depth * self.most_chunks + 1 + (self.most_chunks if excluding else 0)
        return min(len(self.owner), wanted)

    def _at_most(self, means: Mapping[str, float], ids: Sequence[str], lowest: float) -> dict[str, float]:
        """The highest mean that documents can have whose best chunks are not all found: none is above `lowest`."""
        if self._sizes is None:
            self._sizes = Counter(self.owners)
        highest = {}
        for document, retrieved in Counter(self.owner[chunk] for chunk in ids).items():
            wanted = min(self.top, self._sizes[document])
            if retrieved < wanted and document in means:
                highest[document] = (means[document] * retrieved + lowest * (wanted - retrieved)) / wanted
        return highest

    @property
    def documents(self) -> list[str]:
        """The documents' ids in their order; sorted once, when first asked for."""
        if self._documents is None:
            self._documents = sorted(set(self.owner.values()))
        return self._documents

    def fields(self, row: int) -> Mapping[str, Any]:
        """What a filter sees of a chunk: its document's metadata."""
        return self.metadata.get(self.owners[row], {})

    def all_fields(self) -> list[Mapping[str, Any]] | None:
        """What filters see of every chunk; None where no document has any metadata."""
        return [self.fields(row) for row in range(len(self.ids))] if any(self.metadata.values()) else None

    def ranking(self, hits: Hits, more: Callable[[int], Hits], excluding: str = "") -> Ranking:
        """Documents by their chunks. Asks for more while documents that tie with the last, or chunks, may be missing.

        `excluding` is the document that asks: it has no place in its own ranking.
        """
        while True:
            scores = [round(score, SIMILARITY_DIGITS) for score in hits.scores]
            best = document_scores(hits.ids, scores, self.owner, self.parents, self.top)
            best.pop(excluding, None)
            complete = len(hits.ids) >= len(self.owner) or len(hits.ids) < self.fetch_size(excluding)
            partial = self._at_most(best, hits.ids, min(scores)) if self.parents == "mean" and not complete else {}
            ranking = ordered(_rounded(best | partial), self.depth)
            settled = len(ranking) == self.depth and min(scores) < ranking.scores[-1]
            if complete or (settled and not any(document in partial for document in ranking.ids)):
                return ranking
            wider = more(min(len(self.owner), 2 * len(hits.ids)))
            if len(wider.ids) <= len(hits.ids):
                return ordered(_rounded(best), self.depth)
            hits = wider


def _rounded(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Means and sums of equal chunks are equal, whatever the order in which they were added."""
    return [(document, round(score, SIMILARITY_DIGITS)) for document, score in scores.items()]
