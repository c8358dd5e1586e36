"""Two Ray workers against one, for a local model that keeps a processor busy: how much sooner are the vectors there?

    python bench/ray_workers.py                       # about two minutes on two idle cores
    python bench/ray_workers.py --documents 512 --rounds 1

Both sides embed the same texts into an empty cache, in turns, through the engine's own pool; the median of the ratios
counts. *warm* runs from the moment at which every worker has its model, *end to end* from the start of the processes.
`busy` is the ratio by the workers' CPU time: that of one worker alone over that of the busier of two. It is what
the clock would show if each worker had a core to itself, so it can be read on a machine that others use, too.
Goal, by the clock on two idle cores, warm: 1.6 or more. Needs bakeoff[ray].
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from bakeoff.calls.retry import RetryPolicy
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import corpus_batches
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.extensions.ray.pool import EmbedPool, LimitsActor, connect
from bakeoff.extensions.ray.workers import WorkerJob
from bakeoff.systems.dense import Dense
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role, cache_key

GOAL = 1.6
WARM_TEXT = "a text for each worker before the clock starts"


@dataclass(frozen=True, slots=True)
class Side:
    """One measurement: seconds by the clock, and the CPU seconds of each worker since it had its model."""

    warm: float
    end_to_end: float
    cpu: list[float]


def texts(count: int) -> list[str]:
    """Sentences of made-up words, 10 to 30 each."""
    random = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu"))
    words = ["".join(random.choice(letters, 3 + n % 4)) for n in range(4000)]
    return [" ".join(random.choice(words, 10 + n % 21)) for n in range(count)]


def _workers() -> list[psutil.Process]:
    """The processes in which texts are embedded; Ray names them after the class."""
    return [one for one in psutil.Process().children(recursive=True) if "EmbedWorker" in one.name()]


def _cpu(processes: list[psutil.Process]) -> list[float]:
    return [sum(process.cpu_times()[:2]) for process in processes]


def embedded(workers: int, provider: str, corpus: list[str], folder: Path) -> Side:
    """All texts, by so many workers."""
    contender = Dense("bench", provider=provider)
    adapter = contender.create(folder)
    space = VectorCache(folder).space(cache_key(adapter, Role.DOCUMENT) or {})
    limits = LimitsActor(None)
    seen = space.collect_marks(), space.dimensions
    job = WorkerJob(contender, folder, space.folder, *seen, space.identity, RetryPolicy(), limits.name, False)
    start = time.perf_counter()
    pool = EmbedPool(job, workers, 0)
    pool.ready([WARM_TEXT])
    processes = _workers()
    before, warm = _cpu(processes), time.perf_counter()
    done = list(pool.embed(corpus_batches(corpus, adapter.card, 0, BLOCK)))
    end = time.perf_counter()
    cpu = [after - earlier for after, earlier in zip(_cpu(processes), before, strict=True)]
    assert sum(one.texts for _, one in done) == len(corpus)
    assert len(cpu) == workers
    pool.close()
    limits.close()
    psutil.wait_procs(processes, timeout=30)
    return Side(end - warm, end - start, cpu)


def measured(provider: str, documents: int, rounds: int, minutes: float) -> dict[str, Any]:
    """Both sides in turns, each time into an empty cache; no round is begun when the minutes are over."""
    corpus, limit = texts(documents), time.monotonic() + 60 * minutes
    sides: dict[int, list[Side]] = {1: [], 2: []}
    end = connect("", 2)
    try:
        for number in range(rounds):
            with tempfile.TemporaryDirectory(prefix="bakeoff-bench-") as folder:
                for workers in (1, 2) if number % 2 == 0 else (2, 1):
                    sides[workers].append(embedded(workers, provider, corpus, Path(folder) / str(workers)))
                    print(f"{workers} workers: {sides[workers][-1]}", file=sys.stderr)
            if time.monotonic() > limit:
                break
    finally:
        end()
    pairs = list(zip(sides[1], sides[2], strict=True))

    def rate(workers: int) -> float:
        return documents / statistics.median(side.warm for side in sides[workers])

    return {
        "provider": provider,
        "documents": documents,
        "rounds": len(pairs),
        "one_worker_per_second": round(rate(1), 1),
        "two_workers_per_second": round(rate(2), 1),
        "ratio_warm": round(statistics.median(one.warm / two.warm for one, two in pairs), 3),
        "ratio_end_to_end": round(statistics.median(one.end_to_end / two.end_to_end for one, two in pairs), 3),
        "ratio_busy": round(statistics.median(one.cpu[0] / max(two.cpu) for one, two in pairs), 3),
        "cores_of_one_worker": round(statistics.median(one.cpu[0] / one.warm for one, _ in pairs), 2),
        "cores_of_two_workers": round(statistics.median(sum(two.cpu) / two.warm for _, two in pairs), 2),
        "goal": GOAL,
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--provider", default="minilm", choices=PROVIDERS.names())
    parser.add_argument("--documents", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=8.0)
    given = parser.parse_args()
    result = measured(given.provider, given.documents, given.rounds, given.minutes)
    json.dump(result, sys.stdout, indent=2)
    print()
    sys.exit(result["ratio_warm"] < GOAL)


if __name__ == "__main__":
    main()
