"""The heavy steps on Ray: its tasks, actors, retries and placement; what is done and in which parts is ours."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Fitted, Role, Vectors
from bakeoff_providers.errors import EmbeddingFailed, InputError

from bakeoff.core.ranking import Ranking
from bakeoff.core.remote import SharedFolder
from bakeoff.core.task import Judgments
from bakeoff.embedding.batches import WORKERS, corpus_batches
from bakeoff.embedding.budget import BudgetReached
from bakeoff.embedding.shard_rows import ShardRows
from bakeoff.embedding.space import Space
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import EngineEntry
from bakeoff.lineup.sources import missing_of
from bakeoff.running.engines.base import CorpusJob
from bakeoff.running.engines.local import Local
from bakeoff.running.engines.ray_cluster import check_nodes, connect
from bakeoff.running.engines.ray_pool import EmbedPool, LimitsActor
from bakeoff.running.engines.ray_workers import (
    Done,
    IndexHolder,
    WorkerJob,
    score_block,
    search_part,
)
from bakeoff.search import brute_force
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.faiss_shards import FaissShards, Fields, IndexShard, Waiting

BLOCKS = 16  # blocks of exact search in one task
QUERIES = 4096  # queries in one task of scoring

log = logging.getLogger(__name__)


class RayEngine(Local):
    """A cluster, or several processes of this machine. What a worker can't have (a function of yours) stays here."""

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

    def start(self, contenders: Sequence[Contender], shared: Path | None) -> None:
        """Reaches the cluster and looks at every node; nothing is paid for before that."""
        import ray

        self._end = connect(self.entry.address, self.entry.workers)
        check_nodes(_needs(contenders), self._shared or (SharedFolder(str(shared)) if shared else None))
        there, gpus = ray.cluster_resources(), self.entry.gpus_per_worker
        room = int(there.get("CPU", 0))
        if gpus:
            room = min(room, int(there.get("GPU", 0) / gpus))
        self.workers = self.entry.workers or room
        if self.workers > room or not room:
            has = f"{there.get('CPU', 0):g} processors" + (f" and {there.get('GPU', 0):g} GPUs" if gpus else "")
            each = f" with {gpus:g} GPUs each" if gpus else ""
            raise InputError(
                f"{self.workers or 'some'} workers{each} are asked for, but the cluster has {has}",
                place="engine workers" + (", gpus_per_worker" if gpus else ""),
                remedy="ask for fewer, or leave workers out" if room else "ask for fewer GPUs, or for none",
            )

    def embed(self, job: CorpusJob) -> VectorRows:
        """Workers fill the cache; then the vectors are looked up as ever."""
        provider, embedder = job.embedder.provider, job.embedder
        stays = isinstance(provider, Fitted) or provider.by_id or job.contender.live is not None
        space = embedder.corpus_space(job.scratch)
        if not stays and space is not None and not (embedder.offline and not provider.local):
            self._fill(job, space)
        rows = super().embed(job)
        if space is not None and self._shares(space.folder):
            assert self._shared is not None
            self._shared.send_files(space.end_shard())  # what was embedded here
        return rows

    def _shares(self, folder: Path) -> bool:
        return self._shared is not None and self._shared.remote and folder.is_relative_to(self._shared.path.resolve())

    def _portable(self, vectors: VectorRows) -> VectorRows | None:
        """Rows that every node can read: those of a URL only if they were sent there."""
        rows = vectors.portable()
        if rows is None or not self._url or not isinstance(rows.space, ShardRows):
            return rows
        return rows if all(self._shares(shard.stem) for shard in rows.space.shards) else None

    def _fill(self, job: CorpusJob, space: Space) -> None:
        embedder = job.embedder
        batches = corpus_batches(job.texts, embedder.provider.card, embedder.at_once, BLOCK, space.find)
        first = next(batches, None)
        if first is None:
            return
        space.check_writable(len(job.texts) - len(space))
        budget = embedder.budget
        limits = LimitsActor(None if budget is None else budget.limit - budget.spent)
        task = WorkerJob(
            job.contender,
            job.folder.resolve(),
            space.folder.resolve(),
            self._url,
            space.identity,
            embedder.policy,
            limits.name,
            budget is not None,
        )
        count = self.workers if embedder.provider.local else min(self.workers, WORKERS)
        restarted: set[str] = set()
        label = f"{embedder.provider.card.name}: document vectors on Ray"
        workers = EmbedPool(task, count, self.entry.gpus_per_worker)
        try:
            with embedder.progress(label, len(job.texts)) as advance:
                for done in workers.embed(chain([first], batches), embedder.note_asked):
                    advance(_accounted(job, done, restarted))
        finally:
            if budget is not None:
                budget.settle(0.0, limits.spent())
            workers.close()
            limits.close()
        if self._shared:
            self._shared.fetch(space.folder.name)
        space.refresh()

    def nearest(
        self, queries: Vectors, vectors: Vectors | VectorRows, k: int
    ) -> tuple[brute_force.Rows, brute_force.Similarities]:
        """Consecutive blocks to each task, the very blocks of a search in one process."""
        import ray

        rows = self._portable(vectors) if isinstance(vectors, VectorRows) else None
        bounds = brute_force.block_bounds(len(vectors), k)
        if rows is None or len(bounds) - 1 <= self.blocks or not len(queries):
            return super().nearest(queries, vectors, k)
        task, asked, sent = ray.remote(num_cpus=1)(search_part), ray.put(queries), ray.put(rows)
        starts = range(0, len(bounds) - 1, self.blocks)
        parts = [task.remote(asked, sent, k, bounds[start : start + self.blocks + 1], self._url) for start in starts]
        return brute_force.merged(ray.get(parts), min(k, len(vectors)))

    def place(self, store: Store) -> None:
        """Each index of a store of several becomes an actor."""
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
        """Blocks of queries, put together in their order."""
        import ray

        if len(queries) <= self.queries:
            return super().score(rankings, judgments, queries, measures, rel)
        task, names = ray.remote(num_cpus=1)(score_block), [str(measure) for measure in measures]
        parts = []
        for start in range(0, len(queries), self.queries):
            block = queries[start : start + self.queries]
            mine = {query: rankings[query] for query in block if query in rankings}
            parts.append(task.remote(mine, {query: judgments.get(query, {}) for query in block}, block, names, rel))
        values = zip(*ray.get(parts), strict=True)
        return {measure: np.concatenate(arrays) for measure, arrays in zip(measures, values, strict=True)}

    def close(self) -> None:
        """Ends the cluster where it was started here, or leaves it."""
        self._end()


