"""Turns hits on chunks into a ranking of documents."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.core.filters import Condition, conditions, filterable, tokens
from bakeoff.core.id_rows import IdRows
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Query
from bakeoff.embedding.chunking import Chunk
from bakeoff.embedding.corpus_chunks import StoredChunks
from bakeoff.search.hits import SIMILARITY_DIGITS, Hits, document_scores

FAR_ABOVE = 4  # times the mean: documents with more chunks are outliers, for which the search is widened

_NOTHING: Mapping[str, Any] = {}  # shared by documents without metadata


@dataclass(slots=True)
class Index:
    """The chunks and their documents. `texts` holds whole documents, for queries that are items of the corpus."""

    chunks: Sequence[Chunk]
    depth: int
    texts: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parents: str = "best"  # the aggregation of chunk scores
    top: int = 3
    ids: list[str] = field(init=False)
    owners: list[str] = field(init=False)  # the document of each chunk
    usual_chunks: int = field(init=False)  # chunks per document: the maximum without outliers
    _chunks: IdRows = field(init=False)  # where each chunk is
    _owned: IdRows = field(init=False)  # and those of each document
    _documents: list[str] | None = field(init=False, default=None)
    _postings: dict[str, array[int]] | None = field(init=False, default=None)  # rows by field and value

    def __post_init__(self) -> None:
        if isinstance(self.chunks, StoredChunks):
            self.ids, self.owners = self.chunks.ids, self.chunks.documents
        else:
            self.ids, self.owners = [chunk.id for chunk in self.chunks], [chunk.document for chunk in self.chunks]
            if self.ids == self.owners:
                self.owners = self.ids
        uncut = self.ids is self.owners
        self._chunks = IdRows(self.ids)
        self._owned = self._chunks if uncut else IdRows(self.owners)
        self.usual_chunks = 1 if uncut else _usual([sum(1 for _ in chunks) for _, chunks in groupby(self.owners)])

    def rows_of(self, document: str) -> list[int]:
        """The row numbers of a document's chunks, which are consecutive."""
        return self._owned.of(document)

    def find_known(self, documents: Sequence[str]) -> set[str]:
        """The given documents that the corpus has."""
        return self._owned.among(documents)

    def document_score(self, chunks: NDArray[np.floating]) -> float:
        """One document's score, from the similarities of all its chunks."""
        if self.parents == "best":
            return float(chunks.max())
        return float(chunks.sum() if self.parents == "sum" else np.sort(chunks)[-self.top :].mean())

    def full_length(self, query: Query) -> int:
        """The length of a complete ranking for this query."""
        filters = conditions(query.where)
        if filters:
            passing = {self.owners[row] for row in self.passing(filters)}
            return min(self.depth, len(passing - {query.excluded}))
        return min(self.depth, len(self.documents) - (query.excluded in self._owned))

    def row_of(self, chunk: str) -> int | None:
        """The row number of a chunk; None for an unknown id."""
        return next(iter(self._chunks.of(chunk)), None)

    def owners_of(self, chunks: Sequence[str]) -> dict[str, str]:
        """The documents that these chunks belong to; unknown chunks are left out."""
        places, rows = self._chunks.matches(chunks)
        return {chunks[place]: self.owners[row] for place, row in zip(places.tolist(), rows.tolist(), strict=True)}

    def fetch_size(self, excluding: str = "") -> int:
        """Number of chunks to request first: usually enough for `depth` documents, plus one to detect a tie.

        A query that is an item itself is excluded from its ranking, so its own chunks come on top. A sum needs every
        chunk: the worst of a document's chunks count as much as its best, and may be anywhere.
        """
        if self.parents == "sum" and self.usual_chunks > 1:
            return len(self.ids)
        wanted = self.depth * self.usual_chunks + 1 + (self.usual_chunks if excluding else 0)
        return min(len(self.ids), wanted)

    def _at_most(self, means: Mapping[str, float], ids: Sequence[str], lowest: float) -> dict[str, float]:
        """An upper bound on the mean of documents with unseen chunks, which score at most `lowest`."""
        highest = {}
        for document, found in Counter(self.owners_of(ids).values()).items():
            wanted = min(self.top, len(self.rows_of(document)))
            if found < wanted and document in means:
                highest[document] = (means[document] * found + lowest * (wanted - found)) / wanted
        return highest

    @property
    def documents(self) -> list[str]:
        """All document ids, sorted once on first use."""
        if self._documents is None:
            self._documents = [document for document, _ in groupby(sorted(self.owners))]
        return self._documents

    def fields(self, row: int) -> Mapping[str, Any]:
        """The metadata of a chunk's document, for filters."""
        return self.metadata.get(self.owners[row], _NOTHING)

    def all_fields(self) -> list[Mapping[str, Any]] | None:
        """The metadata of every chunk; None if no document has any."""
        return [self.fields(row) for row in range(len(self.ids))] if self.metadata else None

    def passing(self, filters: Sequence[Condition]) -> NDArray[np.int32]:
        """Row numbers of the chunks that pass a filter, ascending. Each field is indexed once."""
        if self._postings is None:
            self._postings = {}
            for row in range(len(self.ids) if self.metadata else 0):
                for token in tokens(filterable(self.fields(row))):
                    self._postings.setdefault(token, array("i")).append(row)
        kept = np.arange(0 if filters else len(self.ids), dtype=np.int32)
        for number, condition in enumerate(filters):
            listed = [np.array(self._postings.get(token, ()), dtype=np.int32) for token in condition.tokens()]
            rows = np.unique(np.concatenate(listed))
            kept = np.intersect1d(kept, rows, assume_unique=True) if number else rows
        return kept

    def ranking(self, hits: Hits, more: Callable[[int], Hits], excluding: str = "") -> Ranking:
        """Rank documents by their chunks. Requests more chunks while the ranking may still change.

        `excluding` is the document that is the query itself.
        """
        asked = self.fetch_size(excluding)
        while (ranking := self.settle(hits, asked, excluding)) is None:
            asked = self.wider(hits)
            wider = more(asked)
            if len(wider.ids) <= len(hits.ids):
                asked = len(self.ids) + 1  # there is no more
            else:
                hits = wider
        return ranking

    def wider(self, hits: Hits) -> int:
        """The next number of chunks to request."""
        return min(len(self.ids), 2 * len(hits.ids))

    def settle(self, hits: Hits, asked: int, excluding: str = "") -> Ranking | None:
        """The ranking if no further chunk can change it, else None. Fewer hits than requested are all there are."""
        scores = [round(score, SIMILARITY_DIGITS) for score in hits.scores]
        best = document_scores(hits.ids, scores, self.owners_of(hits.ids), self.parents, self.top)
        best.pop(excluding, None)
        complete = len(hits.ids) >= len(self.ids) or len(hits.ids) < asked
        partial = self._at_most(best, hits.ids, min(scores)) if self.parents == "mean" and not complete else {}
        ranking = make_ranking(_round_scores(best | partial), self.depth)
        reached = complete or (len(ranking) == self.depth and min(scores) < ranking.scores[-1])
        return ranking if reached and not any(document in partial for document in ranking.ids) else None


def _usual(sizes: Sequence[int]) -> int:
    """The largest number of chunks per document, outliers left out."""
    return min(max(sizes), FAR_ABOVE * math.ceil(sum(sizes) / len(sizes)))


def _round_scores(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Rounded, so that sums of equal chunks are equal in any order of addition."""
    return [(document, round(score, SIMILARITY_DIGITS)) for document, score in scores.items()]
