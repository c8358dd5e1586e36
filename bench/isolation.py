"""What a process of its own costs own code, and that its times are the same: python bench/isolation.py

An own provider (384 dimensions, 64 texts a batch), an own retriever and sqlite_vec with 2,000 vectors, in this process
and in a child. Printed are the seconds until each can be asked and the wall clock of one call, the least of several
turns. Exits 1 where a time that Bakeoff would show for a search differs by more than a tenth.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff.core.clock import time_call
from bakeoff.extensions.isolation.parts import create
from bakeoff.search.retrievers import RETRIEVERS
from bakeoff.search.stores import STORES
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from turns import in_turns

OWN = """
import numpy as np
VECTORS = np.random.default_rng(1).normal(size=(64, 384)).astype(np.float32)
IDS = [str(number) for number in range(100)]
def embed(texts):
    return VECTORS[: len(texts)]
def search(text, k):
    return IDS[:k]
"""
DOCUMENTS, DIMENSIONS, CALLS, ROUNDS, GOAL = 2_000, 384, 100, 9, 1.1
SHOWN: dict[str, float] = {}
TEXTS = ["A text about lakes and the rivers that feed them."] * 64


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bakeoff-isolation-") as folder:
        own = Path(folder) / "own.py"
        own.write_text(OWN)
        vectors = np.random.default_rng(2).normal(size=(DOCUMENTS, DIMENSIONS)).astype(np.float32)
        ids = [str(number) for number in range(DOCUMENTS)]
        jobs: dict[str, Callable[[], Any]] = {}
        print(f"{'':28}{'start, s':>10}")
        for isolate in (False, True):
            where = "in a child" if isolate else "in process"
            code = {"file": str(own)}
            provider = _made(f"provider, {where}", PROVIDERS, "own", isolate, **code, function="embed")
            retriever = _made(f"retriever, {where}", RETRIEVERS, "function", isolate, **code, function="search")
            place = Path(folder) / where
            place.mkdir()
            store = _made(f"store, {where}", STORES, "sqlite_vec", isolate, dimensions=DIMENSIONS, folder=place)
            store.add(ids, vectors)
            calls: dict[str, Callable[[], object]] = {
                "batch of 64 texts": partial(provider.embed, TEXTS, Role.DOCUMENT),
                "own search": partial(retriever.search, "lakes", 100),
                "store search": partial(store.search, vectors[0], 100),
            }
            jobs |= {f"{name}, {where}": partial(_calls, call, f"{name}, {where}") for name, call in calls.items()}
        turns = in_turns(jobs, ROUNDS)
        print(f"\n{'':34}{'one call, ms':>14}{'shown, ms':>12}")
        for name in sorted(jobs):
            print(f"{name:34}{1e3 * turns.wall[name] / CALLS:14.3f}{SHOWN[name]:12.3f}")
        shown = [SHOWN[f"store search, {where}"] for where in ("in a child", "in process")]
    print(f"\nsearch time shown, in a child / in process: {shown[0] / shown[1]:.2f} (goal ≤ {GOAL})")
    return int(shown[0] / shown[1] > GOAL)


def _made(name: str, registry: Any, adapter: str, isolate: bool, **options: Any) -> Any:
    start = time.perf_counter()
    part = create(registry, adapter, isolate, options) or registry.create(adapter, **options)
    print(f"{name:28}{time.perf_counter() - start:10.2f}")
    return part


def _calls(call: Callable[[], object], name: str) -> None:
    """Keeps the least median that Bakeoff's clock saw, in ms."""
    median = float(np.median([time_call(call)[1] for _ in range(CALLS)]) / 1e6)
    SHOWN[name] = min(median, SHOWN.get(name, median))


if __name__ == "__main__":
    sys.exit(main())
