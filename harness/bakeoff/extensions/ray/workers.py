"""Code that runs in Ray processes: embedding, index shards, exact search, scoring, shared limits."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role, Vectors
from bakeoff_providers.errors import BakeoffError, Unavailable

from bakeoff.calls.budget import Budget, BudgetReached
from bakeoff.calls.key_index import Places
from bakeoff.calls.paid import Usage
from bakeoff.calls.retry import RateLimit, RetryPolicy
from bakeoff.core.ranking import Ranking
from bakeoff.core.remote import SharedFolder
from bakeoff.core.task import Judgments
from bakeoff.embedding.embed import Embedder, vector_service
from bakeoff.embedding.shards import ROW_BITS, ROWS, Shard, ShardRows
from bakeoff.embedding.space import Known, Space
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.search.brute_force import Rows, Similarities, nearest_within
from bakeoff.search.stores.faiss import Faiss
from bakeoff.search.stores.scratch import scratch
from bakeoff.systems.embedding import EmbeddingRow

_TOKENIZER_THREADS = "RAYON_NUM_THREADS"  # read on first use of the tokenizers library


class SharedLimits:
    """An actor with one budget and one rate limit for all workers."""

    def __init__(self, limit: float | None) -> None:
        self._budget = None if limit is None else Budget(limit)
        self._until = 0.0

    def reserve(self, dollars: float | None, who: str) -> str:
        """Reserve budget. Returns the reason for a refusal, or an empty string."""
        try:
            if self._budget is not None:
                self._budget.reserve(dollars, who)
        except BudgetReached as error:
            return str(error)
        return ""

    def settle(self, reserved: float, actual: float) -> None:
        """Replace the reserved estimate by the actual price."""
        if self._budget is not None:
            self._budget.settle(reserved, actual)

    def sum_spending(self) -> float:
        """Dollars spent by all workers. Reservations of killed workers count, since they may have been paid."""
        return 0.0 if self._budget is None else self._budget.spent

    def pause(self, seconds: float) -> None:
        """Pause all workers for this long, by the actor's clock."""
        self._until = max(self._until, time.monotonic() + seconds)

    def seconds_to_wait(self) -> float:
        """Seconds until calls are allowed again."""
        return max(0.0, self._until - time.monotonic())


class SharedBudget(Budget):
    """A worker's view of the shared budget."""

    __slots__ = ("_limits",)

    def __init__(self, limits: Any) -> None:
        super().__init__(limit=0.0)
        self._limits = limits

    def reserve(self, dollars: float | None, who: str = "") -> None:
        """Ask the actor. Fails if the actor has died."""
        if problem := _ask(self._limits.reserve, dollars, who):
            raise BudgetReached(problem)

    def settle(self, reserved: float, actual: float) -> None:
        """Tell the actor. If it has died, keep what was paid for; the next call is refused."""
        with contextlib.suppress(Unavailable):
            _ask(self._limits.settle, reserved, actual)


class SharedRateLimit(RateLimit):
    """A worker's view of the shared rate limit."""

    __slots__ = ("_limits",)

    def __init__(self, limits: Any) -> None:
        super().__init__()
        self._limits = limits

    def pause(self, seconds: float) -> None:
        """Pause all workers."""
        _ask(self._limits.pause, seconds)

    def wait(self) -> None:
        """Wait until no pause is in effect."""
        while seconds := _ask(self._limits.seconds_to_wait):
            self.sleep(seconds)


def _ask(method: Any, *arguments: Any) -> Any:
    """Call the limits actor. Without it, no provider is called."""
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(method.remote(*arguments))
    except RayError as error:
        said = "the process that keeps the budget and the rate limit has ended, so no more requests are sent"
        raise Unavailable(said) from error


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """What a worker needs to embed for one contender."""

    contender: EmbeddingRow
    folder: Path  # base of the line-up's relative paths
    vectors: Path | None  # the space's folder if all workers see it; None: return the vectors
    known: Known  # files that the driver has read; a worker reads only newer ones
    dimensions: int | None  # of its vectors, if there are any
    identity: Mapping[str, Any]
    policy: RetryPolicy
    limits: str  # the actor's name
    budgeted: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a batch, with the vectors if the worker can't write them."""

    texts: int
    usage: Usage
    failed: str = ""
    over_budget: bool = False
    vectors: Vectors | None = None
    tokens: int | None = None


