"""The Ray engine: embedding, exact search, sharded indexes and scoring on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Fitted, Role, Vectors
from bakeoff_providers.errors import EmbeddingFailed, InputError, Unavailable

from bakeoff.calls.budget import BudgetReached, estimate_tokens, price_of
from bakeoff.calls.key_index import Keys, Places
from bakeoff.core.facts import fact
from bakeoff.core.progress import steps
from bakeoff.core.ranking import Ranking
from bakeoff.core.remote import SharedFolder
from bakeoff.core.task import Judgments
from bakeoff.embedding.embed import WORKERS, corpus_batches
from bakeoff.embedding.given_vectors import WithGivenVectors
from bakeoff.embedding.shards import ShardRows
from bakeoff.embedding.space import Space
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores
from bakeoff.extensions.ray.faiss_shards import FaissShards, Fields, IndexShard, Waiting
from bakeoff.extensions.ray.pool import (
    EmbedPool,
    Keeper,
    LimitsActor,
    as_they_end,
    check_capacity,
    check_nodes,
    connect,
    reason_of,
)
from bakeoff.extensions.ray.workers import (
    Done,
    IndexHolder,
    WorkerJob,
    score_block,
    search_part,
)
from bakeoff.lineup.entries import EngineEntry
from bakeoff.running.engines import CorpusJob, Local
from bakeoff.search import brute_force
from bakeoff.search.stores.base import Store
from bakeoff.systems.base import System
from bakeoff.systems.embedding import EmbeddingRow

BLOCKS = 16  # blocks of exact search in one task
GROUPS = 4  # groups of queries in one task of exact search
QUERIES = 4096  # queries in one task of scoring
RESTARTS = 3  # of an index, so that a crashing one is not rebuilt forever

log = logging.getLogger(__name__)


class RayEngine(Local):
    """Runs on a cluster, or on local processes. What can't be sent (your own functions) runs here."""

    name = "ray"
    on_other_machines = True
    extra = "ray"
    modules = ("ray",)
    blocks, queries = BLOCKS, QUERIES

    def __init__(self, entry: EngineEntry) -> None:
        super().__init__(entry)
        self._end: Callable[[], None] = lambda: None
        self.workers = entry.workers
        self._shared = SharedFolder(entry.shards) if entry.shards else None
        self._url = entry.shards if self._shared and self._shared.remote else ""

    def start(self, contenders: Sequence[System], shared: Path | None, vectors: Sequence[Path] = ()) -> None:
        """Connect and check every node before anything is paid for."""
        self._end = connect(self.entry.address, self.entry.workers)
        seen = () if self._url else vectors  # with a URL, rows in other folders are searched here
        check_nodes(_needs(contenders), self._shared or (SharedFolder(str(shared)) if shared else None), seen)
        self.workers = check_capacity(self.entry.workers, self.entry.gpus_per_worker)

    def embed(self, job: CorpusJob) -> VectorRows:
        """Workers fill the cache, then vectors are looked up as usual."""
        provider, embedder = job.embedder.provider, job.embedder
        stays = isinstance(provider, Fitted | WithGivenVectors) or provider.by_id or job.contender.live is not None
        space = embedder.corpus_space(job.scratch)
        if not stays and space is not None and not (embedder.offline and not provider.local):
            self._fill(job, space)
        rows = super().embed(job)
        if space is not None and self._shares(space.folder):
            assert self._shared is not None
            space.end_shard()
            self._shared.send(space.folder)  # made here, or not yet sent by a killed run
        return rows

    def _shares(self, folder: Path) -> bool:
        return self._shared is not None and self._shared.remote and folder.is_relative_to(self._shared.path.resolve())

    def _portable(self, vectors: VectorRows) -> VectorRows | None:
        """Rows that every node can read. With a URL, only those that were sent there."""
        rows = vectors.portable()
        if rows is None or not self._url or not isinstance(rows.space, ShardRows):
            return rows
        return rows if all(self._shares(shard.stem) for shard in rows.space.shards) else None

    def _fill(self, job: CorpusJob, space: Space) -> None:
        embedder, card, budget = job.embedder, job.embedder.provider.card, job.embedder.budget
        cached = 0

        def find(keys: Keys) -> Places:
            nonlocal cached
            places = space.find(keys)
            cached += int(np.count_nonzero(places >= 0))
            return places

        batches = corpus_batches(job.texts, card, embedder.at_once, BLOCK, find)
        first = next(batches, None)
        if first is None:
            return
        known = space.dimensions or card.dimensions  # if unknown, the corpus size can't be estimated
        space.check_writable(len(first) if known is None else len(job.texts) - len(space), known)
        estimates: list[float] = []  # dollars, per batch sent to a worker

        def reckon(texts: list[str]) -> None:
            embedder.note_asked(texts)
            estimates.append(price_of(estimate_tokens(texts, card.prompt(Role.DOCUMENT)), card))

        def charge() -> None:
            if budget is not None:  # if unknown, assume that every batch sent was paid
                spent = limits.sum_spending()
                budget.settle(0.0, sum(estimates) if spent is None else spent)

        limits = LimitsActor(None if budget is None else budget.limit - budget.spent)
        with contextlib.ExitStack() as stack:
            stack.callback(limits.close)
            stack.callback(charge)
            keeper = Keeper(space, self._shared) if self._shared and self._shares(space.folder) else None
            count = self.workers if embedder.provider.local else min(self.workers, WORKERS)
            workers = EmbedPool(self._worker_job(job, space, limits.name), count, self.entry.gpus_per_worker)
            stack.callback(workers.close)
            total, shown, asked_for = len(job.texts), 0, 0
            advance = stack.enter_context(embedder.progress(f"{card.name}: document vectors on Ray", total))
            failed: Done | None = None
            for texts, done in workers.embed(chain([first], batches), reckon, partial(_say_replaced, job)):
                if done.failed:
                    failed = failed or done
                    workers.stop()  # running requests are paid for, so their results are kept
                    continue
                asked_for += _book_usage(job, done)
                advance(asked_for + cached - shown)
                shown = asked_for + cached
                if keeper is not None and done.vectors is not None:
                    keeper.keep(texts, done.vectors, done.tokens)
            if failed is not None:
                raise BudgetReached(failed.failed) if failed.over_budget else EmbeddingFailed(failed.failed)
            advance(total - shown)  # duplicate texts
        space.refresh()

    def _worker_job(self, job: CorpusJob, space: Space, limits: str) -> WorkerJob:
        """Workers write to the space's folder if they see it; with a URL they return the vectors."""
        handed_back = self._shares(space.folder)
        return WorkerJob(
            job.contender,
            job.folder.resolve(),
            None if handed_back else space.folder.resolve(),
            {} if handed_back else space.collect_marks(),
            space.dimensions,
            space.identity,
            job.embedder.policy,
            limits,
            job.embedder.budget is not None,
        )

    def nearest(
        self, queries: Vectors, vectors: Vectors | VectorRows, k: int
    ) -> tuple[brute_force.Rows, brute_force.Similarities]:
        """Exact search. Tasks get the same blocks as a local search; results are merged as they arrive."""
        import ray

        rows = self._portable(vectors) if isinstance(vectors, VectorRows) else None
        bounds, k = brute_force.block_bounds(len(vectors), k), min(k, len(vectors))
        if rows is None or len(bounds) - 1 <= self.blocks or not len(queries):
            return super().nearest(queries, vectors, k)
        task, sent = ray.remote(num_cpus=1)(search_part), ray.put(rows)
        parts = [bounds[start : start + self.blocks + 1] for start in range(0, len(bounds) - 1, self.blocks)]
        asked = range(0, len(queries), GROUPS * brute_force.QUERIES)  # whole groups, as in a local search
        answers = []
        with steps("exact search on Ray: documents", len(asked) * len(vectors)) as advance:
            for start in asked:
                group = ray.put(queries[start : start + asked.step])
                best = brute_force.Merging(k)
                calls = (partial(task.remote, group, sent, k, part, self._url) for part in parts)
                for number, answer in as_they_end(calls):
                    best.add(*answer)
                    advance(parts[number][-1] - parts[number][0])
                answers.append(best.found)
        rows_found, scores = (np.concatenate(arrays) for arrays in zip(*answers, strict=True))
        return rows_found, scores

    def place(self, store: Store) -> None:
        """Put each index of a sharded store into an actor."""
        if isinstance(store, FaissShards):
            store.shards = [ActorShard(store, self._portable, self._url) for _ in store.shards]

    def score(
        self,
        rankings: Mapping[str, Ranking],
        judgments: Judgments,
        queries: Sequence[str],
        measures: Sequence[Measure],
        rel: int,
    ) -> Scores:
        """Score blocks of queries and join them in order."""
        import ray

        if len(queries) <= self.queries:
            return super().score(rankings, judgments, queries, measures, rel)
        task, names = ray.remote(num_cpus=1)(score_block), [str(measure) for measure in measures]
        blocks = [queries[start : start + self.queries] for start in range(0, len(queries), self.queries)]

        def call(block: Sequence[str]) -> Any:
            mine = {query: rankings[query] for query in block if query in rankings}
            return task.remote(mine, {query: judgments.get(query, {}) for query in block}, block, names, rel)

        parts: dict[int, list[np.ndarray]] = {}
        with steps("scoring on Ray: queries", len(queries)) as advance:
            for number, values in as_they_end(partial(call, block) for block in blocks):
                parts[number] = values
                advance(len(blocks[number]))
        in_order = zip(*(parts[number] for number in range(len(blocks))), strict=True)
        return {measure: np.concatenate(arrays) for measure, arrays in zip(measures, in_order, strict=True)}

    def close(self) -> None:
        """Stop a cluster that was started here, or disconnect."""
        self._end()


