"""Lexical rankers, without vectors or stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.errors import Unavailable
from bakeoff_providers.keys import fill_in

from bakeoff.core.clock import time_call
from bakeoff.core.filters import conditions
from bakeoff.core.task import Query
from bakeoff.embedding.corpus_chunks import ChunkTexts
from bakeoff.search.answer import Answer, Searcher
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index
from bakeoff.search.rankers import RANKERS, Ranker
from bakeoff.systems.base import Build, ChunkedRow, Identity, Prepared, Ready, RunContext
from bakeoff.systems.failures import adapter_work


@dataclass(frozen=True)
class Lexical(ChunkedRow):
    """Indexes the words of the corpus."""

    row_type: ClassVar[str] = "lexical"

    ranker: str = field(kw_only=True)
    options: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def identity(self) -> Identity:
        """The ranker is the model."""
        return Identity(self.ranker, self.ranker)

    def lacks_parts(self) -> str | None:
        """Missing requirements of the chunker and the ranker."""
        return (self.chunking and self.chunking.missing()) or RANKERS.get(self.ranker).missing()

    def check(self, run: RunContext) -> None:  # noqa: ARG002
        """Create the ranker, which checks its options."""
        if not self.lacks():
            self._create()

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Index in memory; there is no size on disk."""
        if reason := self.lacks():
            raise Unavailable(reason)
        index = run.index(self)
        ranker = self._create()
        ids, texts = index.ids, ChunkTexts(index.chunks)
        with adapter_work():
            _, nanoseconds = time_call(lambda: ranker.add(ids, texts))
        return Prepared(self, LexicalSearcher(ranker, index), Build(seconds=nanoseconds / 1e9))

    def _create(self) -> Ranker:
        return self.create_part(RANKERS, self.ranker, **fill_in(self.options, secret=False))


@dataclass(slots=True)
class LexicalSearcher(Searcher):
    """Ranks by words. Documents without a match follow with score 0, by id."""

    ranker: Ranker
    index: Index

    def ask(self, query: Query) -> Answer:
        """Searches and ranks. The filter is evaluated before timing starts."""
        size = self.index.fetch_size(excluding=query.excluded)
        passing = self.index.passing(conditions(query.where)).tolist() if query.where else None
        allowed = None if passing is None else {self.index.ids[row] for row in passing}
        hits, search_ns = time_call(lambda: self._search(query, size, allowed))
        ranking = self.index.ranking(hits, lambda k: self._search(query, k, allowed), query.excluded)
        return Answer(ranking.fill(self._candidates(query, passing), self.index.depth), search_ns)

    def _candidates(self, query: Query, passing: list[int] | None) -> Iterator[str]:
        """All rankable documents by id, to pad rankings. Without padding, few matches would score below random."""
        owners = self.index.owners
        documents = self.index.documents if passing is None else sorted({owners[row] for row in passing})
        return (document for document in documents if document != query.excluded)

    def _search(self, query: Query, k: int, allowed: set[str] | None) -> Hits:
        """Rankers have no filters: rank everything, then filter."""
        text = self.index.texts.get(query.item, query.text)
        if allowed is None:
            return self.ranker.search(text, k).read(k)
        everything = self.ranker.search(text, whole := len(self.index.ids)).read(whole)
        kept = [pair for pair in zip(everything.ids, everything.scores, strict=True) if pair[0] in allowed]
        best = sorted(kept, key=lambda pair: -pair[1])[:k]
        return Hits([item for item, _ in best], [score for _, score in best])
