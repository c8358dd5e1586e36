"""From texts to vectors: cache first, then batches to the provider, under one retry policy and one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bakeoff_providers.base import Fitted, InFiles, ModelCard, Provider, Role, Vectors, cache_key, check_batch
from numpy.typing import NDArray

from bakeoff.calls.budget import CHARACTERS_PER_TOKEN, Budget, estimate_tokens, price_of, token_estimates
from bakeoff.calls.key_index import KeyIndex, Keys, Places, keys_of
from bakeoff.calls.paid import Account, Calls, Request, Sent, Service, Usage
from bakeoff.calls.retry import RateLimit, RetryPolicy
from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import CallTime
from bakeoff.core.files import TEMPORARY
from bakeoff.core.machine import call_time
from bakeoff.core.progress import Advance, Progress, silent
from bakeoff.embedding.cache import Space, VectorCache
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.embedding.preflight import service_warnings
from bakeoff.embedding.unit import NotingUnit, unit
from bakeoff.embedding.vector_rows import VectorRows, rows_in_files

WORKERS = 4  # concurrent requests to a hosted provider
AT_RISK_TEXTS, AT_RISK_USD = 256, 0.01  # a kill loses at most the larger of these


def batches(texts: Sequence[str], card: ModelCard, at_once: int = 0) -> Iterator[list[str]]:
    """Batches as large as the provider accepts, by items and by (estimated) tokens.

    If `at_once` batches are paid for concurrently, together they stay within what a kill may lose.
    """
    if card.batch_tokens is None and not at_once:
        yield from (list(texts[start : start + card.batch_items]) for start in range(0, len(texts), card.batch_items))
        return
    batch: list[str] = []
    tokens = 0.0
    for text in texts:
        size = max(1.0, len(text) / CHARACTERS_PER_TOKEN)
        full = len(batch) >= card.batch_items or (card.batch_tokens is not None and tokens + size > card.batch_tokens)
        if at_once and len(batch) >= AT_RISK_TEXTS // at_once:
            full |= card.price is None or price_of(tokens + size, card) * at_once > AT_RISK_USD
        if batch and full:
            yield batch
            batch, tokens = [], 0.0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def corpus_batches(
    texts: Iterable[str], card: ModelCard, at_once: int, block: int, find: Callable[[Keys], Places] | None = None
) -> Iterator[list[str]]:
    """All batches of a corpus as a run requests them: per block, each text once.

    `find` returns where a vector is stored (−1: nowhere). Without it, all texts are requested.
    """
    seen = KeyIndex()
    for part in in_blocks(texts, block):
        wanted = list(dict.fromkeys(part))
        keys = keys_of(wanted)
        new = seen.find(keys) < 0
        if find is not None:
            new &= find(keys) < 0
        seen.add(keys[new], np.zeros(int(np.count_nonzero(new)), dtype=np.int64))
        yield from batches([text for text, first in zip(wanted, new, strict=True) if first], card, at_once)


Stored = NDArray[Any]  # texts in a space: place, requested in this run or not, tokens (possibly estimated)
_STORED = np.dtype([("place", "<i8"), ("asked", "?"), ("tokens", "<f4"), ("estimated", "?")])
_NONE: Places = np.empty(0, dtype=np.int64)
SAME_FROM = 0.99  # cosine between two vectors of one model for the same text, on any hardware


def vector_service(provider: Provider, role: Role) -> Service[Vectors]:
    """A provider that embeds texts in one role."""
    card = provider.card

    def send(texts: list[str]) -> Sent:
        batch = provider.embed(texts, role)
        return Sent(batch, batch.tokens, truncated=batch.truncated)

    return Service(
        name=card.name,
        local=provider.local,
        lacks=lambda count: f"{count} texts or more are",
        estimate=lambda texts: (estimate_tokens(texts, card.prompt(role)), 0.0),  # the prompt is sent with each text
        price=lambda tokens: None if card.price is None and not provider.local else price_of(tokens[0], card),
        send=send,
        read=lambda batch, texts: check_batch(batch, texts, card).vectors,
    )


@dataclass(slots=True, eq=False)
class Embedder:
    """One provider behind the cache, the retry policy and the budget."""

    provider: Provider
    cache: VectorCache | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    offline: bool = False
    time_hosted: int = 0  # extra calls to a paid provider, only to time it
    workers: int = WORKERS
    progress: Progress = silent
    rate_limit: RateLimit = field(default_factory=RateLimit)
    calls: Calls = field(init=False)
    single: SingleCalls = field(init=False)
    accounts: Mapping[Role, Account] = field(default_factory=lambda: {role: Account() for role in Role}, init=False)
    lengths: tuple[float, float] | None = field(default=None, init=False)  # shortest and longest document vector so far
    _spaces: dict[Role, Space | None] = field(default_factory=dict, init=False)
    _uncached: dict[Path, Space] = field(default_factory=dict, init=False)
    _elsewhere: KeyIndex = field(default_factory=KeyIndex, init=False)
    _writable: list[Space] = field(default_factory=list, init=False)
    _counted: dict[tuple[Role, Space], Places] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.calls = Calls(self.policy, self.budget, self.offline, self.workers, self.rate_limit)
        self.single = SingleCalls(self, self.time_hosted)

    @property
    def usage(self) -> Mapping[Role, Usage]:
        """Usage so far."""
        return {role: account.usage for role, account in self.accounts.items()}

    @property
    def warnings(self) -> tuple[Fact, ...]:
        """Warnings about the provider's answers so far."""
        changed = [fact("changed_vectors")] if self.single.changed else []
        return (*changed, *service_warnings(self.provider))

    def fit(self, documents: Sequence[str]) -> None:
        """Fits a provider that learns from the corpus."""
        if isinstance(self.provider, Fitted):
            self.provider.fit(documents)

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Unit vectors in the order of the texts. Only those missing from the cache are requested."""
        wanted = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        with self._progress(role, len(self.missing(wanted, role))) as advance:
            raw, _ = self.embed_raw(list(wanted), role, advance)
        if len(wanted) < len(texts):
            raw = raw[[wanted[text] for text in texts]]
        return self._unit(raw) if role is Role.DOCUMENT else unit(raw, self.provider.card.name)

    def embed_corpus(self, blocks: Iterable[Sequence[str]], total: int, scratch: Path) -> VectorRows:
        """Embeds the documents block by block into the cache or, without one, into `scratch`."""
        space, role = self.corpus_space(scratch), Role.DOCUMENT
        if space is None and isinstance(self.provider, InFiles):
            self.provider.ready()
            with self._progress(role, total) as advance:
                rows = rows_in_files(self.provider, blocks, total, self._unit, advance)
            self.accounts[role].add(Usage(asked=total))
            return rows
        assert space is not None
        blockwise: list[Stored] = []
        with self._progress(role, total) as advance:
            for block in blocks:
                wanted = list(dict.fromkeys(block))
                stored, _ = self._store(wanted, role, space, advance, total)
                advance(len(block) - int(np.count_nonzero(stored["asked"])))
                if len(wanted) < len(block):
                    number = {text: at for at, text in enumerate(wanted)}
                    stored = stored[[number[text] for text in block]]
                blockwise.append(stored)
        self._count(blockwise, role, space)
        places = np.concatenate([stored["place"] for stored in blockwise])
        return VectorRows(space, places, (self._unit,), space.dimensions or 0)

    def corpus_space(self, scratch: Path) -> Space | None:
        """Where the documents' vectors go; None if they are already in files."""
        space = self.space(Role.DOCUMENT)
        if space is None and not isinstance(self.provider, InFiles):
            uncached = VectorCache(scratch, remedy=TEMPORARY).space({"dimensions": None})
            space = self._uncached.setdefault(scratch, uncached)
        return space

    def note_asked(self, texts: Sequence[str]) -> None:
        """Counts texts that workers request in this run as requested, not as cached."""
        keys = keys_of(texts)
        self._elsewhere.add(keys, np.zeros(len(keys), dtype=np.int64))

    def embed_batches(
        self, plan: Sequence[list[str]], role: Role, space: Space, advance: Advance, to_come: int = 0
    ) -> None:
        """Embeds prepared batches, so that a part of a corpus uses the same batches as the whole.

        `to_come` are the texts of all plans.
        """
        texts = [text for batch in plan for text in batch]
        keys = keys_of(texts)
        asked = space.find(keys) < 0
        advance(len(keys) - int(np.count_nonzero(asked)))
        if asked.any():
            self._make_sure(space, int(np.count_nonzero(asked)), to_come, ready=True)
            parts = [Request(texts[a:b], keys[a:b]).rows(asked[a:b]) for a, b in _bounds(plan) if asked[a:b].any()]
            self._obtain(parts, role, space, advance)
        stored = self._note_tokens(texts, space.find(keys), asked, role, space)
        self.accounts[role].add(_usage_of([stored], _NONE)[0])

    @property
    def asks_anew(self) -> bool:
        """Whether queries are embedded in every round: calls are free, and their speed is measured."""
        return self.provider.local or (self.provider.free and not self.offline)

    def embed_timed(self, text: str, role: Role) -> TimedVector:
        """One text on its own, and how long it took."""
        return self.single.embed(text, role)

    def missing(self, texts: Iterable[str], role: Role) -> list[str]:
        """The texts that a run would have to request, for the dry run."""
        space, wanted = self.space(role), list(dict.fromkeys(texts))
        return wanted if space is None else list(compress(wanted, space.find(keys_of(wanted)) < 0))

    def close(self) -> None:
        """Closes the cache's shards and the provider's sessions."""
        for space in filter(None, self._spaces.values()):
            space.close()
        self.provider.close()

    def space(self, role: Role) -> Space | None:
        """The cache's space for a role; None if nothing is stored."""
        if self.cache is None:
            return None
        if role not in self._spaces:
            key = cache_key(self.provider, role)
            self._spaces[role] = None if key is None else self.cache.space(key)
        return self._spaces[role]

    @property
    def at_once(self) -> int:
        """How many batches a kill would lose. Local calls cost nothing."""
        return 0 if self.provider.local else self.workers

    @property
    def _unit(self) -> NotingUnit:
        return NotingUnit(self.provider.card.name, self._note_lengths)

    def _note_lengths(self, shortest: float, longest: float) -> None:
        known = self.lengths or (shortest, longest)
        self.lengths = min(known[0], shortest), max(known[1], longest)

    def _progress(self, role: Role, total: int) -> AbstractContextManager[Advance]:
        return self.progress(f"{self.provider.card.name}: {role.value} vectors", total)

    def embed_raw(self, texts: list[str], role: Role, advance: Advance) -> tuple[Vectors, int | None]:
        """The provider's vectors for distinct texts, and the time of the last request, if any."""
        if (space := self.space(role)) is None:
            self.accounts[role].add(Usage(asked=len(texts)))
            parts, took = self._obtain(self._requests(texts, keys_of(texts)), role, None, advance)
            return np.concatenate(parts), took
        stored, took = self._store(texts, role, space, advance)
        if took is None:  # another process delivered the missing ones
            stored["asked"] = False
        self._count([stored], role, space)
        return space.take(stored["place"]), took

    def _store(
        self, texts: list[str], role: Role, space: Space, advance: Advance, total: int = 0
    ) -> tuple[Stored, int | None]:
        """Stores distinct texts in the space. The first missing one triggers the disk check."""
        keys, took = keys_of(texts), None
        places = space.find(keys)
        asked = places < 0
        if asked.any():
            missing = list(compress(texts, asked))
            self._make_sure(space, len(missing), total, ready=bool(total) and not self.offline)
            _, took = self._obtain(self._requests(missing, keys[asked]), role, space, advance)
            places = space.find(keys)
        asked |= self._elsewhere.find(keys) >= 0
        return self._note_tokens(texts, places, asked, role, space), took

    def _make_sure(self, space: Space, missing: int, total: int, *, ready: bool) -> None:
        """Checks once, before the first request, that everything fits. If dimensions are unknown, after it."""
        if space in self._writable:
            return
        if ready:
            self.provider.ready()
        dimensions = space.dimensions or self.provider.card.dimensions
        space.check_writable(missing if dimensions is None else max(missing, total - len(space)), dimensions)
        if dimensions is not None:
            self._writable.append(space)

    def _note_tokens(
        self, texts: Sequence[str], places: Places, asked: NDArray[Any], role: Role, space: Space
    ) -> Stored:
        """Adds the tokens of each text: an estimate if the server did not count, which is stored as 0."""
        stored = np.empty(len(places), _STORED)
        stored["place"], stored["asked"], stored["tokens"] = places, asked, space.tokens_of(places)
        stored["estimated"] = unknown = stored["tokens"] == 0
        if unknown.any():
            stored["tokens"][unknown] = token_estimates(list(compress(texts, unknown)), self.provider.card.prompt(role))
        return stored

    def _count(self, blockwise: Sequence[Stored], role: Role, space: Space) -> None:
        """Counts each text once, however many rows request it."""
        usage, self._counted[role, space] = _usage_of(blockwise, self._counted.get((role, space), _NONE))
        self.accounts[role].add(usage)

    def _requests(self, texts: list[str], keys: Keys) -> list[Request]:
        """Missing texts in batches."""
        parts = list(batches(texts, self.provider.card, self.at_once))
        return [Request(part, keys[start:end]) for part, (start, end) in zip(parts, _bounds(parts), strict=True)]

    def _obtain(
        self, requests: list[Request], role: Role, space: Space | None, advance: Advance
    ) -> tuple[list[Vectors], int | None]:
        """Puts these into the space, or returns them if there is none, with the time of the last request."""
        came, took, service = dict[str, Vectors](), None, vector_service(self.provider, role)
        for done, got in self.calls.obtain(service, space, requests, self.accounts[role]):
            advance(done)
            if got is not None:
                took = got.nanoseconds
                if space is None:
                    came[got.texts[0]] = got.values
        return [came[request.texts[0]] for request in requests if came], took


