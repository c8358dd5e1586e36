"""The one way from texts to vectors: cache first, then batches to the provider, under one policy and one budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from bakeoff_providers.base import EmbeddingBatch, Fitted, ModelCard, Provider, Role, Vectors, checked
from bakeoff_providers.errors import EmbeddingFailed, Unavailable

from bakeoff.core.progress import Progress, silent
from bakeoff.embedding.budget import Budget, reservation
from bakeoff.embedding.cache import Space, VectorCache
from bakeoff.embedding.retry import Attempted, RateLimit, RetryPolicy, call

CHARACTERS_PER_TOKEN = 4.0  # English prose; only ever used where no server has counted


@dataclass(slots=True)
class Usage:
    """What one contender's vectors needed, to be shown in its row."""

    texts: int = 0
    cached: int = 0
    requests: int = 0
    retries: int = 0
    truncated: int = 0
    tokens: float = 0.0
    estimated: bool = False

    def cost(self, card: ModelCard) -> float | None:
        """Tokens times list price; None where no price is known."""
        return None if card.price is None else self.tokens * card.price.usd_per_million_tokens / 1e6


@dataclass(slots=True)
class Embedder:
    """One provider behind the cache, the retry policy and the budget."""

    provider: Provider
    cache: VectorCache | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    offline: bool = False
    workers: int = 4
    progress: Progress = silent
    usage: dict[Role, Usage] = field(default_factory=lambda: {role: Usage() for role in Role})
    warnings: list[str] = field(default_factory=list)
    lengths: tuple[float, float] | None = None
    _rate_limit: RateLimit = field(default_factory=RateLimit)
    _spaces: dict[Role, Space] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rate_limit.sleep = self.policy.sleep

    def fit(self, documents: Sequence[str]) -> None:
        """Lets a provider that learns from the corpus do so."""
        if isinstance(self.provider, Fitted):
            self.provider.fit(documents)

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Unit vectors in the order of the texts; only what the cache lacks is asked of the provider."""
        space = self._space(role)
        wanted = list(dict.fromkeys(texts))
        missing = [text for text in wanted if space is None or text not in space]
        self.usage[role].texts += len(wanted)
        self.usage[role].cached += len(wanted) - len(missing)
        fetched = dict(zip(missing, self._fetch(missing, role, space), strict=True)) if missing else {}
        kept = [text for text in wanted if text not in fetched]
        if kept and space is not None:
            vectors, tokens = space.get(kept)
            self.usage[role].tokens += tokens
            fetched.update(zip(kept, vectors, strict=True))
        raw = np.stack([fetched[text] for text in texts])
        if role is Role.DOCUMENT:
            norms = np.linalg.norm(raw, axis=1)
            self.lengths = float(norms.min()), float(norms.max())
        return unit(raw, self.provider.card.name)

    def embed_timed(self, text: str, role: Role) -> tuple[Vectors, int | None]:
        """One text by itself and the time of its call; no time when it came from the cache.

        A local provider is asked anew each time: its calls are free, and its speed is what is being measured.
        """
        space = self._space(role)
        if not self.provider.local and space is not None and text in space:
            vectors, _ = space.get([text])
            return unit(vectors, self.provider.card.name)[0], None
        batch, attempted = self._call([text], role)
        if not self.provider.local:
            self.usage[role].texts += 1
            self._account(batch, [text], role, attempted)
            if space is not None:
                space.put([text], batch.vectors, batch.tokens)
        return unit(batch.vectors, self.provider.card.name)[0], attempted.nanoseconds

    def missing(self, texts: Sequence[str], role: Role) -> list[str]:
        """What a run would have to ask for: the dry run counts these."""
        space = self._space(role)
        return [text for text in dict.fromkeys(texts) if space is None or text not in space]

    def close(self) -> None:
        """Ends the cache's segments and the provider's sessions."""
        for space in self._spaces.values():
            space.close()
        self.provider.close()

    def _space(self, role: Role) -> Space | None:
        if self.cache is None:
            return None
        if role not in self._spaces:
            self._spaces[role] = self.cache.space(self.provider.identity(role))
        return self._spaces[role]

    def _fetch(self, texts: list[str], role: Role, space: Space | None) -> list[Vectors]:
        """Batches in parallel for a hosted provider, one after the other for a local one; cached as they arrive."""
        lock = threading.Lock()
        answers: dict[int, Vectors] = {}
        plan = list(enumerate(batches(texts, self.provider.card)))
        with self.progress(f"{self.provider.card.name}: {role.value} vectors", len(texts)) as advance:

            def embed_batch(numbered: tuple[int, list[str]]) -> None:
                number, batch = numbered
                answer, attempted = self._call(batch, role)
                with lock:
                    if space is not None:
                        space.put(batch, answer.vectors, answer.tokens)
                    self._account(answer, batch, role, attempted)
                    answers[number] = answer.vectors
                    advance(len(batch))

            if self.provider.local:
                for numbered in plan:
                    embed_batch(numbered)
            else:
                _in_parallel(embed_batch, plan, self.workers)
        return [row for number in range(len(plan)) for row in answers[number]]

    def _call(self, texts: list[str], role: Role) -> tuple[EmbeddingBatch, Attempted]:
        card = self.provider.card
        if self.offline and not self.provider.local:
            raise Unavailable(f"--offline, and {len(texts)} texts or more are not in the cache")
        with reservation(self.budget, _price(estimated_tokens(texts, card.prompt(role)), card)) as reserved:
            answer, attempted = call(
                lambda: checked(self.provider.embed(texts, role), texts, card), self.policy, self._rate_limit
            )
            if answer.tokens is not None:
                reserved.actual = _price(answer.tokens, card)
        return answer, attempted

    def _account(self, answer: EmbeddingBatch, texts: list[str], role: Role, attempted: Attempted) -> None:
        usage = self.usage[role]
        usage.requests += 1 + attempted.retries
        usage.retries += attempted.retries
        usage.truncated += answer.truncated
        usage.estimated |= answer.tokens is None
        usage.tokens += estimated_tokens(texts) if answer.tokens is None else answer.tokens


def _in_parallel(
    embed_batch: Callable[[tuple[int, list[str]]], None], plan: list[tuple[int, list[str]]], workers: int
) -> None:
    """Runs the batches on a few threads; the first failure stops what has not started yet."""
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(embed_batch, numbered) for numbered in plan]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def batches(texts: Sequence[str], card: ModelCard) -> Iterator[list[str]]:
    """As many texts per request as the provider takes, by items and by (estimated) tokens."""
    batch: list[str] = []
    tokens = 0.0
    for text in texts:
        size = estimated_tokens([text])
        full = len(batch) >= card.batch_items or (card.batch_tokens is not None and tokens + size > card.batch_tokens)
        if batch and full:
            yield batch
            batch, tokens = [], 0.0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def estimated_tokens(texts: Sequence[str], prompt: str = "") -> float:
    """A guess from lengths, marked as an estimate wherever it is shown."""
    return sum(max(1.0, (len(prompt) + len(text)) / CHARACTERS_PER_TOKEN) for text in texts)


def unit(vectors: Vectors, model: str) -> Vectors:
    """Length one, so that inner product is cosine in every store."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not norms.all():
        raise EmbeddingFailed(f"{model} answered a zero vector")
    return np.asarray(vectors / norms, dtype=np.float32)


def _price(tokens: float, card: ModelCard) -> float:
    return 0.0 if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6
