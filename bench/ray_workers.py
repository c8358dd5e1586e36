"""Two Ray workers against one, for a local model that keeps a processor busy: how much sooner are the vectors there?

    python bench/ray_workers.py --documents 2000 --provider minilm

Each side embeds the same texts into an empty cache, with the models loaded before the clock starts; both sides are
measured in turns, and the median of the ratios counts. Goal on two idle cores: 1.6 or more. Needs bakeoff[ray].
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff.embedding.batches import corpus_batches
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.retry import RetryPolicy
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.lineup.contender import Contender
from bakeoff.running.engines.ray_cluster import connect
from bakeoff.running.engines.ray_workers import EmbedWorker, Limits, WorkerJob
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role

GOAL = 1.6


def texts(count: int) -> list[str]:
    """Sentences of made-up words, 20 to 60 each."""
    random = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu"))
    words = ["".join(random.choice(letters, 3 + n % 6)) for n in range(4000)]
    return [" ".join(random.choice(words, 20 + n % 41)) for n in range(count)]


def embedded(workers: int, provider: str, corpus: list[str], folder: Path) -> float:
    """Seconds from the first batch to the last, by so many workers with one thread each."""
    import ray
    from ray.util import ActorPool

    contender = Contender("bench", provider=provider)
    adapter = contender.create(folder)
    space = VectorCache(folder).space({**adapter.identity(Role.DOCUMENT), **(adapter.code() or {})})
    limits = ray.remote(num_cpus=0)(Limits).remote(None)
    job = WorkerJob(contender, folder, space.folder, space.identity, RetryPolicy(), limits, False)
    actors = [ray.remote(num_cpus=1)(EmbedWorker).remote(job) for _ in range(workers)]
    ray.get([actor.embed.remote([[f"warm {number}"]]) for number, actor in enumerate(actors)])
    pool = ActorPool(actors)
    plan = [[batch] for batch in corpus_batches(corpus, adapter.card, 0, BLOCK)]
    start = time.perf_counter()
    done = list(pool.map_unordered(lambda actor, group: actor.embed.remote(group), plan))
    seconds = time.perf_counter() - start
    assert sum(one.texts for one in done) == len(corpus)
    for actor in [*actors, limits]:
        ray.kill(actor)
    return seconds


def measured(provider: str, documents: int, rounds: int) -> dict[str, Any]:
    """Both sides in turns, each time into an empty cache."""
    corpus = texts(documents)
    one: list[float] = []
    two: list[float] = []
    end = connect("", 2, 0)
    try:
        for number in range(rounds):
            with tempfile.TemporaryDirectory(prefix="bakeoff-bench-") as folder:
                sides = [(1, one), (2, two)] if number % 2 == 0 else [(2, two), (1, one)]
                for workers, seconds in sides:
                    seconds.append(embedded(workers, provider, corpus, Path(folder) / str(workers)))
    finally:
        end()
    ratio = statistics.median(single / double for single, double in zip(one, two, strict=True))
    return {
        "provider": provider,
        "documents": documents,
        "one_worker_per_second": documents / statistics.median(one),
        "two_workers_per_second": documents / statistics.median(two),
        "ratio": ratio,
        "goal": GOAL,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--provider", default="minilm", choices=PROVIDERS.names())
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    result = measured(given.provider, given.documents, given.rounds)
    json.dump(result, sys.stdout, indent=2)
    print()
    sys.exit(result["ratio"] < GOAL)


if __name__ == "__main__":
    main()
