"""Embed one shard of a line-up's corpus, independently of other jobs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
from bakeoff_providers.base import Role
from bakeoff_providers.errors import Unavailable

from bakeoff.core.progress import showing, track
from bakeoff.core.task import Task
from bakeoff.embedding.cache import Space
from bakeoff.embedding.corpus_chunks import ChunkTexts
from bakeoff.embedding.embed import Embedder, corpus_batches
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.settings import Settings
from bakeoff.running.shard_folders import Receipt, ShardNumber, note_complete
from bakeoff.systems.embedding import EmbeddingRow, count_timed_alone
from bakeoff.systems.failures import adapter_work, reason_of
from bakeoff.tasks.kinds import load_kind

WINDOW = 64  # batches per cache lookup


@dataclass(frozen=True, slots=True)
class Embedded:
    """The outcome of one embedding, or why it failed."""

    labels: tuple[str, ...]
    texts: int = 0
    asked: int = 0
    failed: str = ""


def embed_shard(
    lineup: Lineup,
    shard: ShardNumber,
    settings: Settings,
    *,
    queries: bool = False,
    saved: Callable[[Space], None] = lambda _space: None,
) -> list[Embedded]:
    """Embed this shard of every contender's documents into the cache. Cached texts are not sent again.

    `saved` is called with the space after each part is written to disk.
    """
    with showing(settings.progress):
        return _embed_shard(lineup, shard, settings, queries=queries, saved=saved)


def _embed_shard(
    lineup: Lineup, shard: ShardNumber, settings: Settings, *, queries: bool, saved: Callable[[Space], None]
) -> list[Embedded]:
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    embeddings = Embeddings(kind.task(), 1, settings, lineup.folder)
    sharing: dict[Hashable, list[EmbeddingRow]] = {}
    for contender in (*kind.models, *lineup.contenders):
        if isinstance(contender, EmbeddingRow) and contender.embeds_documents:
            sharing.setdefault(contender.shares, []).append(contender)
    done = []
    try:
        for contenders in sharing.values():
            labels = tuple(contender.label for contender in contenders)
            try:
                done.append(_embed_row(contenders[0], labels, embeddings, shard, queries=queries, saved=saved))
            except Exception as error:  # a failure affects only this embedding
                done.append(Embedded(labels, failed=reason_of(error)))
    finally:
        embeddings.close()
    return done


def _embed_row(
    contender: EmbeddingRow,
    labels: tuple[str, ...],
    embeddings: Embeddings,
    shard: ShardNumber,
    *,
    queries: bool,
    saved: Callable[[Space], None],
) -> Embedded:
    if reason := replace(contender, store="").lacks():  # a job that only embeds needs no store
        raise Unavailable(reason)
    embedder = embeddings.embedder(contender)
    if embedder.provider.by_id:
        return Embedded(labels)  # its vectors are already in a file
    texts = ChunkTexts(embeddings.index(contender).chunks)
    with adapter_work():
        embedder.fit(texts)
        if embedder.space(Role.DOCUMENT) is None:
            raise Unavailable("its code may change unnoticed, so its vectors are not cached: give it a revision")
        card, at_once = embedder.provider.card, embedder.at_once
        fill = partial(_fill, embedder, shard=shard, settings=embeddings.settings, saved=saved)
        fill(lambda: corpus_batches(texts, card, at_once, BLOCK), len(texts), role=Role.DOCUMENT)
        if queries:
            fill(lambda: _query_batches(embedder, embeddings.task), len(embeddings.task.queries), role=Role.QUERY)
    usage = embedder.usage.values()
    asked = sum(one.asked - one.cached for one in usage)
    return Embedded(labels, sum(one.asked for one in usage), asked)


def _query_batches(embedder: Embedder, task: Task) -> Iterator[list[str]]:
    """As in a run: the first queries one by one, since they are timed, the others in batches."""
    texts = list(dict.fromkeys(query.text for query in task.queries if not query.item))
    timed = count_timed_alone(embedder)
    yield from ([text] for text in texts[:timed])
    yield from corpus_batches(texts[timed:], embedder.provider.card, embedder.at_once, BLOCK)


def _fill(
    embedder: Embedder,
    batches: Callable[[], Iterator[list[str]]],
    texts: int,
    *,
    role: Role,
    shard: ShardNumber,
    settings: Settings,
    saved: Callable[[Space], None],
) -> None:
    """Iterate twice, to count the batches and to take this shard's, since they may not fit in memory."""
    space = embedder.space(role)
    assert space is not None
    counted = track(f"{embedder.provider.card.name}: {role.value} texts to count", texts, batches())
    sizes = np.fromiter(map(len, counted), dtype=np.int64)
    start, stop = shard.share(len(sizes))
    count = int(sizes[start:stop].sum())
    with settings.progress(f"{embedder.provider.card.name}: {role.value} vectors, {shard}", count) as advance:
        mine = islice(batches(), start, stop)
        while window := list(islice(mine, WINDOW)):
            embedder.embed_batches(window, role, space, advance, count)
            saved(space)
    note_complete(embedder, role, Receipt(count, int(sizes.sum())))
    saved(space)
