"""What can be asked: a provider's vectors in a store, or a lexical ranker; one query at a time, timed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from bakeoff_providers.base import Role, Vectors

from bakeoff.core.clock import SAMPLES_FOR, timed
from bakeoff.core.figures import CallTime
from bakeoff.core.filters import conditions
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.embed import Embedder, TimedVector
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search import brute_force
from bakeoff.search.exact_search import ExactRankings, ExactSearch
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index
from bakeoff.search.rankers.base import Ranker
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.hybrid import HybridStore
from bakeoff.search.variants import FittedVariant

TIMED_PAID = SAMPLES_FOR[95] + 1  # queries that a paid provider is asked one by one: a p95, and the cold call
TIMED_FREE = 100  # and a free one, in each round: 300 queries in six rows take minutes
FETCHED_AT_ONCE = 8192  # queries that are embedded in one go


class Timed(IntEnum):
    """What is known of an answer's time: all of it was timed in this run, some in an earlier one, some never."""

    NOW = 0
    EARLIER = 1
    NEVER = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """One query answered: the ranking, and what it took. No embedding time where nothing was embedded.

    `kept_embed` and `kept_rerank` are times of earlier runs, where a vector or scores were there already.
    """

    ranking: Ranking
    search_ns: int
    embed_ns: int | None = None
    rerank_ns: int | None = None
    timed: Timed = Timed.NOW
    kept_embed: CallTime | None = None
    kept_rerank: CallTime | None = None

    @property
    def total_ns(self) -> int:
        """Of all its stages, where a time of each is known."""
        kept = (time.nanoseconds for time in (self.kept_embed, self.kept_rerank) if time)
        return self.search_ns + (self.embed_ns or 0) + (self.rerank_ns or 0) + sum(kept)


class Searcher(ABC):
    """Something that can be asked. A new sort of row needs `ask`; the rest is for those that have more to say."""

    @abstractmethod
    def ask(self, query: Query) -> Answer:
        """The ranking of at most `depth` documents for this query."""

    def prefetch(self, queries: Sequence[Query]) -> None:  # noqa: B027 - most have nothing to fetch
        """Called once before the rounds: takes in one go what is not worth a timed request for each query."""

    def begin_round(self, number: int) -> None:  # noqa: B027 - most answer in every round alike
        """Called before each round."""

    def exact_search(self) -> ExactRankings | None:
        """The same vectors searched exactly; None where nothing can have been missed, or there are no vectors."""
        return None

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go of what it holds."""


@dataclass(slots=True)
class EmbeddingSearcher(Searcher):
    """What needs vectors of the queries: which of them are timed, and which are fetched in one go."""

    embedder: Embedder
    index: Index
    _vectors: dict[str, Vectors] = field(default_factory=dict, init=False)  # by text: what need not be embedded again
    _items: set[str] = field(default_factory=set, init=False)  # texts among them whose vectors are the store's own

    def set_item_vector(self, item: str, vector: Vectors) -> None:
        """An item that is one chunk has its vector already: asking for it again would only cost."""
        text = item if self.embedder.provider.by_id else self.index.texts[item]
        self._vectors[text] = vector
        self._items.add(text)

    def prefetch(self, queries: Sequence[Query]) -> None:
        """All but the first few, untimed: nobody wants to wait for 300 requests for a latency."""
        rest = queries[timed_alone(self.embedder) :]
        for role in Role:
            texts = [self._query_text(query) for query in rest if _role(query) is role]
            texts = [text for text in texts if text not in self._vectors]
            for start in range(0, len(texts), FETCHED_AT_ONCE):
                part = texts[start : start + FETCHED_AT_ONCE]
                self._vectors.update(zip(part, self.embedder.embed(part, role), strict=True))

    def begin_round(self, number: int) -> None:
        """Rows of one embedder share the paid calls of a round."""
        self.embedder.single.begin_round(number)

    def _vector(self, query: Query) -> TimedVector:
        text = self._query_text(query)
        if text in self._vectors:
            return TimedVector(self._vectors[text])
        return self.embedder.embed_timed(text, _role(query))

    def _answer(self, query: Query, ranking: Ranking, search_ns: int, found: TimedVector) -> Answer:
        """With what is known of the embedding's time; an item needs no embedding."""
        if found.nanoseconds is not None or self._query_text(query) in self._items:
            return Answer(ranking, search_ns, found.nanoseconds)
        timed = Timed.EARLIER if found.kept else Timed.NEVER
        return Answer(ranking, search_ns, timed=timed, kept_embed=found.kept)

    def _query_text(self, query: Query) -> str:
        if self.embedder.provider.by_id:
            return query.item or query.id
        return self.index.texts[query.item] if query.item else query.text


