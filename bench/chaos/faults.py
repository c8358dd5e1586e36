# ruff: noqa: E501 - tables
"""Faults of a server, through every real SDK and the cache: a wrong vector is never believed, and so never kept."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.retry import RetryPolicy
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import BakeoffError

from chaos.processes import KEY, KEYS
from chaos.row import Figure, Plan, not_made
from tests.dialects import Asked
from tests.wire import PROXIES, Fault, WireServer

TASKS = {
    "openai": None,
    "voyage": "document",
    "gemini": "RETRIEVAL_DOCUMENT",
    "cohere": "search_document",
    "ollama": None,
}
KINDS: tuple[Any, ...] = (
    "drop", "broken", "truncated", "html", "wrong_shape", "null", "too_few", "nan", "zero", "dimension", "boolean", "text",
    "reversed", "duplicate", "drip", "status", "redirect", "echo", None,
)  # fmt: skip
WORKERS = 4  # most of the time is spent waiting for a server that drips


@dataclass
class Faults:
    """What all faults together showed."""

    attempts: int = 0
    cached: int = 0
    wrong_vectors: int = 0
    told_others: int = 0
    secrets: int = 0
    other_errors: int = 0
    first: str = ""


def faults(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """So many calls, each with one fault, spread over the five SDKs; afterwards the cache is compared."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        shares = [range(first, count, WORKERS) for first in range(WORKERS)]
        parts = list(pool.map(_share, [folder / str(n) for n in range(WORKERS)], [plan] * WORKERS, shares))
    seen = Faults(*(sum(getattr(part, name) for part in parts) for name in list(Faults.__annotations__)[:-1]))
    first = next((part.first for part in parts if part.first), "")
    return [
        Figure(f"wrong of {seen.cached:,} vectors cached, {seen.attempts} provider faults", seen.wrong_vectors),
        Figure("  requests to another host after a redirect", seen.told_others),
        Figure("  keys in error messages", seen.secrets),
        Figure("  errors that are not our own", seen.other_errors, detail=first),
        not_made("faults", count - seen.attempts),
    ]


def without_proxies() -> None:
    """Servers are on this machine; every SDK gets the same key."""
    for name in PROXIES:
        os.environ.pop(name, None)
    os.environ.update(dict.fromkeys(KEYS, KEY))


def _share(folder: Path, plan: Plan, numbers: Sequence[int]) -> Faults:
    seen = Faults()
    without_proxies()
    with WireServer() as wire, WireServer() as other:
        embedders = {
            name: Embedder(
                PROVIDERS.create(name, base_url=wire.base(name), timeout=2.0),
                VectorCache(folder),
                RetryPolicy(attempts=1),
            )
            for name in TASKS
        }
        asked: dict[str, list[str]] = {name: [] for name in TASKS}
        for number in numbers:
            if plan.over:
                break
            rng = plan.rng("faults", number)
            name = list(TASKS)[number % len(TASKS)]
            wire.faults.clear()
            wire.faults.append(_fault(name, rng, other))
            texts = [f"{number}-{place}" for place in range(rng.randint(2, 5))]
            asked[name] += texts
            seen.attempts += 1
            try:
                embedders[name].embed(texts, Role.DOCUMENT)
            except BakeoffError as error:
                seen.secrets += KEY in str(error)
            except Exception as error:
                seen.other_errors += 1
                seen.first = seen.first or f"#{number} {name}: {type(error).__name__}: {error}"
        for name, embedder in embedders.items():
            _compare(embedder, asked[name], TASKS[name], wire, seen)
            embedder.close()
        seen.told_others = len(other.requests)
    return seen


def _compare(embedder: Embedder, texts: list[str], task: str | None, wire: WireServer, seen: Faults) -> None:
    missing = set(embedder.missing(texts, Role.DOCUMENT))
    kept = [text for text in texts if text not in missing]
    if not kept:
        return
    card = embedder.provider.card
    expected = wire.vectors(Asked(card.name, [card.prompt(Role.DOCUMENT) + text for text in kept], task))
    got = embedder.embed(kept, Role.DOCUMENT)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    seen.cached += len(kept)
    seen.wrong_vectors += int((~np.isclose(got, expected / lengths, atol=1e-5).all(axis=1)).sum())


def _fault(name: str, rng: random.Random, other: WireServer) -> Fault | None:
    kind = rng.choice(KINDS)
    if kind in ("duplicate", "reversed") and name not in ("openai", "voyage"):  # the others number no rows
        kind = "boolean"
    if kind is None:
        return None
    if kind == "redirect":
        return Fault(status=rng.choice([301, 302, 303, 307, 308]), headers={"Location": f"{other.url}/x"})
    if kind == "echo":
        return Fault(status=rng.choice([400, 401, 429, 500]), message=f"your key {KEY} is wrong")
    if kind == "status":
        return Fault(status=rng.choice([400, 404, 408, 429, 500, 503, 529]))
    return Fault(kind=kind, seconds=0.3)
