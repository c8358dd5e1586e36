"""Late interaction: a vector for each token, compared by MaxSim over all documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.base import Role, TokenProvider, Vectors
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.registry import Registry

from bakeoff.core.clock import time_call
from bakeoff.core.task import Query
from bakeoff.embedding.corpus_chunks import ChunkTexts
from bakeoff.extensions.late_interaction.stores import TOKEN_STORES, Exact, TokenStore, maxsim
from bakeoff.extensions.late_interaction.token_rows import TokenRows, check_tokens, embed_tokens, storage_bill
from bakeoff.search.answer import Answer, Searcher, Timed
from bakeoff.search.exact_search import ExactRankings, cosine_tolerance, sample
from bakeoff.search.index import Index
from bakeoff.search.stores.base import WrongCount
from bakeoff.systems.base import Build, Prepared, Ready, RunContext
from bakeoff.systems.embedding import TIMED_FREE, StoreRow
from bakeoff.systems.failures import adapter_work


@dataclass(frozen=True)
class Tokens(StoreRow):
    """Embed every token of the corpus through the cache, and fill the store."""

    row_type: ClassVar[str] = "tokens"
    per_token: ClassVar[bool] = True
    default_store: ClassVar[str] = "exact"

    @classmethod
    def stores(cls) -> Registry[TokenStore]:
        """Stores of token vectors."""
        return TOKEN_STORES

    def settings(self) -> dict[str, Any]:
        """The row's settings, as in a line-up."""
        return {**super().settings(), "vectors": "tokens"}

    def check(self, run: RunContext) -> None:
        """Check that the provider supports token vectors."""
        if not self.lacks():
            check_tokens(run.embedder(self).provider)

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Note the size of the vectors on the row, since it is the cost of this method."""
        if reason := self.lacks():
            raise Unavailable(reason)
        index, embedder = run.index(self), run.embedder(self)
        texts, vectors, stored = ChunkTexts(index.chunks), scratch / "vectors", scratch / "store"
        for folder in (scratch, vectors, stored):
            folder.mkdir()
        with adapter_work():
            embedded = embed_tokens(embedder.provider, texts, run.own_cache, vectors, run.progress)
            store = TOKEN_STORES.create(self.store, folder=stored, **self.fill_store_options())
            searcher = TokenSearcher(check_tokens(embedder.provider), index, store, embedded.rows)
            metadata = [index.fields(row) for row in range(len(index.ids))]
            _, nanoseconds = time_call(lambda: store.fill(index.ids, embedded.rows, metadata))
            if (held := store.count()) != len(index.ids):
                raise WrongCount(store.name, len(index.ids), held)
            build = Build(
                seconds=nanoseconds / 1e9,
                index_bytes=store.size_bytes(),
                dimensions=embedded.rows.dimensions,
                notes=(storage_bill(embedded.rows),),
            )
        if not embedder.usage[Role.DOCUMENT].asked:  # rows that share the vectors are counted once
            embedder.accounts[Role.DOCUMENT].add(embedded.usage)
        return Prepared(self, searcher, build, embedder)


@dataclass(slots=True)
class ExactMaxsim(ExactRankings):
    """A vector for each token, by MaxSim."""

    rows: TokenRows

    def _search(self, group: Sequence[Query]) -> None:
        store = Exact(folder=Path())  # writes nothing
        store.fill(self.index.ids, self.rows, [self.index.fields(row) for row in range(len(self.index.ids))])
        for query in group:
            search = partial(store.search, self.queries[query.id], where=query.where)
            first = search(self.index.fetch_size(excluding=query.excluded))
            self._rankings.add(query.id, self.index.ranking(first, search, query.excluded))

    @property
    def tolerance(self) -> float:
        """A cosine's for each token of the query."""
        return max(map(len, self.queries.values()), default=1) * cosine_tolerance(self.rows.dimensions)

    def score(self, document: str, query: Query) -> float:
        """MaxSim with the document's own vectors."""
        return self.index.document_score(maxsim(self.queries[query.id], *self.rows.of(self.index.rows_of(document))))


@dataclass(slots=True)
class TokenSearcher(Searcher):
    """Only the store's own call counts as search time."""

    provider: TokenProvider
    index: Index
    store: TokenStore
    rows: TokenRows
    _asked: dict[str, Vectors] = field(default_factory=dict, init=False)
    _vectors: dict[str, Vectors] = field(default_factory=dict, init=False)

    def prefetch(self, queries: Sequence[Query]) -> None:
        """Embed all but the first queries, untimed, as other rows do."""
        texts = list(dict.fromkeys(self._text(query) for query in queries[TIMED_FREE:]))
        if texts:
            self._vectors.update(zip(texts, self.provider.embed_tokens(texts, Role.QUERY).vectors, strict=True))

    def ask(self, query: Query) -> Answer:
        """Embed, search and rank one query."""
        text, embed_ns = self._text(query), None
        if text in self._vectors:
            vectors = self._vectors[text]
        else:
            batch, embed_ns = time_call(lambda: self.provider.embed_tokens([text], Role.QUERY))
            vectors = batch.vectors[0]
        self._asked[query.id] = vectors
        size = self.index.fetch_size(excluding=query.excluded)
        hits, search_ns = time_call(lambda: self.store.search(vectors, size, query.where))
        ranking = self.index.ranking(hits, lambda k: self.store.search(vectors, k, query.where), query.excluded)
        return Answer(ranking, search_ns, embed_ns, timed=Timed.NEVER if embed_ns is None else Timed.NOW)

    @property
    def exact(self) -> bool:
        """The store's own capabilities."""
        return self.store.exact

    def exact_search(self) -> ExactRankings | None:
        """MaxSim over every document, with the query vectors of the run; None for our own MaxSim."""
        if type(self.store) is Exact:
            return None
        drawn: Sequence[str] = list(self._asked)
        if self.exact:
            tokens = max(map(len, self._asked.values()), default=1)
            drawn = sample(drawn, self.rows.count * self.rows.dimensions * tokens, self.index.depth)
        return ExactMaxsim(self.index, {query: self._asked[query] for query in drawn}, self.rows)

    def close(self) -> None:
        """Release the store. The run owns the provider."""
        self.store.close()

    def _text(self, query: Query) -> str:
        return self.index.texts[query.item] if query.item else query.text