def _bounds(parts: Sequence[list[str]]) -> Iterator[tuple[int, int]]:
    """Where each part begins and ends among all texts."""
    return pairwise(accumulate(map(len, parts), initial=0))


def _usage_of(blockwise: Sequence[Stored], before: Places) -> tuple[Usage, Places]:
    """The usage of texts not counted `before`, with what earlier runs paid for them; and all texts counted so far.

    Tokens of texts requested in this run are counted when the answers arrive.
    """
    stored = np.concatenate(blockwise)
    distinct, first = np.unique(stored["place"], return_index=True)
    new = ~np.isin(distinct, before)
    cached = stored[first[new & ~np.isin(distinct, stored["place"][stored["asked"]])]]
    usage = Usage(
        asked=int(np.count_nonzero(new)),
        cached=len(cached),
        tokens=float(cached["tokens"].sum(dtype=np.float64)),
        estimated=bool(cached["estimated"].any()),
    )
    return usage, np.union1d(before, distinct) if new.any() else before


class TimedVector(NamedTuple):
    """A text's vector, its call's nanoseconds in this run, and the time of an earlier run's call."""

    vector: Vectors
    nanoseconds: int | None = None
    kept: CallTime | None = None


class SingleCalls:
    """Texts embedded one by one for their latency: which calls are made, and whose time is shown.

    Local providers are called every time and not counted, free ones in every round. A paid one is called once, plus
    `repeats` times to time it.
    """

    def __init__(self, embedder: Embedder, repeats: int) -> None:
        self.changed = False  # a repeated call returned another vector
        self._embedder, self._repeats = embedder, repeats
        self._vectors: dict[tuple[Role, str], Vectors] = {}
        self._times: dict[tuple[Role, str, int | None], int] = {}  # of paid calls, shared by the rows of a round
        self._round: int | None = None
        self._repeated = 0

    def begin_round(self, number: int) -> None:
        """Calls before the first round are not samples of warm calls."""
        self._round = number

    def embed(self, text: str, role: Role) -> TimedVector:
        """The vector, with its call's time in this round, or else that of the call that first delivered it."""
        embedder, now, took = self._embedder, (role, text, self._round), None
        if embedder.provider.local:
            return self._ask(text, role, Account())
        if (role, text) not in self._vectors:
            raw, took = embedder.embed_raw([text], role, lambda _: None)
            self._vectors[role, text] = unit(raw, embedder.provider.card.name)[0]
            self._keep(text, role, took)
        vector = self._vectors[role, text]
        if embedder.asks_anew:
            return TimedVector(vector, took) if took is not None else self._ask_again(text, role)
        if took is None and now not in self._times and self._may_repeat():
            self._repeated += self._round is not None
            took = self._ask_again(text, role).nanoseconds
        if took is not None:
            self._times[now] = took
        space = embedder.space(role)
        kept = space.call_time(text) if space is not None and self._round == 0 and now not in self._times else None
        return TimedVector(vector, self._times.get(now), kept)

    def _may_repeat(self) -> bool:
        """Before the rounds, one call may repeat, to open the connection for the following ones."""
        if self._round is None:
            return self._repeats > 0 and not self._times
        return self._repeated < self._repeats

    def _ask_again(self, text: str, role: Role) -> TimedVector:
        """Repeats the call for a text: one more request and its price, but no further text or token of the row."""
        account = Account()
        found = self._ask(text, role, account)
        self._embedder.accounts[role].add(replace(account.usage, tokens=0.0, truncated=0, estimated=False))
        self._keep(text, role, found.nanoseconds)
        self.changed |= bool(self._vectors[role, text] @ found.vector < SAME_FROM)
        return found

    def _ask(self, text: str, role: Role, account: Account) -> TimedVector:
        provider = self._embedder.provider
        got = self._embedder.calls.send(vector_service(provider, role), [text], account)
        return TimedVector(unit(got.values, provider.card.name)[0], got.nanoseconds)

    def _keep(self, text: str, role: Role, took: int | None) -> None:
        """Stores the time with the vector for later runs, except that of the cold call."""
        space = self._embedder.space(role)
        if took is not None and space is not None and self._round is not None:
            space.note_time(text, call_time(took))
