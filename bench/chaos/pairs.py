"""Two runs of the same line-up at once: both results are there, and neither a text nor a pair is paid for twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from chaos.processes import BATCH, start
from chaos.row import Figure, Plan, attempts
from tests.wire import Fault, WireServer

DEPTH = 10  # documents that are reranked for a query
RERANK = 'rerank = {{ provider = "cohere", depth = {depth}, options = {{ base_url = "{base}" }} }}\n'


@dataclass(frozen=True)
class Both:
    """What two runs left together."""

    failed: int
    lost: int
    texts_twice: int
    pairs_twice: int


def pairs(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """The second starts while the first one asks, in the same second as often as not."""

    def attempt(number: int, rng: random.Random) -> Both:
        place = folder / str(number)
        with WireServer() as wire:
            wire.faults += [Fault(kind="slow", seconds=rng.uniform(0.02, 0.3)) for _ in range(60)]
            more = RERANK.format(depth=DEPTH, base=wire.base("cohere"))
            first = start(place, wire, more)
            time.sleep(rng.choice([0.0, 0.0, rng.uniform(0, 1.5)]))
            both = [first, start(place, wire, more)]
            for process in both:
                process.communicate(timeout=300)
            asked = Counter(
                (request.provider, request.task, text) for request in wire.embeddings() for text in request.texts
            )
        kept = list((place / "results").glob("*/metrics_summary.json"))
        failed = sum(process.returncode != 0 for process in both)
        again = {kind: sum(n - 1 for (name, _, _), n in asked.items() if name == kind) for kind, _, _ in asked}
        return Both(failed, 2 - len(kept), again.get("openai", 0), again.get("cohere rerank", 0))

    seen, missing = attempts(plan, "pairs", count, attempt)
    return [
        Figure(f"results lost, {len(seen)} times two runs at once", sum(both.lost for both in seen)),
        Figure("  runs of them that failed", sum(both.failed for both in seen)),
        Figure(
            f"  texts paid twice, {BATCH} a batch",
            max((both.texts_twice for both in seen), default=0),
            BATCH,
        ),
        Figure(
            f"  reranked pairs paid twice, {DEPTH} a query",
            max((both.pairs_twice for both in seen), default=0),
            DEPTH,
        ),
        missing,
    ]
