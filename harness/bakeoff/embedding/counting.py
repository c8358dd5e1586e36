"""The embedder of a dry run: it goes the way of a run up to each request, and counts there. Nothing is sent or kept."""

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

COUNTED = 1 << 62  # from here on, places of vectors that a run would have put here
DRAWN = 32  # texts, whose lengths stand for those of all
SEED = 0


class CountedSpace(Space):
    """What is in the cache, and what a run would have put there."""

    _counted = 0

    def append(self, keys: Keys, tokens: Tokens, vectors: Vectors) -> None:  # noqa: ARG002
        """Remembers the keys alone."""
        first = COUNTED + self._counted
        self._index.add(keys, np.arange(first, first + len(keys), dtype=np.int64))
        self._counted += len(keys)

    def take(self, places: Places) -> Vectors:
        """Stand-ins: nobody reads them."""
        return np.ones((len(places), 1), dtype=np.float32)

    def tokens_of(self, places: Places) -> Tokens:
        """Unknown for what was only counted."""
        tokens, kept = np.zeros(len(places), dtype="<f4"), places < COUNTED
        tokens[kept] = super().tokens_of(places[kept])
        return tokens

    def check_writable(self, vectors: int, dimensions: int | None = None) -> None:
        """Nothing will be written."""

    def note_time(self, text: str, time: object) -> None:
        """Nothing was timed."""


class CountingCache(VectorCache):
    """A cache that is read and never written."""

    space_type = CountedSpace


class TextSample:
    """A few texts of a stream, each as likely as any other."""

    def __init__(self, seed: int = SEED) -> None:
        self._random, self._kept = random.Random(seed), list[tuple[float, str]]()

    def add(self, texts: Sequence[str]) -> None:
        """Some of these may take the place of earlier ones."""
        tagged = ((self._random.random(), text) for text in texts)
        self._kept = heapq.nsmallest(DRAWN, [*self._kept, *tagged])

    @property
    def texts(self) -> list[str]:
        """In no order."""
        return [text for _, text in self._kept]


class CountingCalls(Calls):
    """Counts requests by the length of their texts; `sent` has all of them, `sample` a few of the texts."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.sample = Account(), TextSample()

    def obtain(
        self, service: Service[V], keep: Keep[V] | None, requests: Sequence[Request], account: Account
    ) -> Iterator[tuple[int, Got[V] | None]]:
        """Each request once, as if it had been answered."""
        for request in requests:
            got = self.send(service, request.texts, account)
            if keep is not None:
                keep.put(got.texts, got.values, got.tokens, request.keys)
            yield len(request.texts), got

    def send(self, service: Service[V], texts: list[str], account: Account) -> Got[V]:
        """One request, with a stand-in for its answer."""
        tokens, written = guess = service.estimate(texts)
        usage = Usage(requests=1, answered=1, tokens=tokens, answer_tokens=written, usd=service.price(guess))
        account.add(usage)
        self.sent.add(usage)
        self.sample.add(texts)
        return Got(texts, cast(Any, np.ones((len(texts), 1), dtype=np.float32)), None, 0)


class CountingEmbedder(Embedder):
    """An embedder whose calls only count."""

    calls: CountingCalls

    def __post_init__(self) -> None:
        super().__post_init__()
        self.calls = CountingCalls()

    def corpus_space(self, scratch: Path) -> Space:
        """Where the documents' vectors would go; vectors that are in files are counted as well."""
        space = self.space(Role.DOCUMENT)
        return space or self._uncached.setdefault(scratch, CountingCache(scratch).space({"dimensions": None}))

    def _progress(self, role: Role, total: int) -> AbstractContextManager[Advance]:  # noqa: ARG002
        return self.progress(f"{self.provider.card.name}: texts to count", total)

    def _make_sure(self, space: Space, missing: int, total: int, *, ready: bool) -> None:
        """Neither the disk nor the service is looked at."""
