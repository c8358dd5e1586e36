"""What a run would ask for and cost, before any call is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from bakeoff_providers.base import ModelCard, Role

from bakeoff.core.progress import showing, steps
from bakeoff.embedding.batches import WORKERS, batches, corpus_batches, estimated_tokens
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.key_index import KeyIndex, Keys, Places
from bakeoff.embedding.pieces import PieceTexts, in_blocks
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.engines import shared_cache
from bakeoff.running.failures import reason_of
from bakeoff.running.preparers.reranked import reranker_of
from bakeoff.running.runner import task_of
from bakeoff.running.settings import Settings
from bakeoff.search.searchers import TIMED_HOSTED
from bakeoff.tasks.kinds import load_kind


@dataclass(frozen=True, slots=True)
class Plan:
    """One embedding of the line-up: rows that share their vectors share their plan. Tokens are an estimate."""

    rows: tuple[str, ...]
    texts: int = 0
    cached: int = 0
    tokens: float = 0.0
    requests: int = 0
    usd: float | None = 0.0
    minutes: float | None = None
    note: str = ""


def plan(lineup: Lineup, settings: Settings) -> list[Plan]:
    """A plan for each distinct embedding, in the order of the line-up. Asks no provider for anything."""
    with showing(settings.progress):
        return _plans(lineup, settings)


def _plans(lineup: Lineup, settings: Settings) -> list[Plan]:
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    settings = replace(settings, cache=shared_cache(settings.engine or lineup.engine, settings.cache))
    embeddings = Embeddings(task_of(kind, lineup, settings), 1, settings, lineup.folder)
    rows: dict[tuple[str, ...], list[Contender]] = {}
    for contender in (*kind.models, *lineup.contenders):
        if contender.provider:
            rows.setdefault(contender.embedding(), []).append(contender)
    second = [_second_stage(contender, embeddings) for contender in lineup.contenders if contender.rerank]
    return [*(_plan(sharing, embeddings, settings) for sharing in rows.values()), *second]


def _second_stage(contender: Contender, embeddings: Embeddings) -> Plan:
    """As if nothing were cached: which pairs there will be only the first stage can tell."""
    task, labels = embeddings.task, (contender.label,)
    try:
        reranker = reranker_of(contender.rerank, embeddings.folder) if contender.rerank else None
    except Exception as error:  # whatever a reranker raises is a note to its row
        return Plan(labels, note=reason_of(error))
    if reranker is None or contender.rerank is None:
        return Plan(labels)
    candidates = min(contender.rerank.depth, task.candidates)
    pairs, note = candidates * len(task.queries), contender.missing() or ""
    if reranker.local:
        return Plan(labels, pairs, note=note or "runs here")
    texts = (document.whole(contender.field) for document in task.documents)
    document = sum(map(estimated_tokens, in_blocks(texts, BLOCK))) / len(task.documents)
    tokens = sum(candidates * (estimated_tokens([query.text]) + document) for query in task.queries)
    return Plan(labels, pairs, 0, tokens, len(task.queries), reranker.cost(tokens, len(task.queries)), None, note)


def _plan(sharing: Sequence[Contender], embeddings: Embeddings, settings: Settings) -> Plan:
    first, labels = sharing[0], tuple(contender.label for contender in sharing)
    try:
        provider, index = first.create(embeddings.folder), embeddings.index(first)
        embedder = Embedder(provider, embeddings.cache(provider), settings.policy)
        texts: Sequence[str] = index.ids if provider.by_id else PieceTexts(index.chunks)
        embedder.fit(texts)
        queries = [query for query in embeddings.task.queries if not query.item]
        asked = [query.id if provider.by_id else query.text for query in queries]
        if all(contender.existing for contender in sharing):
            texts = ()  # the documents are in an index already
        items = () if provider.by_id else index.texts.values()  # items ask as the documents that they are
        documents = _documents(chain(texts, items), len(texts) + len(items), embedder)
        wanted = embedder.missing(asked, Role.QUERY)
    except Exception as error:  # whatever a provider raises is a note to its rows
        return Plan(labels, note=reason_of(error))
    total = documents.texts + len(set(asked))
    cached = total - documents.missing - len(wanted)
    note = first.missing() or ""
    if first.vectors:
        return Plan(labels, total, note=note or "a vector for each token; runs here")
    if provider.local:
        return Plan(labels, total, cached, note=note or "runs here")
    card = provider.card
    tokens = documents.tokens + estimated_tokens(wanted, card.query_prompt)
    timed = min(TIMED_HOSTED, len(wanted))  # queries that go one by one, for the sake of their latency
    requests = timed + documents.requests + sum(1 for _ in batches(wanted[timed:], card, WORKERS))
    return Plan(
        labels,
        total,
        cached,
        tokens,
        requests,
        None if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6,
        _minutes(tokens, requests, card),
        note,
    )


class _Documents(NamedTuple):
    """Distinct texts of the corpus, those that are in no cache, and what these would take."""

    texts: int
    missing: int
    tokens: float
    requests: int


def _documents(texts: Iterable[str], total: int, embedder: Embedder) -> _Documents:
    """Counted batch by batch, as a run asks for them: of a block before, only keys are kept."""
    space, card, distinct = embedder.space(Role.DOCUMENT), embedder.provider.card, KeyIndex()
    missing, tokens, requests = 0, 0.0, 0

    def find(keys: Keys) -> Places:
        places = np.full(len(keys), -1, dtype=np.int64)
        distinct.add(keys, places)
        advance(len(keys))
        return places if space is None else space.find(keys)

    with steps(f"{card.name}: texts to count", total) as advance:
        for batch in corpus_batches(texts, card, embedder.at_once, BLOCK, find):
            missing, requests = missing + len(batch), requests + 1
            tokens += estimated_tokens(batch, card.document_prompt)
    return _Documents(len(distinct), missing, tokens, requests)


def _minutes(tokens: float, requests: int, card: ModelCard) -> float | None:
    """The time that the known rate limits alone would take; None where none is known."""
    waits = []
    if card.requests_per_minute:
        waits.append(requests / card.requests_per_minute)
    if card.tokens_per_minute:
        waits.append(tokens / card.tokens_per_minute)
    return max(waits, default=None)
