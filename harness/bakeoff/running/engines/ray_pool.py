"""The processes that embed for one contender, and which of them gets which batch."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator

from bakeoff.running.engines.ray_workers import Done, EmbedWorker, Limits, WorkerJob

AHEAD = 2  # batches that a worker has at a time: the next is there when one is done


class LimitsActor:
    """The one budget and rate limit of a pool. Workers know it by name: one that is restarted finds it again."""

    def __init__(self, budget: float | None) -> None:
        import ray

        self.name = f"bakeoff-limits-{secrets.token_hex(8)}"
        self._actor = ray.remote(num_cpus=0)(Limits).options(name=self.name).remote(budget)

    def spent(self) -> float:
        """Dollars, by all workers so far."""
        import ray

        return float(ray.get(self._actor.spent.remote()))

    def close(self) -> None:
        """Ends the process."""
        import ray

        ray.kill(self._actor)


class EmbedPool:
    """Workers with a processor each. Whoever is free gets the next batch, so that all end at about the same time."""

    def __init__(self, job: WorkerJob, count: int, gpus: float) -> None:
        import ray

        worker = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=-1)(EmbedWorker)
        self._actors = [worker.remote(job) for _ in range(count)]

    def ready(self, texts: list[str]) -> None:
        """Returns when every worker has its model and has embedded these."""
        import ray

        ray.get([actor.embed.remote(texts) for actor in self._actors])

    def embed(
        self, batches: Iterable[list[str]], asked: Callable[[list[str]], None] = lambda _: None
    ) -> Iterator[Done]:
        """What came of each batch, in any order; `asked` hears of a batch before a worker does."""
        from ray.util import ActorPool

        pool = ActorPool(self._actors * AHEAD)
        for batch in batches:
            while not pool.has_free():
                yield pool.get_next_unordered()
            asked(batch)
            pool.submit(lambda actor, texts: actor.embed.remote(texts), batch)
        while pool.has_next():
            yield pool.get_next_unordered()

    def close(self) -> None:
        """Ends the processes."""
        import ray

        for actor in self._actors:
            ray.kill(actor)
