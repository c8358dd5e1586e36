"""A line-up from beginning to end: prepare every contender, let them take turns, score, decide."""

from __future__ import annotations

import contextlib
import datetime
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from harness import clock
from harness.cache import VectorCache
from harness.chunking import Chunk, chunks
from harness.clock import Machine, Timing, timed
from harness.embed import Budget, Embedder
from harness.formats import load_task
from harness.lineup import Contender, Lineup
from harness.loss import Losses
from harness.metrics import Scores, evaluate, join, oracle, random_expectation
from harness.preflight import provider_warnings, task_warnings
from harness.progress import Progress, silent
from harness.rankers import RANKERS
from harness.ranking import Ranking
from harness.results import Loss
from harness.retry import RetryPolicy
from harness.search import DenseSearcher, Index, LexicalSearcher, Searcher
from harness.stores import STORES
from harness.task import Query, Task
from providers import PROVIDERS
from providers.base import Provider, Role, Vectors
from providers.errors import BakeoffError, InputError, Unavailable
from providers.weights import home

WARM_UP = 3  # calls that are made and thrown away after the cold one
TIMED_HOSTED = 30  # queries that a hosted provider is asked one by one for the sake of its latency


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run, as opposed to what."""

    cache: Path | None = None
    offline: bool = False
    max_cost: float | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    progress: Progress = silent
    notice: Callable[[str], None] = lambda _text: None  # for what must be heard before money is spent


def vectors_folder() -> Path:
    """Where vectors are kept between runs."""
    return home() / "vectors"


@dataclass(slots=True)
class Entrant:
    """A contender on its way through a run: what it needs, and what it has answered so far."""

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
    scores: Scores = field(default_factory=dict)

    @property
    def stable(self) -> bool | None:
        """Whether every round gave the same order; unknown after a single one."""
        orders = [{query: ranking.ids for query, ranking in answered.items()} for answered in self.rounds]
        return all(order == orders[0] for order in orders[1:]) if len(orders) > 1 else None


@dataclass(slots=True)
class Outcome:
    """Everything a run found out, still in arrays; `harness.summary` turns it into files."""

    lineup: Lineup
    task: Task
    pieces: int
    entrants: list[Entrant]
    baselines: dict[str, Scores]
    machine: Machine
    started: datetime.datetime
    seconds: float
    warnings: list[str]

    @property
    def ran(self) -> list[Entrant]:
        """The contenders that answered."""
        return [entrant for entrant in self.entrants if entrant.not_run is None]

    @property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Per-query values by contender and measure, in the order of the task's queries."""
        return {
            entrant.contender.label: {str(measure): values.tolist() for measure, values in entrant.scores.items()}
            for entrant in self.ran
        }


def run(lineup: Lineup, settings: Settings | None = None) -> Outcome:
    """Runs a line-up. A contender that can't run keeps its row and its reason; bad input raises at once."""
    settings = settings or Settings()
    started, start = datetime.datetime.now(datetime.UTC), time.perf_counter()
    task = load_task(lineup.task, lineup.folder)
    machine = clock.machine()
    pieces = [chunk for document in task.documents for chunk in chunks(document)]
    entrants = [Entrant(contender) for contender in lineup.contenders]
    scratch = Path(tempfile.mkdtemp(prefix="bakeoff-"))
    try:
        _prepare(entrants, Index(pieces, lineup.depth, task.metadata), settings, scratch)
        _take_turns(entrants, task, lineup.rounds, settings.progress)
        losses = Losses(task)
        for entrant in entrants:
            if entrant.not_run is None:
                _score(entrant, task, lineup)
                entrant.loss = losses.of(entrant.contender, entrant.searcher, entrant.rounds, entrant.scores)
    finally:
        _close(entrants)
        shutil.rmtree(scratch, ignore_errors=True)
    machine.load_after = clock.load()
    return Outcome(
        lineup=lineup,
        task=task,
        pieces=len(pieces),
        entrants=entrants,
        baselines=baselines(task, lineup),
        machine=machine,
        started=started,
        seconds=time.perf_counter() - start,
        warnings=_warnings(task, lineup, entrants),
    )


def _prepare(entrants: Sequence[Entrant], index: Index, settings: Settings, scratch: Path) -> None:
    """Embeds once for each embedding, builds every store; what fails for a reason of its own becomes `not run`."""
    embedded: dict[tuple[str, str, str], tuple[Embedder, Vectors] | str] = {}
    budget = Budget(settings.max_cost) if settings.max_cost is not None else None
    with settings.progress("preparing", len(entrants)) as advance:
        for number, entrant in enumerate(entrants):
            contender = entrant.contender
            try:
                if (reason := contender.missing()) and not settings.offline:
                    raise Unavailable(reason)
                if contender.ranker:
                    _build_ranker(entrant, index)
                else:
                    key = contender.embedding()
                    if key not in embedded:
                        embedded[key] = embed_corpus(contender, index.chunks, settings, budget)
                    found = embedded[key]
                    if isinstance(found, str):
                        raise Unavailable(found)
                    _build_store(entrant, *found, index, scratch / str(number))
            except InputError:
                raise
            except BakeoffError as error:
                entrant.not_run = str(error)
            advance(1)


def embed_corpus(
    contender: Contender, pieces: Sequence[Chunk], settings: Settings, budget: Budget | None
) -> tuple[Embedder, Vectors] | str:
    """The corpus as vectors, or why there are none: a second store must not ask for them again."""
    provider = PROVIDERS.create(contender.provider, **contender.provider_options())
    cache = VectorCache(settings.cache) if settings.cache and not provider.by_id else None
    embedder = Embedder(provider, cache, settings.policy, budget, offline=settings.offline, progress=settings.progress)
    texts = [chunk.id if provider.by_id else chunk.text for chunk in pieces]
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


