"""Contender × task → what it answered: documents put where they can be found, then one query at a time, timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bakeoff_providers.base import Role, Vectors

from bakeoff.core.clock import timed
from bakeoff.core.filters import conditions, passes
from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Query
from bakeoff.embedding.chunking import Chunk
from bakeoff.embedding.embed import Embedder
from bakeoff.search.hits import SIMILARITY_DIGITS, Hits, best_chunks
from bakeoff.search.rankers.base import Ranker
from bakeoff.search.stores.base import Store
from bakeoff.search.variants import FittedVariant


@dataclass(frozen=True, slots=True)
class Answer:
    """One query answered: the ranking, and what it took. No embedding time where nothing was embedded."""

    ranking: Ranking
    search_ns: int
    embed_ns: int | None = None


class Searcher(Protocol):
    """Something that can be asked."""

    def ask(self, query: Query) -> Answer:
        """The ranking of at most `depth` documents for this query."""


@dataclass(slots=True)
class Index:
    """The pieces of the corpus and whose they are: what turns hits on pieces into a ranking of documents.

    `texts` holds whole documents, for queries that are items of the corpus.
    """

    chunks: Sequence[Chunk]
    depth: int
    texts: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    owner: dict[str, str] = field(init=False)
    most_pieces: int = field(init=False)

    def __post_init__(self) -> None:
        self.owner = {chunk.id: chunk.document for chunk in self.chunks}
        pieces: dict[str, int] = {}
        for chunk in self.chunks:
            pieces[chunk.document] = pieces.get(chunk.document, 0) + 1
        self.most_pieces = max(pieces.values())

    @property
    def reach(self) -> int:
        """How many pieces to ask for: enough for `depth` documents however they are cut, and one to see a tie by."""
        return min(len(self.owner), self.depth * self.most_pieces + 1)

    def reach_past(self, item: str) -> int:
        """The reach of a query that is an item: its own pieces take places that others need."""
        return min(len(self.owner), self.reach + self.most_pieces) if item else self.reach

    def fields(self, chunk: Chunk) -> Mapping[str, Any]:
        """What a filter sees of a piece: its document's metadata."""
        return self.metadata.get(chunk.document, {})

    def ranking(self, hits: Hits, more: Callable[[int], Hits], item: str = "") -> Ranking:
        """Documents by their best piece. Asks for more while documents that tie with the last may be missing.

        `item` is the document that asks: it has no place in its own ranking.
        """
        while True:
            scores = [round(score, SIMILARITY_DIGITS) for score in hits.scores]
            best = best_chunks(hits.ids, scores, self.owner)
            best.pop(item, None)
            ranking = ordered(best.items(), self.depth)
            complete = len(hits.ids) >= len(self.owner) or len(hits.ids) < self.reach_past(item)
            if complete or (len(ranking) == self.depth and min(scores) < ranking.scores[-1]):
                return ranking
            wider = more(min(len(self.owner), 2 * len(hits.ids)))
            if len(wider.ids) <= len(hits.ids):
                return ranking
            hits = wider


@dataclass(slots=True)
class DenseSearcher:
    """A provider's vectors in a store. Only the store's own call is timed as search."""

    embedder: Embedder
    store: Store
    index: Index
    variant: FittedVariant
    pieces: Vectors
    asked: dict[str, Vectors] = field(default_factory=dict)  # by query: what exact search is asked with, to compare
    _vectors: dict[str, Vectors] = field(default_factory=dict)

    def ask(self, query: Query) -> Answer:
        """Embeds, searches, ranks."""
        whole, embed_ns = self._vector(query)
        vector = self.variant.queries(whole[None])[0]
        self.asked[query.id] = vector
        reach = self.index.reach_past(query.item)
        hits, search_ns = timed(lambda: self.store.search(vector, reach, query.where))
        ranking = self.index.ranking(hits, lambda k: self.store.search(vector, k, query.where), query.item)
        return Answer(ranking, search_ns, embed_ns)

    def learn(self, item: str, vector: Vectors) -> None:
        """An item that is one piece has its vector already: asking for it again would only cost."""
        self._vectors[item if self.embedder.provider.by_id else self.index.texts[item]] = vector

    def know(self, queries: Sequence[Query]) -> None:
        """Takes the vectors of these queries in one go, untimed: nobody wants to pay 300 requests for a latency."""
        for role in Role:
            texts = [self._asked(query) for query in queries if _role(query) is role]
            texts = [text for text in texts if text not in self._vectors]
            if texts:
                self._vectors.update(zip(texts, self.embedder.embed(texts, role), strict=True))

    def _vector(self, query: Query) -> tuple[Vectors, int | None]:
        text = self._asked(query)
        if text in self._vectors:
            return self._vectors[text], None
        vector, embed_ns = self.embedder.embed_timed(text, _role(query))
        if not self.embedder.provider.local:
            self._vectors[text] = vector
        return vector, embed_ns

    def _asked(self, query: Query) -> str:
        if self.embedder.provider.by_id:
            return query.item or query.id
        return self.index.texts[query.item] if query.item else query.text


@dataclass(slots=True)
class LexicalSearcher:
    """A ranker that needs no vectors."""

    ranker: Ranker
    index: Index

    def ask(self, query: Query) -> Answer:
        """Searches, ranks."""
        reach = self.index.reach_past(query.item)
        hits, search_ns = timed(lambda: self._search(query, reach))
        return Answer(self.index.ranking(hits, lambda k: self._search(query, k), query.item), search_ns)

    def _search(self, query: Query, k: int) -> Hits:
        """Rankers know no filters: where there is one, all are ranked and those that pass are kept."""
        text = self.index.texts.get(query.item, query.text)
        if not query.where:
            return self.ranker.search(text, k)
        filters = conditions(query.where)
        allowed = {chunk.id for chunk in self.index.chunks if passes(self.index.fields(chunk), filters)}
        found = self.ranker.search(text, len(self.index.chunks))
        kept = [pair for pair in zip(found.ids, found.scores, strict=True) if pair[0] in allowed]
        best = sorted(kept, key=lambda pair: -pair[1])[:k]
        return Hits([item for item, _ in best], [score for _, score in best])


def _role(query: Query) -> Role:
    """An item is compared as what it is, a document: its vector is the one in the store."""
    return Role.DOCUMENT if query.item else Role.QUERY
