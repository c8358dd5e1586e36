"""A second stage behind any row: its first candidates in the reranker's order, the rest after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from bakeoff_providers.errors import Unavailable

from bakeoff.calls.budget import Budget, reservation
from bakeoff.calls.key_index import keys_of
from bakeoff.calls.retry import RateLimit, RetryPolicy, call
from bakeoff.calls.tokens import estimated_tokens
from bakeoff.core.figures import CallTime
from bakeoff.core.hashing import text_key
from bakeoff.core.machine import call_time
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.space import Space
from bakeoff.search.answer import Answer, Searcher, Timed
from bakeoff.search.rerankers.base import Reranker, checked


@dataclass(slots=True)
class RerankUsage:
    """What a second stage needed, now or when its scores were bought."""

    pairs: int = 0
    cached: int = 0
    searches: int = 0
    retries: int = 0
    tokens: float = 0.0
    estimated: bool = False


@dataclass(slots=True)
class RerankedSearcher(Searcher):
    """The latency of each stage is kept apart. A hosted model is asked once for each pair; a local one every time."""

    first: Searcher
    reranker: Reranker
    depth: int
    texts: Mapping[str, str]
    policy: RetryPolicy
    space: Space | None = None
    budget: Budget | None = None
    offline: bool = False
    usage: RerankUsage = field(default_factory=RerankUsage)
    _memory: dict[bytes, float] = field(default_factory=dict)  # what a hosted model has answered in this run
    _rate_limit: RateLimit = field(default_factory=RateLimit)
    _round: int | None = None

    def ask(self, query: Query) -> Answer:
        """Only the call to the reranker is timed as its stage; scores from the cache have no time."""
        answer = self.first.ask(query)
        candidates = answer.ranking.ids[: self.depth]
        if not candidates:
            return replace(answer, rerank_ns=0)
        text = self.texts.get(query.item, query.text)
        documents = [self.texts[document] for document in candidates]
        scores, rerank_ns = self._scores(text, documents)
        order = sorted(zip(candidates, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
        rest = answer.ranking.ids[self.depth :]
        lowest = order[-1][1]
        ranking = Ranking(
            (*(document for document, _ in order), *rest),
            (*(score for _, score in order), *(lowest - place for place in range(1, len(rest) + 1))),
            None if answer.ranking.matched is None else max(answer.ranking.matched, len(candidates)),
        )
        if rerank_ns is not None:
            return replace(answer, ranking=ranking, rerank_ns=rerank_ns)
        kept = self._kept_time(text, documents)
        timed = max(answer.timed, Timed.EARLIER if kept else Timed.NEVER)
        return replace(answer, ranking=ranking, timed=timed, kept_rerank=kept)

    def begin_round(self, number: int) -> None:
        """What is asked before the first is no sample of a warm call."""
        self._round = number
        self.first.begin_round(number)

    def prefetch(self, queries: Sequence[Query]) -> None:
        """The first stage has been prefetched by its own row."""

    def close(self) -> None:
        """The first stage belongs to another row."""
        if self.space is not None:
            self.space.close()
        self.reranker.close()

    def _scores(self, query: str, documents: Sequence[str]) -> tuple[list[float], int | None]:
        """Pairs that a hosted model scored before are not paid for again; a time is that of all pairs, or none."""
        if self.reranker.local:
            answered, nanoseconds = self._called(query, list(documents))
            return [answered[document] for document in documents], nanoseconds
        distinct = list(dict.fromkeys(documents))
        known = self._remembered(query, distinct)
        bought = self._kept(query, [document for document in distinct if document not in known])
        known |= bought
        nanoseconds = asked = 0
        while wanted := [document for document in distinct if document not in known]:
            with self._claimed(query, wanted) as mine:
                if mine:
                    answered, took = self._called(query, mine)
                    known |= answered
                    nanoseconds, asked = nanoseconds + took, asked + len(mine)
            bought |= self._arrived(query, [document for document in wanted if document not in known])
            known |= bought
        if bought and not asked:
            self.usage.searches += 1  # as it took when they were bought
        self.usage.cached += len(distinct) - asked
        self._memory.update({text_key(_key(query, document)): score for document, score in known.items()})
        whole = asked == len(distinct)
        if whole and self.space is not None and self._round is not None:
            self.space.note_time(_call_key(query, distinct), call_time(nanoseconds))
        return [known[document] for document in documents], nanoseconds if whole else None

    def _kept_time(self, query: str, documents: Sequence[str]) -> CallTime | None:
        """Of the call of an earlier run that scored these very documents."""
        if self.space is None or self._round != 0:
            return None
        return self.space.call_time(_call_key(query, documents))

    def _remembered(self, query: str, documents: Sequence[str]) -> dict[str, float]:
        """What was answered in this run. Kept by hash: pairs of texts would be as large as the corpus."""
        keys = {document: text_key(_key(query, document)) for document in documents}
        return {document: self._memory[key] for document, key in keys.items() if key in self._memory}

    @contextmanager
    def _claimed(self, query: str, documents: list[str]) -> Iterator[list[str]]:
        """Which of these this process asks for; the others have arrived, or another process is asking for them."""
        if self.space is None or self.offline:
            yield documents
            return
        self.space.check_writable(len(documents))
        keys = keys_of(_key(query, document) for document in documents)
        taken = np.array(self.space.claims.take(keys))
        try:
            self.space.refresh()
            mine = np.flatnonzero(taken & (self.space.find(keys) < 0))
            yield [documents[row] for row in mine]
        finally:
            self.space.claims.release(keys[taken])

    def _arrived(self, query: str, documents: list[str]) -> dict[str, float]:
        """Scores of others, once they have them; what a process did not bring that was asking is not among them."""
        if self.space is None or not documents:
            return {}
        self.space.claims.wait(keys_of(_key(query, document) for document in documents))
        self.space.refresh()
        return self._kept(query, documents)

    def _kept(self, query: str, documents: list[str]) -> dict[str, float]:
        """Scores from the cache, with their tokens in the books; where no server counted, those are an estimate."""
        if self.space is None or not documents:
            return {}
        places = self.space.find(keys_of(_key(query, document) for document in documents))
        kept = [document for document, place in zip(documents, places, strict=True) if place >= 0]
        if not kept:
            return {}
        tokens = self.space.tokens_of(places[places >= 0])
        unknown = [document for document, count in zip(kept, tokens, strict=True) if not count]
        self.usage.tokens += float(tokens.sum(dtype=np.float64)) + _estimated(query, unknown)
        self.usage.estimated |= bool(unknown)
        scores = self.space.take(places[places >= 0])[:, 0]
        return dict(zip(kept, map(float, scores), strict=True))

    def _called(self, query: str, documents: list[str]) -> tuple[dict[str, float], int]:
        if self.offline and not self.reranker.local:
            raise Unavailable(f"--offline, and the scores of {self.reranker.model} are not in the cache")
        about = _estimated(query, documents)
        price = self.reranker.cost(about, 1)
        if price is None and self.reranker.local:
            price = 0.0
        with reservation(self.budget, price, self.reranker.model) as reserved:
            answer, attempted = call(
                lambda: checked(self.reranker.rank(query, documents), documents, self.reranker.model),
                self.policy,
                self._rate_limit,
            )
            tokens = about if answer.tokens is None else float(answer.tokens)
            reserved.actual = self.reranker.cost(tokens, 1) or 0.0
        usage = self.usage
        usage.pairs, usage.searches = usage.pairs + len(documents), usage.searches + 1
        usage.retries, usage.tokens = usage.retries + attempted.retries, usage.tokens + tokens
        usage.estimated |= answer.tokens is None
        if self.space is not None and not self.reranker.local:
            rows = np.array(answer.scores, dtype=np.float32)[:, None]
            self.space.put([_key(query, document) for document in documents], rows, answer.tokens)
        return dict(zip(documents, answer.scores, strict=True)), attempted.nanoseconds


def _estimated(query: str, documents: list[str]) -> float:
    """Tokens of these pairs: a server reads the query with each document."""
    return len(documents) * estimated_tokens([query]) + estimated_tokens(documents)


def _key(query: str, document: str) -> str:
    return f"{query}\0{document}"


def _call_key(query: str, documents: Sequence[str]) -> str:
    return "\0".join([query, "", *sorted(set(documents))])