def _build_store(entrant: Entrant, embedder: Embedder, vectors: Vectors, index: Index, folder: Path) -> None:
    contender = entrant.contender
    variant = contender.variant.fitted(vectors)
    vectors = variant.documents(vectors)
    entrant.embedder, entrant.provider, entrant.dimensions = embedder, embedder.provider, int(vectors.shape[1])
    folder.mkdir()
    store = STORES.create(contender.store, dimensions=int(vectors.shape[1]), folder=folder, **contender.store_options)
    entrant.searcher = DenseSearcher(embedder, store, index, variant, vectors)
    ids, metadata = [chunk.id for chunk in index.chunks], [index.fields(chunk) for chunk in index.chunks]
    _, added = timed(lambda: store.add(ids, vectors, metadata))
    _, built = timed(store.build)
    entrant.build_seconds, entrant.index_bytes = (added + built) / 1e9, store.size_bytes()


def _build_ranker(entrant: Entrant, index: Index) -> None:
    ranker = RANKERS.create(entrant.contender.ranker, **entrant.contender.options)
    ids, texts = [chunk.id for chunk in index.chunks], [chunk.text for chunk in index.chunks]
    _, nanoseconds = timed(lambda: ranker.add(ids, texts))
    entrant.build_seconds = nanoseconds / 1e9
    entrant.searcher = LexicalSearcher(ranker, index)


def _take_turns(entrants: Sequence[Entrant], task: Task, rounds: int, progress: Progress) -> None:
    """Cold call, warm-up, then rounds in which every contender answers every query: drift hits all alike."""
    playing = [entrant for entrant in entrants if entrant.searcher is not None and entrant.not_run is None]
    with progress("queries", len(playing) * rounds * len(task.queries)) as advance:
        for entrant in playing:
            _guarded(entrant, partial(_warm_up, entrant, task.queries))
        for _ in range(rounds):
            for entrant in playing:
                if entrant.not_run is None:
                    _guarded(entrant, partial(_answer_all, entrant, task.queries))
                advance(len(task.queries))


def _guarded(entrant: Entrant, step: Callable[[], None]) -> None:
    """A provider that fails in the middle loses its row, not the run."""
    try:
        step()
    except InputError:
        raise
    except BakeoffError as error:
        entrant.not_run = str(error)


def _warm_up(entrant: Entrant, queries: Sequence[Query]) -> None:
    searcher = entrant.searcher
    assert searcher is not None
    cold = searcher.ask(queries[0])
    entrant.timing.cold_embed_ns, entrant.timing.cold_search_ns = cold.embed_ns, cold.search_ns
    for _ in range(WARM_UP):
        searcher.ask(queries[0])
    if isinstance(searcher, DenseSearcher) and not searcher.embedder.provider.local:
        searcher.know(queries[TIMED_HOSTED:])


def _answer_all(entrant: Entrant, queries: Sequence[Query]) -> None:
    assert entrant.searcher is not None
    answered: dict[str, Ranking] = {}
    for query in queries:
        answer = entrant.searcher.ask(query)
        answered[query.id] = answer.ranking
        entrant.timing.search_ns.append(answer.search_ns)
        if answer.embed_ns is not None:
            entrant.timing.embed_ns.append(answer.embed_ns)
        if answer.embed_ns is not None or entrant.embedder is None:
            entrant.timing.total_ns.append(answer.search_ns + (answer.embed_ns or 0))
    entrant.rounds.append(answered)


def _score(entrant: Entrant, task: Task, lineup: Lineup) -> None:
    """The mean of the rounds; they are equal unless the contender was not stable, and that is said."""
    ids, measures = [query.id for query in task.queries], lineup.all_measures()
    distinct = entrant.rounds[:1] if entrant.stable in (True, None) else entrant.rounds
    scored = [evaluate(join(answered, task.judgments, ids), measures, task.rel) for answered in distinct]
    entrant.scores = {measure: np.mean([scores[measure] for scores in scored], axis=0) for measure in measures}


def baselines(task: Task, lineup: Lineup) -> dict[str, Scores]:
    """The two rows that no provider made: the ceiling and the floor of every measure on this task."""
    ids, measures = [query.id for query in task.queries], lineup.all_measures()
    return {
        "oracle": evaluate(oracle(task.judgments, ids, len(task.documents)), measures, task.rel),
        "random": random_expectation(task.judgments, ids, len(task.documents), measures, task.rel),
    }


def _warnings(task: Task, lineup: Lineup, entrants: Sequence[Entrant]) -> list[str]:
    found = task_warnings(task)
    deep = [str(measure) for measure in lineup.measures if (measure.k or 0) > len(task.documents)]
    if deep:
        found.append(f"{', '.join(deep)}: k is larger than the corpus ({len(task.documents)} documents)")
    shallow = [str(measure) for measure in lineup.measures if (measure.k or 0) > lineup.depth]
    if shallow:
        found.append(f"{', '.join(shallow)}: k is larger than depth = {lineup.depth}: raise depth")
    if lost := task.without_relevant():
        found.append(f"no document is relevant for {', '.join(lost)}: every contender scores 0 there")
    unstable = [entrant.contender.label for entrant in entrants if entrant.stable is False]
    if unstable:
        found.append(f"not stable: {', '.join(unstable)} ranked differently from round to round; means are shown")
    return found


def _close(entrants: Sequence[Entrant]) -> None:
    for entrant in entrants:
        if isinstance(entrant.searcher, DenseSearcher):
            with contextlib.suppress(Exception):  # a server that is gone must not take the result with it
                entrant.searcher.store.discard()
    for embedder in {id(entrant.embedder): entrant.embedder for entrant in entrants if entrant.embedder}.values():
        embedder.close()
