# ruff: noqa: E501 - tables
"""Faults of a server, through every real SDK and the cache: nothing wrong is believed, and so nothing wrong is kept."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff.calls.retry import RetryPolicy
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder
from bakeoff.search.rerankers import RERANKERS, check_scores
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.chat import CHATS
from bakeoff_providers.errors import BakeoffError

from chaos.processes import KEY
from chaos.row import Figure, Plan, not_made
from tests.dialects import Asked
from tests.services import HOSTED, KEYS, NUMBERED, RANKING, TALKING
from tests.wire import PROXIES, Fault, WireServer

TASKS = {name: kind.tasks[0] if kind.tasks else None for name, kind in HOSTED.items()}
TARGETS = (*((name, "vectors") for name in TASKS), *((name, "scores") for name in RANKING), *((name, "words") for name in TALKING))  # fmt: skip
NUMBERED_TARGETS = (*((name, "vectors") for name in NUMBERED), *((name, "scores") for name in RANKING))
KINDS: tuple[Any, ...] = (
    "drop", "broken", "truncated", "html", "wrong_shape", "null", "too_few", "nan", "zero", "dimension", "boolean", "text",
    "reversed", "duplicate", "text_index", "twice", "stray_nan", "bom", "text_tokens", "negative_tokens", "no_text", "parts",
    "half", "drip", "status", "redirect", "echo", None,
)  # fmt: skip
WORKERS = 4  # most of the time is spent waiting for a server that drips


@dataclass
class Faults:
    """What all faults together showed."""

    attempts: int = 0
    ranked: int = 0
    talked: int = 0
    cached: int = 0
    wrong_vectors: int = 0
    scores: int = 0
    wrong_scores: int = 0
    answers: int = 0
    wrong_answers: int = 0
    told_others: int = 0
    secrets: int = 0
    other_errors: int = 0
    first: str = ""


def faults(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """So many calls, each with one fault, spread over what is asked of the SDKs; afterwards the cache is compared."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        shares = [range(first, count, WORKERS) for first in range(WORKERS)]
        parts = list(pool.map(_share, [folder / str(n) for n in range(WORKERS)], [plan] * WORKERS, shares))
    seen = Faults(*(sum(getattr(part, name) for part in parts) for name in list(Faults.__annotations__)[:-1]))
    first = next((part.first for part in parts if part.first), "")
    embedded = seen.attempts - seen.ranked - seen.talked
    return [
        Figure(f"wrong of {seen.cached:,} vectors cached, {embedded} provider faults", seen.wrong_vectors),
        Figure(f"  wrong of {seen.scores:,} rerankers' scores believed, {seen.ranked} faults", seen.wrong_scores),
        Figure(f"  wrong of {seen.answers:,} chat models' answers believed, {seen.talked} faults", seen.wrong_answers),
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
        wire.answer = lambda _, prompt: f"an answer to {prompt}"
        embedders = {
            name: Embedder(
                PROVIDERS.create(name, base_url=wire.base(name), timeout=2.0),
                VectorCache(folder),
                RetryPolicy(attempts=1),
            )
            for name in TASKS
        }
        asked: dict[str, list[str]] = {name: [] for name in TASKS}
        ranked = {name: _ranked(name, wire, seen) for name in RANKING}
        talked = {name: _talked(name, wire, seen) for name in TALKING}
        for number in numbers:
            if plan.over:
                break
            rng = plan.rng("faults", number)
            name, what = TARGETS[number % len(TARGETS)]
            wire.faults.clear()
            wire.faults.append(_fault((name, what), rng, other))
            texts = [f"{number}-{place}" for place in range(rng.randint(2, 5))]
            seen.attempts += 1
            try:
                if what == "vectors":
                    asked[name] += texts
                    embedders[name].embed(texts, Role.DOCUMENT)
                else:
                    (ranked if what == "scores" else talked)[name](texts)
            except BakeoffError as error:
                seen.secrets += KEY in str(error)
            except Exception as error:
                seen.other_errors += 1
                seen.first = seen.first or f"#{number} {name} {what}: {type(error).__name__}: {error}"
        for name, embedder in embedders.items():
            _compare(embedder, asked[name], TASKS[name], wire, seen)
            embedder.close()
        seen.told_others = len(other.requests)
    return seen


def _ranked(name: str, wire: WireServer, seen: Faults) -> Callable[[list[str]], None]:
    reranker = RERANKERS.create(name, base_url=wire.base(name), timeout=2.0)

    def call(texts: list[str]) -> None:
        seen.ranked += 1
        answer = check_scores(reranker.rank("a query", texts), texts, name)
        expected = (wire.vectors_of(reranker.model, "a query", *texts)[:, 0] + 1) / 2
        seen.scores += len(texts)
        seen.wrong_scores += int((~np.isclose(answer.scores, expected, atol=1e-5)).sum())

    return call


def _talked(name: str, wire: WireServer, seen: Faults) -> Callable[[list[str]], None]:
    chat = CHATS.create(name, base_url=wire.base(name), timeout=2.0)

    def call(texts: list[str]) -> None:
        seen.talked += 1
        reply = chat.ask(texts[0], {"type": "object"}, 1)
        counts = [count for count in (reply.prompt_tokens, reply.answer_tokens) if count is not None]
        seen.answers += 1
        seen.wrong_answers += reply.text != f"an answer to {texts[0]}" or any(count < 0 for count in counts)

    return call


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


def _fault(target: tuple[str, str], rng: random.Random, other: WireServer) -> Fault | None:
    kind = rng.choice(KINDS)
    if kind in ("duplicate", "reversed", "text_index") and target not in NUMBERED_TARGETS:
        kind = "boolean"
    if target[1] == "scores" and kind in ("zero", "dimension"):  # whose scores it changes, or not, without a fault
        kind = "twice"
    if kind is None:
        return None
    if kind == "redirect":
        return Fault(status=rng.choice([301, 302, 303, 307, 308]), headers={"Location": f"{other.url}/x"})
    if kind == "echo":
        return Fault(status=rng.choice([400, 401, 429, 500]), message=f"your key {KEY} is wrong")
    if kind == "status":
        return Fault(status=rng.choice([400, 404, 408, 429, 500, 503, 529]))
    return Fault(kind=kind, seconds=0.3)