class ActorShard(IndexShard):
    """An index in its own process, built there from the vector shards. Ray rebuilds it if it is killed."""

    def __init__(self, store: FaissShards, portable: Callable[[VectorRows], VectorRows | None], shards: str) -> None:
        self._store, self._portable, self._shards = store, portable, shards
        self._actor: Any = None

    def fill(self, ids: Sequence[str], vectors: VectorRows, fields: Fields) -> Waiting:
        """Build the index in an actor, which reads the vector shards itself."""
        import ray

        if (rows := self._portable(vectors)) is None:
            raise InputError("Ray can only index vectors that are in shards", remedy='store = "faiss"')
        holder = ray.remote(num_cpus=0, max_restarts=RESTARTS, max_task_retries=RESTARTS, scheduling_strategy="SPREAD")(
            IndexHolder
        )
        options = self._store.build_options()
        self._actor = holder.remote(self._store.dimensions, options, list(ids), rows, fields, self._shards)
        built = self._actor.ready.remote()
        return lambda: _answer(built)

    def ask(self, method: str, *arguments: Any, **options: Any) -> Waiting:
        """Start a call; the returned function waits for the result."""
        if self._actor is None:
            return lambda: _EMPTY[method]
        answer = self._actor.call.remote(method, *arguments, **options)
        return lambda: _answer(answer)

    def close(self) -> None:
        """End the process."""
        import ray

        if self._actor is not None:
            with contextlib.suppress(Exception):  # if it is dead, the next run removes its folder
                ray.get(self._actor.close.remote(), timeout=_CLOSING)
            ray.kill(self._actor)
            self._actor = None


