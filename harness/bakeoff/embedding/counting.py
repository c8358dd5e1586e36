"""The embedder of a dry run: it follows a run up to each request and counts it. Nothing is sent or stored."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import numpy as np
from bakeoff_providers.base import Role, Vectors

from bakeoff.calls.key_index import Keys, Places
from bakeoff.calls.paid import Account, Calls, Got, Keep, Request, Service, Usage, V
from bakeoff.core.progress import Advance
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.shards import Tokens
from bakeoff.embedding.space import Space

COUNTED = 1 << 62  # places from here on are vectors that a run would store
DRAWN = 32  # texts whose lengths represent all
SEED = 0


class CountedSpace(Space):
    """The cache's content, plus what a run would have stored."""

    _counted = 0

    def append(self, keys: Keys, tokens: Tokens, vectors: Vectors) -> None:  # noqa: ARG002
        """Records the keys only."""
        first = COUNTED + self._counted
        self._index.add(keys, np.arange(first, first + len(keys), dtype=np.int64))
        self._counted += len(keys)

    def take(self, places: Places) -> Vectors:
        """Placeholders that are never read."""
        return np.ones((len(places), 1), dtype=np.float32)

    def tokens_of(self, places: Places) -> Tokens:
        """Unknown for counted texts."""
        tokens, kept = np.zeros(len(places), dtype="<f4"), places < COUNTED
        tokens[kept] = super().tokens_of(places[kept])
        return tokens

    def check_writable(self, vectors: int, dimensions: int | None = None) -> None:
        """Nothing is written."""

    def note_time(self, text: str, time: object) -> None:
        """Nothing is timed."""


class CountingCache(VectorCache):
    """A read-only cache."""

    space_type = CountedSpace


class TextSample:
    """A uniform sample of a stream of texts."""

    def __init__(self, seed: int = SEED) -> None:
        self._random, self._kept = random.Random(seed), list[tuple[float, str]]()

    def add(self, texts: Sequence[str]) -> None:
        """Some of these may replace earlier ones."""
        tagged = ((self._random.random(), text) for text in texts)
        self._kept = heapq.nsmallest(DRAWN, [*self._kept, *tagged])

    @property
    def texts(self) -> list[str]:
        """The sample, in no order."""
        return [text for _, text in self._kept]


class CountingCalls(Calls):
    """Counts requests by the length of their texts. `sent` has all requests, `sample` a few of the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.sample = Account(), TextSample()

    def obtain(
        self, service: Service[V], keep: Keep[V] | None, requests: Sequence[Request], account: Account
    ) -> Iterator[tuple[int, Got[V] | None]]:
        """Counts each request once, as if it were answered."""
        for request in requests:
            got = self.send(service, request.texts, account)
            if keep is not None:
                keep.put(got.texts, got.values, got.tokens, request.keys)
            yield len(request.texts), got

    def send(self, service: Service[V], texts: list[str], account: Account) -> Got[V]:
        """One request, with a placeholder answer."""
        tokens, written = guess = service.estimate(texts)
        usage = Usage(requests=1, answered=1, tokens=tokens, answer_tokens=written, usd=service.price(guess))
        account.add(usage)
        self.sent.add(usage)
        self.sample.add(texts)
        return Got(texts, cast(Any, np.ones((len(texts), 1), dtype=np.float32)), None, 0)


class CountingEmbedder(Embedder):
    """An embedder that only counts."""

    calls: CountingCalls

    def __post_init__(self) -> None:
        super().__post_init__()
        self.calls = CountingCalls()

    def corpus_space(self, scratch: Path) -> Space:
        """Where the documents' vectors would go. Vectors in files are counted too."""
        space = self.space(Role.DOCUMENT)
        return space or self._uncached.setdefault(scratch, CountingCache(scratch).space({"dimensions": None}))

    def _progress(self, role: Role, total: int) -> AbstractContextManager[Advance]:  # noqa: ARG002
        return self.progress(f"{self.provider.card.name}: texts to count", total)

    def _make_sure(self, space: Space, missing: int, total: int, *, ready: bool) -> None:
        """Checks neither the disk nor the service."""