class EmbedWorker:
    """Loads the model once, then embeds batch by batch. Each batch is on disk before the next starts."""

    def __init__(self, job: WorkerJob) -> None:
        import ray

        contender = dataclasses.replace(job.contender, isolate=False)  # a worker is a process of its own
        if "threads" in {option.name for option in PROVIDERS.options(contender.provider)}:
            contender = dataclasses.replace(contender, options={"threads": 1, **contender.options})
            os.environ.setdefault(_TOKENIZER_THREADS, str(contender.options["threads"]))
        limits = ray.get_actor(job.limits)
        self._embedder = Embedder(
            contender.create(job.folder),
            None,
            job.policy,
            SharedBudget(limits) if job.budgeted else None,
            workers=1,
            rate_limit=SharedRateLimit(limits),
        )
        self._made_sure = False
        self._space = (
            None
            if job.vectors is None
            else Space(job.vectors, job.identity, known=job.known, dimensions=job.dimensions)
        )

    def ready(self) -> None:
        """Return once the process has started."""

    def embed(self, texts: list[str]) -> Done:
        """Embed one batch. Vectors that a killed worker already wrote are not requested again."""
        account = self._embedder.accounts[Role.DOCUMENT]
        try:
            if self._space is None:
                if not self._made_sure:
                    self._embedder.provider.ready()
                    self._made_sure = True
                service = vector_service(self._embedder.provider, Role.DOCUMENT)
                got = self._embedder.calls.send(service, texts, account)
                return Done(len(texts), account.hand_over(), vectors=got.values, tokens=got.tokens)
            self._embedder.embed_batches([texts], Role.DOCUMENT, self._space, lambda _count: None)
        except BakeoffError as error:
            return Done(len(texts), account.hand_over(), str(error), isinstance(error, BudgetReached))
        return Done(len(texts), account.hand_over())


class IndexHolder:
    """One FAISS index. The constructor builds it, so that Ray can restart it."""

    def __init__(
        self,
        dimensions: int,
        options: Mapping[str, Any],
        ids: Sequence[str],
        vectors: VectorRows,
        fields: Sequence[Mapping[str, Any]] | None,
        shards: str,
    ) -> None:
        self._resources = ExitStack()  # if the process is killed, the next run removes its folder
        folder = self._resources.enter_context(scratch("index"))
        self._store = Faiss(dimensions=dimensions, folder=folder, **options)
        self._store.fill(ids, rows_on_this_machine(vectors, shards, vectors.places), fields)

    def ready(self) -> None:
        """Return once the index is built."""

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the index."""
        return getattr(self._store, method)(*arguments, **options)

    def close(self) -> None:
        """Remove files before Ray kills the process."""
        self._resources.close()


def search_part(
    queries: Vectors, vectors: VectorRows, k: int, bounds: Sequence[int], shards: str
) -> tuple[Rows, Similarities]:
    """Exact search over some blocks of the corpus."""
    rows = rows_on_this_machine(vectors, shards, vectors.places[bounds[0] : bounds[-1]])
    return nearest_within(queries, rows, k, bounds)


def rows_on_this_machine(vectors: VectorRows, shards: str, places: Places) -> VectorRows:
    """The same rows from this machine's copy of the shards. Fetches the shards that hold these places."""
    if not shards or not isinstance(vectors.space, ShardRows):
        return vectors
    shared, rows = SharedFolder(shards), vectors.space
    names = [f"{shard.stem.parent.name}/{shard.stem.name}" for shard in rows.shards]
    shared.fetch_files(names[number] + ROWS for number in np.unique(places >> ROW_BITS))
    here = [Shard(shared.path / name, shard.description) for name, shard in zip(names, rows.shards, strict=True)]
    return dataclasses.replace(vectors, space=ShardRows(here, rows.dimensions))


def score_block(
    rankings: Mapping[str, Ranking], judgments: Judgments, queries: Sequence[str], measures: Sequence[str], rel: int
) -> list[np.ndarray]:
    """Score a block of queries: one array per measure."""
    parsed = [Measure.parse(measure) for measure in measures]
    scores = score_queries(join(rankings, judgments, queries), parsed, rel)
    return [scores[measure] for measure in parsed]
