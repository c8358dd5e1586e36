"""What contenders need before they can be asked: the corpus in vectors, stores, rankers, and answers from files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider, Role, Vectors
from bakeoff_providers.errors import BakeoffError, InputError, Unavailable

from bakeoff.core.clock import Timing, timed
from bakeoff.core.paths import vectors_folder as vectors_folder
from bakeoff.core.progress import Progress, silent
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.embedding.budget import Budget
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.chunking import chunks
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.preflight import provider_warnings
from bakeoff.embedding.retry import RetryPolicy
from bakeoff.evaluation.metrics import Scores
from bakeoff.lineup.contender import Contender
from bakeoff.results.schema import Loss
from bakeoff.search.fusion import FusedSearcher
from bakeoff.search.rankers import RANKERS
from bakeoff.search.searchers import DenseSearcher, Index, LexicalSearcher, Searcher
from bakeoff.search.stores import STORES


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run, as opposed to what."""

    cache: Path | None = None
    offline: bool = False
    max_cost: float | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    progress: Progress = silent
    notice: Callable[[str], None] = lambda _text: None  # for what must be heard before money is spent
    tune_weights: bool = False


@dataclass(slots=True)
class Entrant:
    """A contender on its way through a run: what it needs, and what it has answered so far.

    `found` is what the search itself answered in the first round, before the stages of the task's kind;
    `seeds` has the scores of each file of answers.
    """

    contender: Contender
    provider: Provider | None = None
    embedder: Embedder | None = None
    searcher: Searcher | None = None
    not_run: str | None = None
    dimensions: int | None = None
    index_bytes: int | None = None
    build_seconds: float | None = None
    loss: Loss | None = None
    timing: Timing = field(default_factory=Timing)
    rounds: list[dict[str, Ranking]] = field(default_factory=list)
    found: dict[str, Ranking] = field(default_factory=dict)
    seeds: dict[str, Scores] = field(default_factory=dict)
    scores: Scores = field(default_factory=dict)

    @property
    def stable(self) -> bool | None:
        """Whether every round gave the same order; unknown after a single one."""
        orders = [{query: ranking.ids for query, ranking in answered.items()} for answered in self.rounds]
        return all(order == orders[0] for order in orders[1:]) if len(orders) > 1 else None


class Embeddings:
    """The corpus in vectors and in pieces, made once for each embedding and each field that is asked for."""

    def __init__(self, task: Task, depth: int, settings: Settings, folder: Path) -> None:
        self.task, self.depth, self.settings, self.folder = task, depth, settings, folder
        self._budget = Budget(settings.max_cost) if settings.max_cost is not None else None
        self._indexes: dict[str, Index] = {}
        self._found: dict[tuple[str, ...], tuple[Embedder, Vectors] | str] = {}

    def index(self, contender: Contender) -> Index:
        """The pieces that this contender searches. Vectors that are known by id need no text of the field."""
        known = contender.provider and PROVIDERS.get(contender.provider).by_id
        name = "" if known else contender.field
        if name not in self._indexes:
            pieces = [chunk for document in self.task.documents for chunk in chunks(document, name)]
            items = {query.item for query in self.task.queries if query.item}
            texts = {document.id: document.whole(name) for document in self.task.documents if document.id in items}
            self._indexes[name] = Index(pieces, self.depth, texts, self.task.metadata)
        return self._indexes[name]

    @property
    def pieces(self) -> int:
        """How many pieces the corpus makes; fields may be cut into different numbers, and the most counts."""
        return max((len(index.chunks) for index in self._indexes.values()), default=0)

    def of(self, contender: Contender) -> tuple[Embedder, Vectors]:
        """The vectors of all pieces, through the cache; a second store must not ask for them again."""
        key = contender.embedding()
        if key not in self._found:
            self._found[key] = self._embedded(contender)
        found = self._found[key]
        if isinstance(found, str):
            raise Unavailable(found)
        return found

    def close(self) -> None:
        """Ends the caches' segments and the providers' sessions."""
        for found in self._found.values():
            if not isinstance(found, str):
                found[0].close()

    def _embedded(self, contender: Contender) -> tuple[Embedder, Vectors] | str:
        settings = self.settings
        if (reason := contender.missing()) and not settings.offline:
            return reason
        provider = contender.create(self.folder)
        cache = VectorCache(settings.cache) if settings.cache and not provider.by_id else None
        embedder = Embedder(
            provider, cache, settings.policy, self._budget, offline=settings.offline, progress=settings.progress
        )
        texts = [chunk.id if provider.by_id else chunk.text for chunk in self.index(contender).chunks]
        embedder.warnings += provider_warnings(provider, texts)
        for warning in embedder.warnings:
            settings.notice(warning)
        try:
            embedder.fit(texts)
            if not settings.offline and embedder.missing(texts, Role.DOCUMENT):
                provider.ready()
            return embedder, embedder.embed(texts, Role.DOCUMENT)
        except InputError:
            raise
        except BakeoffError as error:
            embedder.close()
            return str(error)


