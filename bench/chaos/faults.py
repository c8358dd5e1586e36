# ruff: noqa: E501 - tables
"""Faults of a server, through every real SDK: a wrong vector is never believed, and no other host is told anything."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import BakeoffError

from tests.dialects import Asked
from tests.wire import PROXIES, Fault, WireServer

KEY = "test-key-0123456789abcdef"
TASKS = {
    "openai": None,
    "voyage": "document",
    "gemini": "RETRIEVAL_DOCUMENT",
    "cohere": "search_document",
    "ollama": None,
}
KEYS = ("OPENAI_API_KEY", "VOYAGE_API_KEY", "GEMINI_API_KEY", "CO_API_KEY", "OLLAMA_API_KEY")
KINDS: tuple[Any, ...] = (
    "drop", "broken", "truncated", "html", "wrong_shape", "null", "too_few", "nan", "zero", "dimension", "boolean", "text",
    "reversed", "duplicate", "drip", "status", "redirect", "echo", None,
)  # fmt: skip


@dataclass
class Faults:
    """What all faults together showed."""

    attempts: int = 0
    wrong_vectors: int = 0
    told_others: int = 0
    secrets: int = 0
    other_errors: int = 0


def faults(rng: random.Random, count: int) -> Faults:
    """So many calls, each with one fault, spread over the five SDKs."""
    seen = Faults()
    for name in PROXIES:
        os.environ.pop(name, None)
    os.environ |= dict.fromkeys(KEYS, KEY)
    with WireServer() as wire, WireServer() as other:
        providers = {name: PROVIDERS.create(name, base_url=wire.base(name), timeout=2.0) for name in TASKS}
        for number in range(count):
            name = list(TASKS)[number % len(TASKS)]
            kind = rng.choice(KINDS)
            if kind in ("duplicate", "reversed") and name not in ("openai", "voyage"):  # the others number no rows
                kind = "boolean"
            wire.faults.clear()
            wire.faults.append(_fault(kind, rng, other))
            texts = [f"{number}-{place}" for place in range(rng.randint(2, 5))]
            provider = providers[name]
            prompt = provider.card.prompt(Role.DOCUMENT)
            seen.attempts += 1
            try:
                vectors = provider.embed(texts, Role.DOCUMENT).vectors
            except BakeoffError as error:
                seen.secrets += KEY in str(error)
                continue
            except Exception:
                seen.other_errors += 1
                continue
            expected = wire.vectors(Asked(provider.card.name, [prompt + text for text in texts], TASKS[name]))
            seen.wrong_vectors += not np.allclose(vectors, expected, rtol=1e-4)
        seen.told_others = len(other.requests)
    return seen


def _fault(kind: Any, rng: random.Random, other: WireServer) -> Fault | None:
    if kind is None:
        return None
    if kind == "redirect":
        return Fault(status=rng.choice([301, 302, 303, 307, 308]), headers={"Location": f"{other.url}/x"})
    if kind == "echo":
        return Fault(status=rng.choice([400, 401, 429, 500]), message=f"your key {KEY} is wrong")
    if kind == "status":
        return Fault(status=rng.choice([400, 404, 408, 429, 500, 503, 529]))
    return Fault(kind=kind, seconds=0.3)
