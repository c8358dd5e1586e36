"""The one way from texts to vectors: cache first, then batches to the provider, under one policy and one budget."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np
from bakeoff_providers.base import EmbeddingBatch, Fitted, InFiles, Provider, Role, Vectors, checked
from bakeoff_providers.errors import Unavailable
from numpy.typing import NDArray

from bakeoff.calls.budget import Budget, reservation
from bakeoff.calls.key_index import KeyIndex, Keys, Places, keys_of
from bakeoff.calls.retry import Attempted, RateLimit, RetryPolicy, call
from bakeoff.calls.tokens import estimated_tokens, price_of
from bakeoff.core.progress import Advance, Progress, silent
from bakeoff.core.room import TEMPORARY
from bakeoff.embedding.batches import WORKERS, batches, in_parallel
from bakeoff.embedding.cache import Space, VectorCache
from bakeoff.embedding.single_calls import SingleCalls, TimedVector
from bakeoff.embedding.unit import NotingUnit, unit
from bakeoff.embedding.usage import Stored, Usage
from bakeoff.embedding.vector_rows import VectorRows, rows_in_files


@dataclass(slots=True)
class Embedder:
    """One provider behind the cache, the retry policy and the budget."""

    provider: Provider
    cache: VectorCache | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    offline: bool = False
    time_hosted: int = 0  # calls to a paid provider that only serve to time it
    workers: int = WORKERS
    progress: Progress = silent
    usage: dict[Role, Usage] = field(default_factory=lambda: {role: Usage() for role in Role})
    warnings: list[str] = field(default_factory=list)
    cut: tuple[int, int] | None = None  # about how many of the corpus' texts are too long for the model, of how many
    lengths: tuple[float, float] | None = None  # of the documents' vectors that were read so far
    rate_limit: RateLimit = field(default_factory=RateLimit)
    single: SingleCalls = field(init=False)
    _spaces: dict[Role, Space | None] = field(default_factory=dict)
    _uncached: dict[Path, Space] = field(default_factory=dict)
    _elsewhere: KeyIndex = field(default_factory=KeyIndex)
    _writable: list[Space] = field(default_factory=list)
    _counted: dict[tuple[Role, Space], Places] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.rate_limit.sleep = self.policy.sleep
        self.single = SingleCalls(self, self.time_hosted)

    def fit(self, documents: Sequence[str]) -> None:
        """Lets a provider that learns from the corpus do so."""
        if isinstance(self.provider, Fitted):
            self.provider.fit(documents)

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Unit vectors in the order of the texts; only what the cache lacks is asked of the provider."""
        space = self.space(role)
        wanted = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        missing = self.missing(list(wanted), role)
        with self._progress(role, len(missing)) as advance:
            if space is None:
                self.usage[role].texts += len(wanted)
                raw = np.concatenate(self._ask(missing, role, None, advance))
            else:
                stored = self._stored(list(wanted), role, space, advance)
                self._count([stored], role, space)
                raw = space.take(stored.places)
        if len(wanted) < len(texts):
            raw = raw[[wanted[text] for text in texts]]
        return self._unit(raw) if role is Role.DOCUMENT else unit(raw, self.provider.card.name)

    def embed_corpus(self, blocks: Iterable[Sequence[str]], total: int, scratch: Path) -> VectorRows:
        """The documents, a block of texts at a time, into the cache or, where there is none, into `scratch`."""
        space, role = self.corpus_space(scratch), Role.DOCUMENT
        if space is None and isinstance(self.provider, InFiles):
            self.provider.ready()
            with self._progress(role, total) as advance:
                rows = rows_in_files(self.provider, blocks, total, self._unit, advance)
            self.usage[role].texts += total
            return rows
        assert space is not None
        blockwise: list[Stored] = []
        with self._progress(role, total) as advance:
            for block in blocks:
                wanted = list(dict.fromkeys(block))
                stored = self._stored(wanted, role, space, advance, total)
                asked = int(np.count_nonzero(stored.asked))
                if len(wanted) < len(block):
                    number = {text: at for at, text in enumerate(wanted)}
                    repeated = [number[text] for text in block]
                    stored = stored.at(repeated)
                blockwise.append(stored)
                advance(len(block) - asked)
        self._count(blockwise, role, space)
        places = np.concatenate([stored.places for stored in blockwise])
        return VectorRows(space, places, (self._unit,), space.dimensions or 0)

    def corpus_space(self, scratch: Path) -> Space | None:
        """Where the documents' vectors go; None where they are in files already."""
        space = self.space(Role.DOCUMENT)
        if space is None and not isinstance(self.provider, InFiles):
            uncached = VectorCache(scratch, remedy=TEMPORARY).space({"dimensions": None})
            space = self._uncached.setdefault(scratch, uncached)
        return space

    def note_asked(self, texts: Sequence[str]) -> None:
        """Texts that workers ask for in this run: they are counted as asked for, not as cached."""
        keys = keys_of(texts)
        self._elsewhere.add(keys, np.zeros(len(keys), dtype=np.int64))

    @property
    def _unit(self) -> NotingUnit:
        return NotingUnit(self.provider.card.name, self._note_lengths)

    def _note_lengths(self, shortest: float, longest: float) -> None:
        known = self.lengths or (shortest, longest)
        self.lengths = min(known[0], shortest), max(known[1], longest)

    def embed_batches(
        self, plan: Sequence[list[str]], role: Role, space: Space, advance: Advance, to_come: int = 0
    ) -> None:
        """Batches that were cut before: a part of a corpus is asked for in the very batches that all of it would be.

        `to_come` are the texts of all plans.
        """
        texts = [text for batch in plan for text in batch]
        keys = keys_of(texts)
        asked = space.find(keys) < 0
        missing = [part for batch in plan if (part := _absent(batch, space))]
        advance(len(keys) - int(np.count_nonzero(asked)))
        if missing:
            self._make_sure(space, sum(map(len, missing)), to_come, ready=True)
            self._ask_batches(missing, role, space, advance)
        self.usage[role].count([self._noted(texts, space.find(keys), asked, role, space)])

    def embed_unkept(self, texts: list[str], role: Role) -> EmbeddingBatch:
        """One batch for somebody else, who keeps what came."""
        answer, attempted = self._call(texts, role)
        self._account(answer, texts, role, attempted)
        return answer

    @property
    def asks_anew(self) -> bool:
        """Whether a query is asked in every round: calls are free, and their speed is what is being measured."""
        return self.provider.local or (self.provider.free and not self.offline)

    def embed_timed(self, text: str, role: Role) -> TimedVector:
        """One text by itself, and how long that took."""
        if self.provider.local:
            batch, attempted = self._call([text], role)
            return TimedVector(unit(batch.vectors, self.provider.card.name)[0], attempted.nanoseconds)
        return self.single.embed(text, role)

    def ask_again(self, text: str, role: Role) -> tuple[Vectors, int]:
        """One text that was asked for before: a request, but no further text or token of the row's."""
        batch, attempted = self._call([text], role)
        self.usage[role].count_call(attempted)
        return unit(batch.vectors, self.provider.card.name)[0], attempted.nanoseconds

    def buy(self, text: str, role: Role) -> tuple[Vectors, int | None]:
        """One text by itself, from the cache; or asked for, with the nanoseconds of the call."""
        space, took = self.space(role), None
        if space is None:
            batch, attempted = self._call([text], role)
            self.usage[role].texts += 1
            self._account(batch, [text], role, attempted)
            return unit(batch.vectors, self.provider.card.name)[0], attempted.nanoseconds
        while text not in space:
            with self._claimed([text], keys_of([text]), space) as (mine, names, _):
                if mine:
                    space.check_writable(1)
                    batch, attempted = self._call([text], role)
                    self._account(batch, [text], role, attempted)
                    space.put([text], batch.vectors, batch.tokens, names)
                    took = attempted.nanoseconds
                    break
            space.claims.wait(keys_of([text]))
            space.refresh()
        places = space.find(keys_of([text]))
        self._count([self._noted([text], places, np.array([took is not None]), role, space)], role, space)
        return unit(space.take(places), self.provider.card.name)[0], took

    def missing(self, texts: Iterable[str], role: Role) -> list[str]:
        """What a run would have to ask for: the dry run counts these."""
        space, wanted = self.space(role), list(dict.fromkeys(texts))
        if space is None:
            return wanted
        return _absent(wanted, space)

    def close(self) -> None:
        """Ends the cache's shards and the provider's sessions."""
        for space in filter(None, self._spaces.values()):
            space.close()
        self.provider.close()

    def space(self, role: Role) -> Space | None:
        """Where the cache keeps its vectors; None where nothing is kept."""
        if self.cache is None:
            return None
        if role not in self._spaces:
            code = self.provider.code()
            identity = self.provider.identity(role)
            self._spaces[role] = None if code is None else self.cache.space({**identity, **code})
        return self._spaces[role]

    def _progress(self, role: Role, total: int) -> AbstractContextManager[Advance]:
        return self.progress(f"{self.provider.card.name}: {role.value} vectors", total)

    def _stored(self, texts: list[str], role: Role, space: Space, advance: Advance, total: int = 0) -> Stored:
        """Distinct texts, all of them in the space afterwards. The first that is missing makes sure of the disk."""
        keys = keys_of(texts)
        places = space.find(keys)
        asked = places < 0
        if asked.any():
            missing = [text for text, absent in zip(texts, asked, strict=True) if absent]
            self._make_sure(space, len(missing), total, ready=bool(total) and not self.offline)
            self._ask(missing, role, space, advance, keys[asked])
            places = space.find(keys)
        return self._noted(texts, places, asked | (self._elsewhere.find(keys) >= 0), role, space)

    def _make_sure(self, space: Space, missing: int, total: int, *, ready: bool) -> None:
        """Once, before the first request: there is room for all. Where only vectors tell the dimensions, after them."""
        if space in self._writable:
            return
        if ready:
            self.provider.ready()
        dimensions = space.dimensions or self.provider.card.dimensions
        space.check_writable(missing if dimensions is None else max(missing, total - len(space)), dimensions)
        if dimensions is not None:
            self._writable.append(space)

    def _noted(
        self, texts: Sequence[str], places: Places, asked: NDArray[np.bool_], role: Role, space: Space
    ) -> Stored:
        """With the tokens of each text."""
        return Stored.of(texts, places, asked, space.tokens_of(places), self.provider.card.prompt(role))

    def _count(self, blockwise: Sequence[Stored], role: Role, space: Space) -> None:
        """Each text once, however many rows ask for it."""
        self._counted[role, space] = self.usage[role].count(blockwise, self._counted.get((role, space)))

    def _ask(
        self, texts: list[str], role: Role, space: Space | None, advance: Advance, keys: Keys | None = None
    ) -> list[Vectors]:
        """Texts that are not there, in batches."""
        parts = list(batches(texts, self.provider.card, self.at_once))
        return self._ask_batches(parts, role, space, advance, keys)

    def _ask_batches(
        self, parts: list[list[str]], role: Role, space: Space | None, advance: Advance, keys: Keys | None = None
    ) -> list[Vectors]:
        """Batches in parallel for a hosted provider, one after the other for a local one; stored as they arrive."""
        answers: dict[int, Vectors] = {}
        waiting: list[str] = []
        if keys is None and space is not None:
            keys = keys_of(text for batch in parts for text in batch)

        def ask_batch(numbered: tuple[int, list[str]]) -> None:
            start, batch = numbered
            names = None if keys is None else keys[start : start + len(batch)]
            with self._claimed(batch, names, space) as (mine, my_names, theirs):
                waiting.extend(theirs)
                answer, attempted = self._call(mine, role) if mine else (None, None)
                with self._lock:
                    if answer is not None and attempted is not None:
                        if space is not None:
                            space.put(mine, answer.vectors, answer.tokens, my_names)
                        else:
                            answers[start] = answer.vectors
                        self._account(answer, mine, role, attempted)
                    advance(len(batch) - len(theirs))

        plan = list(zip(accumulate(map(len, parts), initial=0), parts, strict=False))
        if self.provider.local:
            for numbered in plan:
                ask_batch(numbered)
        else:
            in_parallel(ask_batch, plan, self.workers)
        if waiting and space is not None:  # another process asks for these: what it does not bring, we ask for
            space.claims.wait(keys_of(waiting))
            space.refresh()
            missing = _absent(waiting, space)
            advance(len(waiting) - len(missing))
            if missing:
                self._ask(missing, role, space, advance)
        return [answers[start] for start in sorted(answers)]

    @property
    def at_once(self) -> int:
        """How many batches a kill would lose; what runs here costs nothing."""
        return 0 if self.provider.local else self.workers

    @contextmanager
    def _claimed(
        self, batch: list[str], keys: Keys | None, space: Space | None
    ) -> Iterator[tuple[list[str], Keys | None, list[str]]]:
        """Of a batch, what this process asks for and what another one is asking for; what has arrived is in neither."""
        if space is None or keys is None or self.provider.local:
            yield batch, keys, []
            return
        taken = np.array(space.claims.take(keys))
        try:
            with self._lock:
                space.refresh()
                here = space.find(keys) >= 0
            mine, theirs = (np.flatnonzero(ours & ~here) for ours in (taken, ~taken))
            yield [batch[row] for row in mine], keys[mine], [batch[row] for row in theirs]
        finally:
            space.claims.release(keys[taken])

    def _call(self, texts: list[str], role: Role) -> tuple[EmbeddingBatch, Attempted]:
        card = self.provider.card
        if self.offline and not self.provider.local:
            raise Unavailable(f"--offline, and {len(texts)} texts or more are not in the cache")
        unknown = card.price is None and not self.provider.local
        price = None if unknown else price_of(self._estimate(texts, role), card) if self.budget else 0.0
        with reservation(self.budget, price, card.name) as reserved:
            answer, attempted = call(
                lambda: checked(self.provider.embed(texts, role), texts, card), self.policy, self.rate_limit
            )
            if answer.tokens is not None:
                reserved.actual = price_of(answer.tokens, card)
        return answer, attempted

    def _account(self, answer: EmbeddingBatch, texts: list[str], role: Role, attempted: Attempted) -> None:
        usage = self.usage[role]
        usage.count_call(attempted)
        usage.truncated += answer.truncated
        usage.estimated |= answer.tokens is None
        usage.tokens += self._estimate(texts, role) if answer.tokens is None else answer.tokens

    def _estimate(self, texts: Sequence[str], role: Role) -> float:
        """Tokens, as far as lengths tell; the prompt is paid for with each text."""
        return estimated_tokens(texts, self.provider.card.prompt(role))


def _absent(texts: list[str], space: Space) -> list[str]:
    return [text for text, place in zip(texts, space.find(keys_of(texts)), strict=True) if place < 0]
