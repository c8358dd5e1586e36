"""The pool of worker processes that embed for one contender."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import BakeoffError, EmbeddingFailed, Unavailable

from bakeoff.core.remote import SharedFolder
from bakeoff.embedding.space import Space
from bakeoff.extensions.ray.workers import Done, EmbedWorker, SharedLimits, WorkerJob

AHEAD = 2  # batches queued per worker, so that none waits for the next
TRIES = 3  # workers that may die on the same batch
SHARD_BYTES, SHARD_SECONDS = 64 << 20, 60.0  # a returned shard is sent at this size or age
PLACE_SECONDS = 120.0  # until at least one worker is scheduled and started
_SHOWN = 60  # characters of a batch's first text shown in errors


class LimitsActor:
    """The pool's shared budget and rate limit, an actor on the driver's node. Workers find it by name."""

    def __init__(self, budget: float | None) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.name = f"bakeoff-limits-{secrets.token_hex(8)}"
        here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(num_cpus=0)(SharedLimits).options(name=self.name, scheduling_strategy=here)
        self._actor = actor.remote(budget)

    def sum_spending(self) -> float | None:
        """Dollars spent by all workers so far; None if the actor has died."""
        import ray

        with contextlib.suppress(Exception):  # Ray raises various errors for a dead process
            return float(ray.get(self._actor.sum_spending.remote()))
        return None

    def close(self) -> None:
        """Kill the actor."""
        _end(self._actor)


@dataclass(eq=False, slots=True)
class _Batch:
    texts: list[str]
    lost: int = 0  # workers that died with it


@dataclass(eq=False, slots=True)
class _PoolWorker:
    actor: Any
    up: bool = False
    has: list[_Batch] = field(default_factory=list)

    def takes(self, again: bool) -> bool:
        """A batch that killed a worker runs alone, so that a second death can be blamed on it."""
        if again or any(batch.lost for batch in self.has):
            return self.up and not self.has
        return self.up and len(self.has) < AHEAD


class EmbedPool:
    """Workers with one CPU each. The next batch goes to a free worker, so that all finish at about the same time.

    A dead worker is replaced here, since Ray would retry the same batch forever.
    """

    def __init__(self, job: WorkerJob, count: int, gpus: float) -> None:
        import ray

        worker = ray.remote(num_cpus=1, num_gpus=gpus)(EmbedWorker)
        self._make: Callable[[], Any] = lambda: worker.remote(job)
        self._workers = [_PoolWorker(self._make()) for _ in range(count)]
        self._stopped = False

    def ready(self, texts: list[str]) -> None:
        """Return when every worker has loaded its model and embedded these texts."""
        import ray

        ray.get([worker.actor.embed.remote(texts) for worker in self._workers])

    def embed(
        self,
        batches: Iterable[list[str]],
        asked: Callable[[list[str]], None] = lambda _: None,
        replaced: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[list[str], Done]]:
        """Results of the batches, in any order. `asked` is called before each batch is sent to a worker."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        fresh, again = iter(batches), deque[_Batch]()
        following = _next(fresh)
        waiting: dict[Any, tuple[_PoolWorker, _Batch | None]] = {}  # None: the worker is starting
        for worker in self._workers:
            waiting[worker.actor.ready.remote()] = worker, None
        while (not self._stopped and (following or again)) or any(worker.has for worker in self._workers):
            for worker in () if self._stopped else self._workers:
                while worker.takes(bool(again)) and (batch := again.popleft() if again else following):
                    following = _next(fresh) if batch is following else following
                    asked(batch.texts)
                    worker.has.append(batch)
                    waiting[worker.actor.embed.remote(batch.texts)] = worker, batch
            limit = None if any(worker.up for worker in self._workers) else PLACE_SECONDS
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=limit)
            if not done:
                raise Unavailable(
                    f"none of {len(self._workers)} workers was scheduled on the cluster within {PLACE_SECONDS:.0f} "
                    "seconds; its processors or GPUs may be busy"
                )
            worker, ended = waiting.pop(done[0])
            try:
                answer = ray.get(done[0])
            except RayTaskError:  # raised inside the worker: the contender failed
                raise
            except RayError as error:
                for reference in [one for one, (whose, _) in waiting.items() if whose is worker]:
                    del waiting[reference]
                again.extend(self._remove_worker(worker, error))
                if worker.up:
                    replaced()
                    self._workers.append(_PoolWorker(self._make()))
                    waiting[self._workers[-1].actor.ready.remote()] = self._workers[-1], None
                continue
            if ended is None:
                worker.up = True
            else:
                worker.has.remove(ended)
                yield ended.texts, answer

    def stop(self) -> None:
        """Send no further batches. Running ones still return."""
        self._stopped = True

    def close(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            _end(worker.actor)

    def _remove_worker(self, worker: _PoolWorker, error: Exception) -> list[_Batch]:
        """Remove a dead worker and return its batches. Raise if no worker could start."""
        _end(worker.actor)  # an unreachable worker may still run
        self._workers.remove(worker)
        if not worker.up and not self._workers:
            raise Unavailable(f"no worker could start on the cluster: {reason_of(error)}") from error
        for batch in worker.has:
            batch.lost += 1
            if batch.lost >= TRIES:
                first = batch.texts[0] if len(batch.texts[0]) <= _SHOWN else batch.texts[0][:_SHOWN] + "…"
                raise EmbeddingFailed(
                    f"{batch.lost} workers died on the same batch of {len(batch.texts)} texts, "
                    f"the first being {first!r}: {reason_of(error)}"
                ) from error
        return worker.has


class Keeper:
    """Writes returned vectors to the local copy batch by batch, and sends them in shards of a useful size."""

    def __init__(self, space: Space, shared: SharedFolder) -> None:
        self._space, self._shared = space, shared
        self._bytes, self._began = 0, 0.0

    def keep(self, texts: list[str], vectors: Vectors, tokens: int | None) -> None:
        """Write one batch to disk. What can't be sent now is sent at the end."""
        if not self._bytes:
            self._began = time.monotonic()
        self._space.put(texts, vectors, tokens)
        self._bytes += vectors.nbytes
        if self._bytes >= SHARD_BYTES or time.monotonic() - self._began >= SHARD_SECONDS:
            self.send()

    def send(self) -> None:
        """Close the current shard and send it."""
        self._bytes = 0
        with contextlib.suppress(BakeoffError):
            self._shared.send_files(self._space.end_shard())


def as_they_end(calls: Iterable[Callable[[], Any]]) -> Iterator[tuple[int, Any]]:
    """Run tasks, at most two per CPU at a time. Yield each task's number and result as it ends."""
    import ray

    at_once = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    running: dict[Any, int] = {}
    for number, call in enumerate(calls):
        if len(running) >= at_once:
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), ray.get(done)
        running[call()] = number
    while running:
        (done,), _ = ray.wait(list(running), num_returns=1)
        yield running.pop(done), ray.get(done)


def _next(batches: Iterator[list[str]]) -> _Batch | None:
    texts = next(batches, None)
    return None if texts is None else _Batch(texts)


def _end(actor: Any) -> None:
    import ray

    with contextlib.suppress(Exception):  # Ray itself may be gone
        ray.kill(actor)


def reason_of(error: Exception) -> str:
    """Why a Ray process ended. The last line holds an exception, the first a signal."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "creation task" in lines[0] else lines[0]
