"""Chunks and vectors of the corpus, computed once per embedding."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Fitted, Provider, Role
from bakeoff_providers.errors import Unavailable

from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import TEMPORARY
from bakeoff.core.task import Task
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.chunking import ContenderChunking, contender_chunks
from bakeoff.embedding.corpus_chunks import ChunkAsDocumentSays, Chunker, ChunkTexts, chunks_of_corpus
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.given_vectors import GivenVectors, WithGivenVectors
from bakeoff.embedding.preflight import names_in_answers, provider_warnings, too_long, truncation_warnings
from bakeoff.lineup.entries import EngineEntry
from bakeoff.running.engines import CorpusJob, Engine, Local
from bakeoff.running.settings import Settings
from bakeoff.running.shard_folders import check_complete
from bakeoff.running.stages import Embedding
from bakeoff.search.index import Index
from bakeoff.search.stores.scratch import scratch
from bakeoff.systems.base import ChunkedRow, EmbeddedCorpus
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.systems.failures import adapter_work, reason_of


class CorpusNotes(NamedTuple):
    """Warnings about an embedded corpus, with the estimated number of texts too long for the model."""

    warnings: tuple[Fact, ...]
    cut: tuple[int, int] | None = None


class Embeddings:
    """Chunks and vectors of the corpus, computed once per embedding and field."""

    embedder_type: ClassVar[type[Embedder]] = Embedder
    cache_type: ClassVar[type[VectorCache]] = VectorCache

    def __init__(
        self,
        task: Task,
        depth: int,
        settings: Settings,
        folder: Path,
        engine: Engine = Local(EngineEntry()),
        given: Callable[[str], GivenVectors | None] = lambda _: None,
    ) -> None:
        self.given = given  # by model: vectors that came with the task
        self.task, self.depth, self.settings, self.folder, self.engine = task, depth, settings, folder, engine
        self.offline, self.time_hosted, self.policy = settings.offline, settings.time_hosted, settings.policy
        self.budget, self.progress = settings.budget, settings.progress
        self.place, self.nearest = engine.place, engine.nearest
        self._indexes: dict[Hashable, Index] = {}
        self._embedders: dict[Hashable, Embedder] = {}
        self._corpora: dict[Hashable, EmbeddedCorpus | Exception] = {}
        self._notes: dict[Embedder, CorpusNotes] = {}
        self._warnings_before: dict[Hashable, list[Fact]] = {}
        self._resources = contextlib.ExitStack()

    def index(self, row: ChunkedRow) -> Index:
        """The chunks that this row searches. Precomputed vectors need no text."""
        model = row if isinstance(row, EmbeddingRow) else None
        known = model is not None and PROVIDERS.get(model.provider).by_id
        name, chunking = ("", None) if known else (row.field, row.chunking)
        by_tokens = model if chunking is not None and chunking.unit == "tokens" else None
        key = (name, chunking, by_tokens.shares if by_tokens else ())
        if key not in self._indexes:
            items = {query.item for query in self.task.queries if query.item}
            documents = self.task.documents if items else ()
            texts = {document.id: document.whole(name) for document in documents if document.id in items}
            chunks = chunks_of_corpus(self.task.documents, self._chunker(name, chunking, by_tokens))
            how = chunking or ContenderChunking()
            self._indexes[key] = Index(chunks, self.depth, texts, self.metadata, how.parents, how.top)
        return self._indexes[key]

    def texts(self, row: EmbeddingRow) -> Sequence[str]:
        """The texts to embed: chunks, or ids for precomputed vectors."""
        index = self.index(row)
        return index.ids if self.embedder(row).provider.by_id else ChunkTexts(index.chunks)

    @cached_property
    def metadata(self) -> dict[str, Mapping[str, Any]]:
        """The documents' fields, read once for all indexes."""
        return self.task.metadata

    def _chunker(self, name: str, chunking: ContenderChunking | None, by_tokens: EmbeddingRow | None) -> Chunker:
        """The row's chunking, else the task's; tokens are those of the row's model."""
        if chunking is None:
            return ChunkAsDocumentSays(name)
        if by_tokens is None:
            return lambda document: contender_chunks(document, name, chunking)
        count = self.embedder(by_tokens).provider.count_tokens
        return lambda document: contender_chunks(document, name, chunking, count)

    @property
    def chunks(self) -> int:
        """The largest number of chunks over all fields."""
        return max((len(index.ids) for index in self._indexes.values()), default=0)

    def embedder(self, row: EmbeddingRow) -> Embedder:
        """The row's provider behind the cache. Embeds nothing yet."""
        key, settings = row.shares, self.settings
        if key not in self._embedders:
            provider, noted = self._provider(row)
            embedder = self._embedders[key] = self.embedder_type(
                provider,
                self.cache(provider),
                settings.policy,
                self.budget,
                offline=settings.offline,
                time_hosted=settings.time_hosted,
                progress=settings.progress,
            )
            self._notes[embedder] = CorpusNotes(noted)
        return self._embedders[key]

    def embedding(self, embedder: Embedder) -> Embedding:
        """Usage of a row's embedder so far."""
        provider, notes = embedder.provider, self._notes[embedder]
        return Embedding(
            provider.card,
            provider.local,
            embedder.asks_anew,
            provider.needs_network,
            embedder.usage,
            (*notes.warnings, *embedder.warnings),
            embedder.lengths,
            notes.cut,
            names_in_answers(provider),
        )

    def _provider(self, row: EmbeddingRow) -> tuple[Provider, tuple[Fact, ...]]:
        """The provider, with the task's own vectors if there are any, and a note about them."""
        provider = row.create(self.folder)
        if provider.by_id or isinstance(provider, Fitted) or row.per_token:
            return provider, ()
        if (given := self.given(provider.model)) is None:
            return provider, ()
        file = "/".join(given.file.parts[-3:])
        note = fact("given_vectors", count=len(given.rows), documents=len(self.task.documents), file=file)
        return WithGivenVectors(provider, given), (note,)

    def warnings_before(self, row: EmbeddingRow) -> list[Fact]:
        """Warnings about this embedding that are known before embedding."""
        key = row.shares
        if key not in self._warnings_before:
            provider, texts = self.embedder(row).provider, self.texts(row)
            self._warnings_before[key] = provider_warnings(provider, len(texts), too_long(provider, texts))
        return self._warnings_before[key]

    def cache(self, provider: Provider) -> VectorCache | None:
        """The cache of a provider's vectors, with shards; None without a cache."""
        settings = self.settings
        if provider.by_id or not (settings.cache or settings.vectors):
            return None
        if settings.cache:
            return self.cache_type(settings.cache, settings.vectors, settings.fetch)
        return self.cache_type(self._temporary / "queries", settings.vectors, settings.fetch, TEMPORARY)

    @property
    def own_cache(self) -> VectorCache | None:
        """The cache of scores and token vectors; None without a cache."""
        return VectorCache(self.settings.cache) if self.settings.cache else None

    @cached_property
    def _temporary(self) -> Path:
        """A folder for vectors that are not cached."""
        return self._resources.enter_context(scratch("vectors"))

    def of(self, row: EmbeddingRow) -> EmbeddedCorpus:
        """The vectors of all chunks, through the cache. Computed once, and fails once."""
        key = row.shares
        if key not in self._corpora:
            try:
                self._corpora[key] = self._embed(row)
            except Exception as error:  # whatever a provider raises is its row's reason
                self._corpora[key] = error
        corpus = self._corpora[key]
        if isinstance(corpus, Exception):
            raise Unavailable(reason_of(corpus)) from corpus
        return corpus

    def close(self) -> None:
        """Close shards and providers."""
        for embedder in self._embedders.values():
            with contextlib.suppress(Exception):  # a lost session must not lose the result
                embedder.close()
        self._resources.close()

    def _fits_sample(self, provider: Provider) -> bool:
        """Whether it is fitted locally to a sample, which shards of all documents do not match."""
        return self.settings.sample_documents is not None and isinstance(provider, Fitted) and provider.local

    def _embed(self, row: EmbeddingRow) -> EmbeddedCorpus:
        settings = self.settings
        if (reason := row.lacks()) and not settings.offline:
            raise Unavailable(reason)
        embedder = self.embedder(row)
        provider, texts = embedder.provider, self.texts(row)
        long = too_long(provider, texts)
        warnings = (*self._notes[embedder].warnings, *provider_warnings(provider, len(texts), long))
        notes = self._notes[embedder] = CorpusNotes(warnings, (long, len(texts)))
        for warning in notes.warnings:
            settings.notice(warning)
        with adapter_work():
            embedder.fit(texts)
            if settings.vectors and not provider.by_id and not self._fits_sample(provider):
                check_complete(embedder, texts, row, settings.vectors)
            folder = self._temporary / str(len(self._corpora))
            rows = self.engine.embed(CorpusJob(row, embedder, texts, folder, self.folder, settings.notice))
        truncated = embedder.usage[Role.DOCUMENT].truncated
        if late := truncation_warnings(provider, truncated, len(texts), already=notes.warnings):
            self._notes[embedder] = CorpusNotes((*notes.warnings, *late), (truncated, len(texts)))
        for warning in late:
            settings.notice(warning)
        return EmbeddedCorpus(embedder, rows)
