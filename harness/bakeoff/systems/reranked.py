"""A second stage over another row's candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors, cache_key
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.keys import fill_in
from bakeoff_providers.weights import is_hub_name

from bakeoff.calls.budget import Budget, estimate_tokens
from bakeoff.calls.key_index import keys_of
from bakeoff.calls.paid import Account, Calls, Request, Sent, Service, Usage
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.facts import fact
from bakeoff.core.machine import call_time
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.corpus_chunks import TextsById, WholeTexts, in_blocks
from bakeoff.embedding.space import Space
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.search.answer import Answer, Searcher, Timed
from bakeoff.search.rerankers import RERANKERS, Reranker, check_scores
from bakeoff.systems.base import FieldRow, Identity, Plan, Prepared, Ready, RunContext, count_parts
from bakeoff.systems.failures import adapter_work, failure_of


@dataclass(slots=True)
class RerankedSearcher(Searcher):
    """Times each stage separately. A hosted model scores each pair once, a local one every time."""

    first: Searcher
    reranker: Reranker
    depth: int
    texts: Mapping[str, str]
    policy: RetryPolicy
    space: Space | None = None
    budget: Budget | None = None
    offline: bool = False
    _calls: Calls = field(init=False)
    _account: Account = field(default_factory=Account, init=False)
    _earlier: int = field(default=0, init=False)  # queries whose scores an earlier run paid for
    _memory: dict[bytes, float] = field(default_factory=dict, init=False)  # scores of this run, by hash
    _round: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._calls = Calls(self.policy, self.budget, self.offline)

    @property
    def usage(self) -> Usage:
        """Pairs, requests and tokens so far."""
        return self._account.usage

    @property
    def searches(self) -> int:
        """Paid calls of this and earlier runs."""
        return self.usage.answered + self._earlier

    def ask(self, query: Query) -> Answer:
        """Times only the reranker's call; cached scores have no time."""
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
        earlier = self.space if self._round == 0 else None
        kept = None if earlier is None else earlier.call_time(_call_key(text, documents))
        timed = max(answer.timed, Timed.EARLIER if kept else Timed.NEVER)
        return replace(answer, ranking=ranking, timed=timed, kept_rerank=kept)

    def begin_round(self, number: int) -> None:
        """Calls before the first round are not warm samples."""
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
        """Never pays twice for a pair. A time is returned only if all pairs were sent."""
        service = self._service(query)
        if self.reranker.local:
            self._account.add(Usage(asked=len(documents)))
            here = self._calls.send(service, list(documents), self._account)
            return here.values[:, 0].tolist(), here.nanoseconds
        distinct = list(dict.fromkeys(documents))
        pairs = Request(distinct, keys_of(f"{query}\0{document}" for document in distinct))
        bought = self._remember_kept(query, pairs)
        wanted, sent, nanoseconds = self._unknown(pairs), 0, 0
        for _, got in self._calls.obtain(service, self.space, [wanted] if wanted.texts else [], self._account):
            if got is not None:
                sent, nanoseconds = sent + len(got.texts), nanoseconds + got.nanoseconds
                self._remember(query, got.texts, got.values)
        bought += self._remember_kept(query, wanted)  # added by another process meanwhile
        self._earlier += bool(bought and not sent)
        self._account.add(Usage(asked=len(distinct), cached=len(distinct) - sent))
        scores = {text: self._memory[key.tobytes()] for text, key in zip(distinct, pairs.keys, strict=True)}
        whole = sent == len(distinct)
        if whole and self.space is not None and self._round is not None:
            self.space.note_time(_call_key(query, distinct), call_time(nanoseconds))
        return [scores[document] for document in documents], nanoseconds if whole else None

    def _unknown(self, pairs: Request) -> Request:
        return pairs.rows(np.array([key.tobytes() not in self._memory for key in pairs.keys], dtype=np.bool_))

    def _remember(self, query: str, documents: list[str], scores: Vectors) -> None:
        keys = keys_of(f"{query}\0{document}" for document in documents)
        self._memory.update(zip((key.tobytes() for key in keys), scores[:, 0].tolist(), strict=True))

    def _remember_kept(self, query: str, pairs: Request) -> int:
        """Take scores from the cache and return their number. Tokens not counted by a server are estimated."""
        pairs = self._unknown(pairs)
        if self.space is None or not pairs.texts:
            return 0
        kept = pairs.rows((places := self.space.find(pairs.keys)) >= 0)
        if kept.texts:
            tokens = self.space.tokens_of(places[places >= 0])
            unknown = list(compress(kept.texts, tokens == 0))
            about = float(tokens.sum(dtype=np.float64)) + _estimate_tokens(query, unknown)
            self._account.add(Usage(tokens=about, estimated=bool(unknown)))
            self._remember(query, kept.texts, self.space.take(places[places >= 0]))
        return len(kept.texts)

    def _service(self, query: str) -> Service[Vectors]:
        """One call per query; scores are cached as one-dimensional vectors."""
        reranker = self.reranker

        def send(documents: list[str]) -> Sent:
            answer = reranker.rank(query, documents)
            return Sent(answer, answer.tokens)

        return Service(
            name=reranker.model,
            local=reranker.local,
            lacks=lambda _: f"the scores of {reranker.model} are",
            estimate=lambda documents: (_estimate_tokens(query, documents), 0.0),
            price=lambda tokens: 0.0 if reranker.local else reranker.cost(tokens[0], 1),
            send=send,
            read=lambda answer, texts: np.array([check_scores(answer, texts, reranker.model).scores], np.float32).T,
        )


