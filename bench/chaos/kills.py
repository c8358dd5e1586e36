"""kill -9 at any moment, then the same command again: what is paid for twice, what is wrong, and what is left."""

from __future__ import annotations

import csv
import random
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import AT_RISK_TEXTS

from chaos.processes import BATCH, WORKERS, bakeoff, left_in, start, wait_for
from chaos.row import Figure, Plan, attempts
from tests.dialects import Asked
from tests.wire import Fault, WireServer

MODEL = "unpriced"  # no price is known: what a kill may lose is counted in texts
LARGE = 2048  # texts per request that the provider would take
DOCUMENTS = 700


@dataclass(frozen=True)
class Killed:
    """One kill and the run after it."""

    large: bool
    paid_twice: int
    failed: bool
    left: int
    vectors: int
    wrong: int


def kills(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Every fourth over a corpus of which a provider would take 2,048 texts at once."""

    def attempt(number: int, rng: random.Random) -> Killed:
        place, large = folder / str(number), number % 4 == 3
        with WireServer() as wire:
            wire.faults += [Fault(kind="slow", seconds=rng.uniform(0.02, 0.2)) for _ in range(40)]
            process = _start_large(place, wire) if large else start(place, wire)
            wait_for(wire, rng.randint(1, 6), process)
            time.sleep(rng.uniform(0, 0.3))
            process.kill()
            process.communicate()
            again = _start_large(place, wire) if large else start(place, wire)
            again.communicate(timeout=300)
            asked = Counter(text for request in wire.embeddings() for text in request.texts)
            vectors, wrong = _compared(place / "home" / "vectors", wire, list(asked))
        twice = sum(times - 1 for times in asked.values())
        return Killed(large, twice, again.returncode != 0, left_in(place), vectors, wrong)

    killed, missing = attempts(plan, "kills", count, attempt)
    small = [kill.paid_twice for kill in killed if not kill.large]
    large = [kill.paid_twice for kill in killed if kill.large]
    return [
        Figure(
            f"texts paid twice by one kill -9, {len(small)} kills, {BATCH} a batch",
            max(small, default=0),
            BATCH * WORKERS,
        ),
        Figure(
            f"  the same, {len(large)} kills, {LARGE} texts a batch", max(large, default=0), AT_RISK_TEXTS
        ),
        Figure(f"  wrong of {sum(kill.vectors for kill in killed):,} vectors kept", sum(kill.wrong for kill in killed)),
        Figure("  runs after a kill that failed", sum(kill.failed for kill in killed)),
        Figure("  temporary folders left after the next run", sum(kill.left for kill in killed)),
        missing,
    ]  # fmt: skip


def _start_large(folder: Path, wire: WireServer) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "documents": [["id", "text"], *([str(n), f"document number {n} of many"] for n in range(DOCUMENTS))],
        "queries": [["id", "text"], *([f"q{n}", f"the number {n}"] for n in range(5))],
        "grades": [["query", "document", "grade"], *([f"q{n}", str(n), "1"] for n in range(5))],
    }
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    lineup = folder / "lineup.toml"
    lineup.write_text(
        'rounds = 1\ntask = { format = "tables", documents = "documents.csv", queries = "queries.csv", '
        'judgments = "grades.csv" }\n[[contender]]\n'
        f'provider = "openai"\nmodel = "{MODEL}"\nstore = "faiss"\n'
        f'options = {{ base_url = "{wire.base("openai")}", batch_items = {LARGE} }}\n'
    )
    return bakeoff(folder, "run", str(lineup), "--no-charts", "--out", str(folder / "results"))


def _compared(folder: Path, wire: WireServer, texts: list[str]) -> tuple[int, int]:
    """Of the vectors in the cache, how many there are and how many are not what the server answered."""
    kept = wrong = 0
    cache = VectorCache(folder)
    for info in cache.spaces():
        space = cache.space(info.identity)
        known = [text for text in texts if text in space]
        expected = wire.vectors(Asked(str(info.identity["model"]), known, None))
        kept += len(space)
        wrong += int((~np.isclose(space.get(known)[0], expected, atol=1e-6).all(axis=1)).sum()) if known else 0
        space.close()
    return kept, wrong
