"""Two runs of the same line-up at once: both results are there, and no text is paid for twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from chaos.processes import BATCH, start
from chaos.row import Figure, Plan, attempts
from tests.wire import Fault, WireServer


@dataclass(frozen=True)
class Both:
    """What two runs left together."""

    failed: int
    lost: int
    paid_twice: int


def pairs(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """The second starts while the first one asks, in the same second as often as not."""

    def attempt(number: int, rng: random.Random) -> Both:
        place = folder / str(number)
        with WireServer() as wire:
            wire.faults += [Fault(kind="slow", seconds=rng.uniform(0.02, 0.3)) for _ in range(60)]
            first = start(place, wire)
            time.sleep(rng.choice([0.0, 0.0, rng.uniform(0, 1.5)]))
            both = [first, start(place, wire)]
            for process in both:
                process.communicate(timeout=300)
            asked = Counter(text for request in wire.embeddings() for text in request.texts)
        kept = list((place / "results").glob("*/metrics_summary.json"))
        failed = sum(process.returncode != 0 for process in both)
        return Both(failed, 2 - len(kept), sum(times - 1 for times in asked.values()))

    seen, missing = attempts(plan, "pairs", count, attempt)
    return [
        Figure(f"results lost, {len(seen)} times two runs at once", sum(both.lost for both in seen)),
        Figure("  runs of them that failed", sum(both.failed for both in seen)),
        Figure(
            f"  texts paid twice, {BATCH} a batch",
            max((both.paid_twice for both in seen), default=0),
            BATCH,
        ),
        missing,
    ]
