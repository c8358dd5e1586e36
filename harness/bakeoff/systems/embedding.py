"""The base of all rows that embed queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import Unavailable, join_lacks
from bakeoff_providers.keys import fill_in
from bakeoff_providers.needs import Plugin
from bakeoff_providers.own import Own
from bakeoff_providers.registry import Registry

from bakeoff.calls.budget import estimate_tokens
from bakeoff.core.clock import SAMPLES_FOR
from bakeoff.core.facts import fact
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.core.toml_values import json_safe
from bakeoff.embedding.counting import CountingEmbedder
from bakeoff.embedding.embed import Embedder, TimedVector
from bakeoff.search.answer import Answer, Searcher, Timed
from bakeoff.search.index import Index
from bakeoff.search.stores import STORES
from bakeoff.systems.base import Build, ChunkedRow, Identity, Plan, Prepared, Ready, RunContext
from bakeoff.systems.failures import failure_of

TIMED_PAID = SAMPLES_FOR[95] + 1  # queries timed one by one at a paid provider: enough for a p95, and the cold call
TIMED_FREE = 100  # the same for a free one, per round: 300 queries in six rows take minutes
FETCHED_AT_ONCE = 8192  # queries per bulk embedding
STAND_IN = np.ones(1, dtype=np.float32)  # for a vector that is never read
ENOUGH = 1.0  # seconds of embedding, to estimate the pace


@dataclass(frozen=True)
class EmbeddingRow(ChunkedRow):
    """A row with a provider, or a Python function or object (`live`) instead."""

    embeds_documents: ClassVar[bool] = True
    per_token: ClassVar[bool] = False  # one vector per token, compared by MaxSim

    provider: str = field(kw_only=True)
    model: str = field(default="", kw_only=True)
    store: str = field(default="", kw_only=True)
    options: dict[str, Any] = field(default_factory=dict, kw_only=True)
    live: Any = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def local(self) -> bool:
        """As the provider's class declares."""
        return PROVIDERS.get(self.provider).local

    @property
    def baseline(self) -> bool:
        """As the provider's class declares."""
        return PROVIDERS.get(self.provider).baseline

    @property
    def identity(self) -> Identity:
        """A user's function is identified by its name."""
        default = PROVIDERS.get(self.provider).default_model or self.options.get("function", "")
        return Identity(self.provider, self.model or default or self.name, self.store)

    @property
    def shares(self) -> Hashable:
        """Provider, model, field and everything else that changes its vectors."""
        options = msgspec.json.encode(json_safe(dict(sorted(self.options.items())))).decode()
        if self.live is not None:
            options += f" #{id(self.live)}"
        if self.isolate is not None:
            options += f" isolate={self.isolate}"
        if self.chunking is not None:
            options += f" {msgspec.json.encode(self.chunking).decode()}"
        return self.provider, self.model, self.field, options + (" tokens" if self.per_token else "")

    def create(self, folder: Path) -> Provider:
        """Create its provider; paths in options are relative to the line-up."""
        if self.unset:
            raise Unavailable(self.unset)
        options = resolve_paths(self.provider, self._fill_options(), folder)
        if isinstance(self.live, Provider):
            return self.live
        if self.live is not None:
            options["target"] = self.live
        return self.create_part(PROVIDERS, self.provider, **({"model": self.model} if self.model else {}), **options)

    def _fill_options(self) -> dict[str, Any]:
        """Options with values from the environment. A user's code fills in its own, outside the cache key."""
        own = issubclass(PROVIDERS.get(self.provider), Own)
        declared = {option.name for option in PROVIDERS.options(self.provider)} if own else set(self.options)
        return {key: fill_in(value, secret=False) if key in declared else value for key, value in self.options.items()}

    def lacks_parts(self) -> str | None:
        """Missing requirements of the provider and the store."""
        if self.chunking and (reason := self.chunking.missing()):
            return reason
        adapter = PROVIDERS.get(self.provider)
        provider = adapter.missing(**fill_in(self.options, secret=False)) if self.live is None else None
        return join_lacks(provider, self.lacks_store() if self.store else None)

    def lacks_store(self) -> str | None:
        """What the store lacks here."""
        return None

    def count(self, run: RunContext, ready: Ready) -> Prepared:  # noqa: ARG002
        """Count the corpus if it is embedded, then prepare to count queries."""
        if self.embeds_documents:
            run.of(self)
        searcher = EmbeddedQueries(run.embedder(self), run.index(self))
        for item in searcher.index.texts:
            if searcher.index.row_of(item) is not None:
                searcher.set_item_vector(item, STAND_IN)
        return Prepared(self, searcher, Build(seconds=0.0), searcher.embedder)

    def plan(self, run: RunContext, rows: tuple[str, ...]) -> Plan:
        """Figures of all rows that share these vectors. A local model embeds a few texts, to estimate its pace."""
        embedder = run.embedder(self)
        assert isinstance(embedder, CountingEmbedder)
        provider, usage, lacking = embedder.provider, embedder.usage, self.lacks()
        failure = failure_of(Unavailable(lacking)) if lacking else None
        warnings = () if lacking else tuple(run.warnings_before(self))
        texts, cached = (sum(getattr(usage[role], name) for role in Role) for name in ("asked", "cached"))
        sent = embedder.calls.sent.usage
        if provider.local:
            asked = {query.id if provider.by_id else query.text for query in run.task.queries if not query.item}
            wanted = embedder.missing(asked, Role.QUERY)
            tokens = sent.tokens + estimate_tokens(wanted, provider.card.query_prompt)
            documents = usage[Role.DOCUMENT]
            missing = documents.asked - documents.cached
            drawn = embedder.calls.sample.texts
            pace = None if lacking or self.per_token else seconds_per_text(provider, drawn)
            minutes = missing * pace / 60 if pace is not None else None if missing else 0.0
            here = fact("local" if pace is None else "local_timed")
            if self.per_token:
                here = fact("local_token_vectors")
            texts, cached = texts + len(asked), 0 if self.per_token else cached + len(asked) - len(wanted)
            return Plan(rows, texts, cached, tokens, 0, 0.0, minutes, here, failure, warnings)
        minutes = _minutes(sent.tokens, sent.requests, provider.card)
        return Plan(rows, texts, cached, sent.tokens, sent.requests, sent.usd, minutes, None, failure, warnings)