def _estimate_tokens(query: str, documents: Sequence[str]) -> float:
    """Tokens of these pairs; the query counts once per document."""
    return len(documents) * estimate_tokens([query]) + estimate_tokens(documents)


def _call_key(query: str, documents: Sequence[str]) -> str:
    return "\0".join([query, "", *sorted(set(documents))])


@dataclass(frozen=True, slots=True)
class Rerank:
    """The first stage, the depth, and the reranker."""

    of: str
    provider: str
    model: str = ""
    depth: int = 50
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RerankedRow(FieldRow):
    """Queries the first stage, then the reranker, which reads the same field."""

    row_type: ClassVar[str] = "reranked"

    rerank: Rerank = field(kw_only=True)

    @property
    def made_of(self) -> tuple[str, ...]:
        """The first stage."""
        return (self.rerank.of,)

    @property
    def local(self) -> bool:
        """As the reranker's class declares."""
        return RERANKERS.get(self.rerank.provider).local

    @property
    def identity(self) -> Identity:
        """The reranker is the provider."""
        return Identity(self.rerank.provider, self.name)

    def lacks_parts(self) -> str | None:
        """What the reranker lacks."""
        return RERANKERS.get(self.rerank.provider).missing(**fill_in(self.rerank.options, secret=False))

    def check(self, run: RunContext) -> None:
        """Create the reranker, which checks its options and files."""
        if not self.lacks():
            self._create(run.folder).close()

    def count(self, run: RunContext, ready: Ready) -> Prepared | None:  # noqa: ARG002
        """Count the calls of its first stage."""
        return count_parts(self, ready)

    def plan(self, run: RunContext, rows: tuple[str, ...]) -> Plan:
        """An upper bound that ignores the cache, since only the first stage determines the pairs."""
        task = run.task
        try:
            reranker = self._create(run.folder)
            reranker.close()
        except Exception as error:  # any exception of a reranker becomes a note
            return Plan(rows, failure=failure_of(error))
        candidates = min(self.rerank.depth, run.depth, task.candidates)
        pairs, lacking = candidates * len(task.queries), self.lacks()
        failure = failure_of(Unavailable(lacking)) if lacking else None
        if reranker.local:
            return Plan(rows, pairs, note=fact("local_untimed"), failure=failure)
        texts = TextsById(task.documents, self.field)
        whole = (document.whole(self.field) for document in task.documents)
        document = sum(map(estimate_tokens, in_blocks(whole, BLOCK))) / len(task.documents)
        asked = [texts.get(query.item, query.text) for query in task.queries]
        tokens = sum(candidates * (estimate_tokens([text]) + document) for text in asked)
        usd = reranker.cost(tokens, len(task.queries))
        return Plan(rows, pairs, 0, tokens, len(task.queries), usd, None, fact("upper_bound"), failure)

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Prepare the reranker; fails unless the first stage is ready."""
        if (reason := self.lacks()) and not run.offline:
            raise Unavailable(reason)
        first, documents = ready[self.rerank.of], run.task.documents
        if not isinstance(first, Prepared):
            raise Unavailable(f"needs {self.rerank.of}, which can't run here")
        with adapter_work():
            reranker = self._create(run.folder)
            reranker.load(offline=run.offline)
            identity = None if reranker.local else cache_key(reranker)
            cache = run.own_cache
            note = reranker.prepare(WholeTexts(documents, self.field), cache)
        searcher = RerankedSearcher(
            first.searcher,
            reranker,
            self.rerank.depth,
            TextsById(documents, self.field),
            run.policy,
            cache.space(identity) if cache and identity is not None else None,
            run.budget,
            run.offline,
        )
        build = replace(first.build, notes=(note,) if note else ())
        return Prepared(self, searcher, build, first.embedder)

    def _create(self, folder: Path) -> Reranker:
        """Create the reranker. Paths are relative to the line-up; a name without a file is unchanged."""
        rerank = self.rerank
        options: dict[str, Any] = {
            **fill_in(rerank.options, secret=False),
            **({"model": rerank.model} if rerank.model else {}),
        }
        paths = RERANKERS.get(rerank.provider).paths
        files = {key: folder / Path(options[key]).expanduser() for key in paths if options.get(key)}
        there = {key: str(path) for key, path in files.items() if path.exists() or not is_hub_name(str(options[key]))}
        return self.create_part(RERANKERS, rerank.provider, **{**options, **there})