@dataclass(slots=True)
class DenseSearcher(EmbeddingSearcher):
    """A provider's vectors in a store. Only the store's own call is timed as search."""

    store: Store
    variant: FittedVariant
    vectors: Vectors | VectorRows
    nearest: brute_force.Nearest = brute_force.nearest
    _query_vectors: dict[str, Vectors] = field(default_factory=dict, init=False)  # by query id, for exact search

    def ask(self, query: Query) -> Answer:
        """Embeds, searches, ranks."""
        found = self._vector(query)
        vector = self.variant.queries(found.vector[None])[0]
        if not self.store.capabilities.exact:
            self._query_vectors.setdefault(query.id, vector)  # of the first round, whose answers are looked at
        size = self.index.fetch_size(excluding=query.excluded)
        hits, search_ns = timed(lambda: self.store.search(vector, size, query.where))
        ranking = self.index.ranking(hits, lambda k: self.store.search(vector, k, query.where), query.excluded)
        return self._answer(query, ranking, search_ns, found)

    def exact_search(self) -> ExactRankings | None:
        """Over what the store holds, with the vectors that it was asked with."""
        if self.store.capabilities.exact:
            return None
        return ExactSearch(self.index, dict(self._query_vectors), self.vectors, self.nearest)

    def close(self) -> None:
        """The store goes; vectors and provider are shared with other rows."""
        self.store.discard()


@dataclass(slots=True)
class HybridSearcher(DenseSearcher):
    """A store that ranks by words and by vectors in one query: there is no exact search to hold it to."""

    store: HybridStore

    def ask(self, query: Query) -> Answer:
        """Embeds, searches by both, ranks by the store's own fusion."""
        found = self._vector(query)
        vector, text = self.variant.queries(found.vector[None])[0], self.index.texts.get(query.item, query.text)

        def search(k: int) -> Hits:
            return self.store.search_hybrid(text, vector, k, query.where)

        size = self.index.fetch_size(excluding=query.excluded)
        hits, search_ns = timed(lambda: search(size))
        ranking = self.index.ranking(hits, search, query.excluded)
        return self._answer(query, ranking, search_ns, found)

    def exact_search(self) -> ExactRankings | None:
        """None: what a fusion should find is not defined by vectors alone."""
        return None


@dataclass(slots=True)
class LexicalSearcher(Searcher):
    """A ranker that needs no vectors. What shares no word with the query follows what does, with score 0, by id."""

    ranker: Ranker
    index: Index

    def ask(self, query: Query) -> Answer:
        """Searches, ranks. Which documents pass its filter is found before the time counts."""
        size = self.index.fetch_size(excluding=query.excluded)
        passing = self.index.passing(conditions(query.where)).tolist() if query.where else None
        allowed = None if passing is None else {self.index.ids[row] for row in passing}
        hits, search_ns = timed(lambda: self._search(query, size, allowed))
        ranking = self.index.ranking(hits, lambda k: self._search(query, k, allowed), query.excluded)
        return Answer(ranking.filled(self._candidates(query, passing), self.index.depth), search_ns)

    def _candidates(self, query: Query, passing: list[int] | None) -> Iterator[str]:
        """All that may be ranked, by id: without them a ranker that matches little is below a random order."""
        owners = self.index.owners
        documents = self.index.documents if passing is None else sorted({owners[row] for row in passing})
        return (document for document in documents if document != query.excluded)

    def _search(self, query: Query, k: int, allowed: set[str] | None) -> Hits:
        """Rankers know no filters: where there is one, all are ranked and those that pass are kept."""
        text = self.index.texts.get(query.item, query.text)
        if allowed is None:
            return self.ranker.search(text, k)
        everything = self.ranker.search(text, len(self.index.ids))
        kept = [pair for pair in zip(everything.ids, everything.scores, strict=True) if pair[0] in allowed]
        best = sorted(kept, key=lambda pair: -pair[1])[:k]
        return Hits([item for item, _ in best], [score for _, score in best])


def timed_alone(embedder: Embedder) -> int:
    """How many queries are asked one by one, for the sake of their latency."""
    return TIMED_FREE if embedder.asks_anew else max(TIMED_PAID, embedder.time_hosted)


def _role(query: Query) -> Role:
    """An item is compared as what it is, a document: its vector is the one in the store."""
    return Role.DOCUMENT if query.item else Role.QUERY