def _answer(asked: Any) -> Any:
    """The index's result. If it died too often, only this row fails."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(asked)
    except RayTaskError:
        raise
    except RayError as error:
        raise Unavailable(f"the process of an index ended more than {RESTARTS} times: {reason_of(error)}") from error


_CLOSING = 2.0  # seconds for an index to remove its folder
_EMPTY: dict[str, Any] = {"nearest": ([], []), "size_bytes": 0}  # a shard that got no document


def _needs(contenders: Sequence[System]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Required modules per embedding contender, and how to install them."""
    needs = {}
    for contender in contenders:
        if isinstance(contender, EmbeddingRow) and contender.live is None and contender.lacks() is None:
            kind = PROVIDERS.get(contender.provider)
            remedy = f"install bakeoff[{kind.extra}]" if kind.extra else f"install {' '.join(kind.modules)}"
            needs[contender.label] = kind.modules, remedy
    return needs


def _say_replaced(job: CorpusJob) -> None:
    replaced = fact("ray.worker_replaced", model=job.embedder.provider.card.name)
    log.warning(replaced)
    job.notice(replaced)


def _book_usage(job: CorpusJob, done: Done) -> int:
    """Add a worker's usage to the contender's account."""
    usage = dataclasses.replace(done.usage, asked=0, cached=0)  # texts are counted where they are kept
    job.embedder.accounts[Role.DOCUMENT].add(usage)
    return done.texts