def prepare(entrants: Sequence[Entrant], embeddings: Embeddings, scratch: Path) -> None:
    """Embeds, builds every store and ranker; what fails for a reason of its own becomes `not run`."""
    ready: dict[str, Entrant] = {entrant.contender.label: entrant for entrant in entrants}
    with embeddings.settings.progress("preparing", len(entrants)) as advance:
        for number, entrant in enumerate(entrants):
            contender = entrant.contender
            try:
                if contender.provider:
                    _build_store(entrant, embeddings, scratch / str(number))
                elif contender.ranker:
                    _build_ranker(entrant, embeddings)
                elif contender.fusion is not None:
                    _fuse(entrant, [ready[label] for label in contender.fusion.of], embeddings.depth)
            except InputError:
                raise
            except BakeoffError as error:
                entrant.not_run = str(error)
            advance(1)


def _build_store(entrant: Entrant, embeddings: Embeddings, folder: Path) -> None:
    contender, index = entrant.contender, embeddings.index(entrant.contender)
    if (reason := STORES.get(contender.store).missing(**contender.store_options)) and not embeddings.settings.offline:
        raise Unavailable(reason)
    embedder, whole = embeddings.of(contender)
    variant = contender.variant.fitted(whole)
    vectors = variant.documents(whole)
    entrant.embedder, entrant.provider, entrant.dimensions = embedder, embedder.provider, int(vectors.shape[1])
    folder.mkdir()
    store = STORES.create(contender.store, dimensions=int(vectors.shape[1]), folder=folder, **contender.store_options)
    entrant.searcher = DenseSearcher(embedder, store, index, variant, vectors)
    ids, metadata = [chunk.id for chunk in index.chunks], [index.fields(chunk) for chunk in index.chunks]
    _, added = timed(lambda: store.add(ids, vectors, metadata))
    _, built = timed(store.build)
    entrant.build_seconds, entrant.index_bytes = (added + built) / 1e9, store.size_bytes()
    rows = {chunk.id: row for row, chunk in enumerate(index.chunks)} if index.texts else {}
    for item in index.texts.keys() & rows.keys():
        entrant.searcher.learn(item, whole[rows[item]])


def _build_ranker(entrant: Entrant, embeddings: Embeddings) -> None:
    contender, index = entrant.contender, embeddings.index(entrant.contender)
    if reason := contender.missing():
        raise Unavailable(reason)
    ranker = RANKERS.create(contender.ranker, **contender.options)
    ids, texts = [chunk.id for chunk in index.chunks], [chunk.text for chunk in index.chunks]
    _, nanoseconds = timed(lambda: ranker.add(ids, texts))
    entrant.build_seconds = nanoseconds / 1e9
    entrant.searcher = LexicalSearcher(ranker, index)


def _fuse(entrant: Entrant, parts: Sequence[Entrant], depth: int) -> None:
    """A fusion can only run where all of its parts can."""
    lost = [part.contender.label for part in parts if part.searcher is None]
    if lost:
        raise Unavailable(f"needs {', '.join(lost)}, which can't be asked here")
    assert entrant.contender.fusion is not None
    searchers = [part.searcher for part in parts if part.searcher is not None]
    entrant.searcher = FusedSearcher(searchers, entrant.contender.fusion, depth)
    entrant.build_seconds = sum(part.build_seconds or 0.0 for part in parts)
    sizes = [part.index_bytes for part in parts if part.index_bytes is not None]
    entrant.index_bytes = sum(sizes) if sizes else None


def close(entrants: Sequence[Entrant]) -> None:
    """Lets go of the stores."""
    for entrant in entrants:
        if isinstance(entrant.searcher, DenseSearcher):
            with contextlib.suppress(Exception):  # a server that is gone must not take the result with it
                entrant.searcher.store.discard()