@dataclass(frozen=True)
class StoreRow(EmbeddingRow):
    """A row whose vectors go into a store that is built for it."""

    default_store: ClassVar[str] = ""  # if the line-up names none

    store_options: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @classmethod
    def stores(cls) -> Registry[Any]:
        """The stores it can use."""
        return STORES

    def lacks_store(self) -> str | None:
        """The store's missing library, address or key."""
        store: type[Plugin] = self.stores().get(self.store)
        return store.missing(**self.fill_store_options())

    def fill_store_options(self) -> dict[str, Any]:
        """Options with values from the environment, which no result may hold."""
        return {key: fill_in(value, secret=False) for key, value in self.store_options.items()}


@dataclass(slots=True)
class EmbeddingSearcher(Searcher):
    """Embeds queries: a few one by one and timed, the rest in bulk."""

    embedder: Embedder
    index: Index
    _vectors: dict[str, Vectors] = field(default_factory=dict, init=False)  # by text, already embedded
    _items: set[str] = field(default_factory=set, init=False)  # those of them with stored vectors

    def set_item_vector(self, item: str, vector: Vectors) -> None:
        """Reuse the stored vector of an item that is one chunk."""
        text = item if self.embedder.provider.by_id else self.index.texts[item]
        self._vectors[text] = vector
        self._items.add(text)

    def prefetch(self, queries: Sequence[Query]) -> None:
        """Embed all but the first few in bulk, untimed."""
        rest = queries[count_timed_alone(self.embedder) :]
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
        """Adds the embedding time if known; an item needs no embedding."""
        if found.nanoseconds is not None or self._query_text(query) in self._items:
            return Answer(ranking, search_ns, found.nanoseconds)
        timed = Timed.EARLIER if found.kept else Timed.NEVER
        return Answer(ranking, search_ns, timed=timed, kept_embed=found.kept)

    def _query_text(self, query: Query) -> str:
        if self.embedder.provider.by_id:
            return query.item or query.id
        return self.index.texts[query.item] if query.item else query.text


class EmbeddedQueries(EmbeddingSearcher):
    """Embeds queries only, for a dry run without an index."""

    def ask(self, query: Query) -> Answer:
        """An empty ranking."""
        return self._answer(query, Ranking((), ()), 0, self._vector(query))


def resolve_paths(provider: str, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options with relative paths resolved against this folder."""
    paths = PROVIDERS.get(provider).paths
    return {key: str(folder / Path(value).expanduser()) if key in paths else value for key, value in options.items()}


def count_timed_alone(embedder: Embedder) -> int:
    """Number of queries embedded one by one, to time them."""
    return TIMED_FREE if embedder.asks_anew else max(TIMED_PAID, embedder.time_hosted)


def _role(query: Query) -> Role:
    """An item is embedded as a document, so that its vector is the stored one."""
    return Role.DOCUMENT if query.item else Role.QUERY


def _minutes(tokens: float, requests: int, card: ModelCard) -> float | None:
    """Minutes under the known rate limits; None if none is known."""
    waits = []
    if card.requests_per_minute:
        waits.append(requests / card.requests_per_minute)
    if card.tokens_per_minute:
        waits.append(tokens / card.tokens_per_minute)
    return max(waits, default=None)


def seconds_per_text(
    provider: Provider, texts: Sequence[str], clock: Callable[[], float] = time.perf_counter
) -> float | None:
    """Seconds per text, measured on a growing sample and scaled by tokens.

    None if there is nothing to measure. Only a model with its own tokenizer certainly runs here; a user's function may
    call a paid service.
    """
    if not (provider.local and provider.own_tokens and texts):
        return None
    provider.embed(texts[:1], Role.DOCUMENT)  # loads the weights
    context = provider.context_tokens() or math.inf
    tokens = [min(max(1, provider.count_tokens(text)), context) for text in texts]
    done, spent, size = 0, 0.0, 1
    while done < len(texts) and spent < ENOUGH:
        start = clock()
        provider.embed(texts[done : done + size], Role.DOCUMENT)
        spent, done, size = spent + clock() - start, min(done + size, len(texts)), 2 * size
    return spent / sum(tokens[:done]) * sum(tokens) / len(texts)