class ActorShard(IndexShard):
    """An index in a process of its own, built there from the vector shards; Ray builds it again if it is killed."""

    def __init__(self, store: FaissShards, portable: Callable[[VectorRows], VectorRows | None], shards: str) -> None:
        self._store, self._portable, self._shards = store, portable, shards
        self._actor: Any = None

    def fill(self, ids: Sequence[str], vectors: VectorRows, fields: Fields) -> Waiting:
        """The actor reads the vectors itself; those that are in no shard are sent."""
        import ray

        if (rows := self._portable(vectors)) is None:
            raise InputError("vectors that are in no shard can't be indexed by Ray", remedy='store = "faiss"')
        holder = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD")(IndexHolder)
        options = self._store.build_options()
        self._actor = holder.remote(self._store.dimensions, options, list(ids), rows, fields, self._shards)
        built = self._actor.ready.remote()
        return lambda: ray.get(built)

    def ask(self, method: str, *arguments: Any, **options: Any) -> Waiting:
        """The answer is waited for when it is needed."""
        import ray

        if self._actor is None:
            return lambda: _EMPTY[method]
        answer = self._actor.call.remote(method, *arguments, **options)
        return lambda: ray.get(answer)

    def close(self) -> None:
        """Ends the process."""
        import ray

        if self._actor is not None:
            with contextlib.suppress(Exception):  # one that is gone leaves its folder to the next run
                ray.get(self._actor.close.remote(), timeout=_CLOSING)
            ray.kill(self._actor)
            self._actor = None


_CLOSING = 2.0  # seconds that an index has to remove its folder
_EMPTY: dict[str, Any] = {"nearest": ([], []), "size_bytes": 0}  # a shard that got no document


def _needs(contenders: Sequence[Contender]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Which modules a worker must have for each contender that embeds, and what installs them."""
    needs = {}
    for contender in contenders:
        if contender.provider and contender.live is None and missing_of(contender) is None:
            kind = PROVIDERS.get(contender.provider)
            remedy = f"install bakeoff[{kind.extra}]" if kind.extra else f"install {' '.join(kind.modules)}"
            needs[contender.label] = kind.modules, remedy
    return needs


def _accounted(job: CorpusJob, done: Done, restarted: set[str]) -> int:
    """A worker's use of the provider is the contender's, and so is its failure; a kill is said once for a worker."""
    if done.restarted and done.worker not in restarted:
        restarted.add(done.worker)
        model = job.embedder.provider.card.name
        said = f"{model}: a worker was killed and started again; at most one batch was asked for twice"
        log.warning(said)
        job.notice(said)
    if done.failed:
        raise BudgetReached(done.failed) if done.over_budget else EmbeddingFailed(done.failed)
    job.embedder.usage[Role.DOCUMENT].add(done.usage)
    return done.texts
