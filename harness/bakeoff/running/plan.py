"""What a run would ask for and cost, before any call is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from bakeoff_providers.base import ModelCard, Role

from bakeoff.calls.key_index import KeyIndex, Keys, Places
from bakeoff.calls.tokens import estimated_tokens
from bakeoff.core.progress import showing, steps
from bakeoff.embedding.batches import WORKERS, batches, corpus_batches
from bakeoff.embedding.corpus_chunks import ChunkTexts, in_blocks
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.preflight import provider_warnings, too_long
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.lineup import Lineup
from bakeoff.lineup.sources import missing_of, unset_in
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.engines import with_shared_cache
from bakeoff.running.failures import reason_of
from bakeoff.running.pace import TextSample, seconds_per_text
from bakeoff.running.preparers.reranked import reranker_of
from bakeoff.running.runner import task_of
from bakeoff.running.settings import Settings
from bakeoff.running.turns import WARM_UP
from bakeoff.search.searchers import timed_alone
from bakeoff.tasks.kinds import load_kind
from bakeoff.tasks.kinds.base import TaskKind

SEED = 0  # of the texts that tell a pace


@dataclass(frozen=True, slots=True)
class Plan:
    """One embedding of the line-up: rows that share their vectors share their plan. Tokens and minutes are estimates.

    `lacks` says that these rows would not run; `warnings` what would weaken them.
    """

    rows: tuple[str, ...]
    texts: int = 0
    cached: int = 0
    tokens: float = 0.0
    requests: int = 0
    usd: float | None = 0.0
    minutes: float | None = None
    note: str = ""
    lacks: bool = False
    warnings: tuple[str, ...] = ()


def plan(lineup: Lineup, settings: Settings) -> list[Plan]:
    """A plan for each distinct embedding, in the order of the line-up.

    No service is asked for anything; a model whose weights are here embeds a few texts, which tells its pace.
    """
    with showing(settings.progress):
        return _plans(lineup, settings)


def plan_sentences(plans: Sequence[Plan], lineup: Lineup) -> list[str]:
    """What the table of the plans does not show: rows that embed nothing, and what would weaken the others."""
    planned = {label for one in plans for label in one.rows}
    silent = [contender.label for contender in lineup.contenders if contender.label not in planned]
    verb, are = ("embeds", "is") if len(silent) == 1 else ("embed", "are")
    absent = [
        f"{', '.join(silent)} {verb} nothing of {'its' if len(silent) == 1 else 'their'} own and {are} not listed"
    ]
    warned = [f"warning: {', '.join(one.rows)}: {warning}" for one in plans for warning in one.warnings]
    return [*(absent if silent else []), *dict.fromkeys(warned)]


def _plans(lineup: Lineup, settings: Settings) -> list[Plan]:
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    settings = with_shared_cache(settings, settings.engine or lineup.engine)
    embeddings = Embeddings(task_of(kind, lineup, settings), 1, settings, lineup.folder)
    rows: dict[tuple[str, ...], list[Contender]] = {}
    unset = {contender.label: reason for contender in lineup.contenders if (reason := unset_in(contender))}
    able = [contender for contender in lineup.contenders if contender.label not in unset]
    for contender in (*kind.models, *able):
        if contender.provider:
            rows.setdefault(contender.embedding(), []).append(contender)
    second = [_second_stage(contender, embeddings) for contender in able if contender.rerank]
    lacking = [Plan((label,), note=reason, lacks=True) for label, reason in unset.items()]
    return [*(_plan(sharing, embeddings, settings, lineup, kind) for sharing in rows.values()), *second, *lacking]


def _second_stage(contender: Contender, embeddings: Embeddings) -> Plan:
    """As if nothing were cached: which pairs there will be only the first stage can tell."""
    task, labels = embeddings.task, (contender.label,)
    try:
        reranker = reranker_of(contender.rerank, embeddings.folder) if contender.rerank else None
    except Exception as error:  # whatever a reranker raises is a note to its row
        return Plan(labels, note=reason_of(error), lacks=True)
    if reranker is None or contender.rerank is None:
        return Plan(labels)
    candidates = min(contender.rerank.depth, task.candidates)
    pairs, lacking = candidates * len(task.queries), missing_of(contender) or ""
    if reranker.local:
        return Plan(labels, pairs, note=lacking or "runs here, not timed", lacks=bool(lacking))
    texts = (document.whole(contender.field) for document in task.documents)
    document = sum(map(estimated_tokens, in_blocks(texts, BLOCK))) / len(task.documents)
    tokens = sum(candidates * (estimated_tokens([query.text]) + document) for query in task.queries)
    usd = reranker.cost(tokens, len(task.queries))
    return Plan(labels, pairs, 0, tokens, len(task.queries), usd, None, lacking, bool(lacking))


def _plan(
    sharing: Sequence[Contender], embeddings: Embeddings, settings: Settings, lineup: Lineup, kind: TaskKind
) -> Plan:
    first, labels = sharing[0], tuple(contender.label for contender in sharing)
    try:
        provider, index = first.create(embeddings.folder), embeddings.index(first)
        cache = embeddings.cache(provider)
        embedder = Embedder(
            provider, cache, settings.policy, offline=settings.offline, time_hosted=settings.time_hosted
        )
        texts: Sequence[str] = index.ids if provider.by_id else ChunkTexts(index.chunks)
        embedder.fit(texts)
        queries = [query for query in embeddings.task.queries if not query.item]
        asked = [query.id if provider.by_id else query.text for query in queries]
        if all(contender.existing for contender in sharing):
            texts = ()  # the documents are in an index already
        items = [] if provider.by_id else [*index.texts.values()]  # items ask as the documents that they are
        if not provider.by_id and any(contender not in kind.models for contender in sharing):
            items += kind.further_texts
        documents = _documents(chain(texts, items), len(texts) + len(items), embedder)
        wanted = embedder.missing(asked, Role.QUERY)
        lacking = missing_of(first) or ""
        warnings = () if lacking else tuple(provider_warnings(provider, len(texts), too_long(provider, texts)))
        pace = None if lacking or first.vectors else seconds_per_text(provider, documents.drawn)
    except Exception as error:  # whatever a provider raises is a note to its rows
        return Plan(labels, note=reason_of(error), lacks=True)
    total = documents.texts + len(set(asked))
    cached = total - documents.missing - len(wanted)
    card = provider.card
    tokens = documents.tokens + estimated_tokens(wanted, card.query_prompt)
    if provider.local:
        minutes = documents.missing * pace / 60 if pace is not None else None if documents.missing else 0.0
        here = "runs here" if pace is None else "runs here; its pace by a few texts tried now"
        if first.vectors:
            here, cached = "a vector for each token; runs here, not timed", 0
        return Plan(labels, total, cached, tokens, 0, 0.0, minutes, lacking or here, bool(lacking), warnings)
    alone = [query.text for query in embeddings.task.queries[: timed_alone(embedder)] if not query.item]
    cold = [query.text for query in embeddings.task.queries[:1] if not query.item]
    if embedder.asks_anew:
        single = [*cold * (1 + WARM_UP), *alone * lineup.rounds] * _askings(first, lineup)
    else:
        repeated = _repeated(cold, alone, set(wanted), lineup.rounds, settings.time_hosted)
        tokens += estimated_tokens(repeated, card.query_prompt)
        single = [*(text for text in wanted if text in set(alone)), *repeated]
    together = [text for text in wanted if text not in set(alone)]
    requests = len(single) + documents.requests + sum(1 for _ in batches(together, card, WORKERS))
    return Plan(
        labels,
        total,
        cached,
        tokens,
        requests,
        None if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6,
        _minutes(tokens, requests, card),
        lacking,
        bool(lacking),
        warnings,
    )


def _askings(contender: Contender, lineup: Lineup) -> int:
    """How often a round asks for this embedding: for each of its rows, and for each row that is made of such."""
    rows = {row.label: row for row in lineup.contenders}

    def asks(row: Contender) -> int:
        if row.made_of:
            return sum(asks(rows[part]) for part in row.made_of)
        return int(bool(row.provider) and row.embedding() == contender.embedding())

    return sum(map(asks, lineup.contenders))


def _repeated(cold: list[str], alone: Sequence[str], new: set[str], rounds: int, most: int) -> list[str]:
    """The queries that a paid model is asked for again to time it, after a call that opens the connection."""
    if not most:
        return []
    first = [text for text in dict.fromkeys(alone) if text not in new or text in cold]
    again = list(dict.fromkeys(alone)) * (rounds - 1)
    return [*(text for text in cold if text not in new), *islice(chain(first, again), most)]


class _Documents(NamedTuple):
    """Distinct texts of the corpus, those that are in no cache, what these would take, and a few of them."""

    texts: int
    missing: int
    tokens: float
    requests: int
    drawn: list[str]


def _documents(texts: Iterable[str], total: int, embedder: Embedder) -> _Documents:
    """Counted batch by batch, as a run asks for them: of a block before, only keys are kept."""
    space, card, distinct = embedder.space(Role.DOCUMENT), embedder.provider.card, KeyIndex()
    missing, tokens, requests, drawn = 0, 0.0, 0, TextSample(SEED)

    def find(keys: Keys) -> Places:
        places = np.full(len(keys), -1, dtype=np.int64)
        distinct.add(keys, places)
        advance(len(keys))
        return places if space is None else space.find(keys)

    with steps(f"{card.name}: texts to count", total) as advance:
        for batch in corpus_batches(texts, card, embedder.at_once, BLOCK, find):
            missing, requests = missing + len(batch), requests + 1
            tokens += estimated_tokens(batch, card.document_prompt)
            drawn.add(batch)
    return _Documents(len(distinct), missing, tokens, requests, drawn.texts)


def _minutes(tokens: float, requests: int, card: ModelCard) -> float | None:
    """The time that the known rate limits alone would take; None where none is known."""
    waits = []
    if card.requests_per_minute:
        waits.append(requests / card.requests_per_minute)
    if card.tokens_per_minute:
        waits.append(tokens / card.tokens_per_minute)
    return max(waits, default=None)
