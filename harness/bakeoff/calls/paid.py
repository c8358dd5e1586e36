"""The one way to make a paid or slow call: cache, claim, budget, retry, rate limit, account, store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain, compress, islice, repeat
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from bakeoff_providers import stopping
from bakeoff_providers.errors import AnswerUnusable, BakeoffError, EmbeddingFailed, StoreError, Unavailable
from numpy.typing import NDArray

from bakeoff.calls.budget import Budget
from bakeoff.calls.key_index import Keys, Places
from bakeoff.calls.locks import Claims
from bakeoff.calls.retry import RateLimit, RetryPolicy, call
from bakeoff.core.clock import now

A = TypeVar("A")
B = TypeVar("B")
V = TypeVar("V")
V_contra = TypeVar("V_contra", contravariant=True)
Tokens = tuple[float, float]  # of a request, and of its answer if that is charged


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of requests, answers, tokens and dollars for a service.

    `asked` and `cached` are texts, pairs or questions. `requests` were sent in this run, failed ones included.
    `answered` requests brought an answer and are paid for, including `unusable` ones. `tokens` include what earlier
    runs paid for cached values; `usd` does not. `usd` is None if no price is known.
    """

    asked: int = 0
    cached: int = 0
    requests: int = 0
    retries: int = 0
    answered: int = 0
    unusable: int = 0
    truncated: int = 0
    tokens: float = 0.0
    answer_tokens: float = 0.0
    estimated: bool = False
    usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        sums = {part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(self)[:-2]}
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(**sums, estimated=self.estimated or other.estimated, usd=usd)


class Account:
    """Usage so far, shared by threads."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._lock = threading.Lock()

    def add(self, usage: Usage) -> None:
        """Adds this usage."""
        with self._lock:
            self.usage += usage

    def hand_over(self) -> Usage:
        """The usage since the last call, to be added to another account."""
        with self._lock:
            usage, self.usage = self.usage, Usage()
        return usage


class Sent(NamedTuple):
    """A service's unchecked answer. Tokens are None if the server did not count."""

    answer: Any
    tokens: int | None
    answer_tokens: float | None = 0.0
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Service(Generic[V]):
    """A service that returns a value for each text."""

    name: str
    local: bool  # runs here, free of charge: works offline, nothing is claimed
    lacks: Callable[[int], str]  # what is missing from the cache, with its verb
    estimate: Callable[[Sequence[str]], Tokens]
    price: Callable[[Tokens], float | None]  # of one request; None if unknown
    send: Callable[[list[str]], Sent]  # one attempt
    read: Callable[[Any, list[str]], V]  # raises if the answer is unusable; CallFailed makes it retry


class Keep(Protocol[V_contra]):
    """Paid values of one service on disk, in `embedding/space.py` or, for chats, in `extensions/testsets`."""

    claims: Claims  # requested right now, by process and thread

    def find(self, keys: Keys, /) -> Places:
        """The place of each key's value; −1 if missing."""

    def refresh(self) -> None:
        """Reads what other processes have written since the last call."""

    def check_writable(self, count: int, /) -> None:
        """Checks that this many values can be stored, before anything is paid for."""

    def put(self, texts: Sequence[str], values: V_contra, tokens: int | None, keys: Keys, /) -> None:
        """Stores the values. They are on disk when this returns."""


class Request(NamedTuple):
    """Texts requested together, and their keys."""

    texts: list[str]
    keys: Keys

    def rows(self, which: NDArray[np.bool_]) -> Request:
        """A subset."""
        return Request(list(compress(self.texts, which)), self.keys[which])


class Got(NamedTuple, Generic[V]):
    """Values paid for now, and the time of the successful attempt."""

    texts: list[str]
    values: V
    tokens: int | None
    nanoseconds: int


@dataclass(slots=True)
class Calls:
    """The retry policy, budget and rate limit of one service."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    offline: bool = False
    workers: int = 1
    rate_limit: RateLimit = field(default_factory=RateLimit)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.rate_limit.sleep = self.policy.sleep

    def obtain(
        self, service: Service[V], keep: Keep[V] | None, requests: Sequence[Request], account: Account
    ) -> Iterator[tuple[int, Got[V] | None]]:
        """Requests what is missing and stores it as it arrives. Yields how many texts are done, and the new values.

        Texts that another process or thread is requesting are waited for. What it does not deliver is requested here.
        """
        if requests:
            self._check_online(service, len(requests[0].texts))
            if keep is not None:
                with self._lock:
                    keep.check_writable(sum(len(request.texts) for request in requests))
        while requests:
            elsewhere: list[Request] = []
            ask = partial(self._ask, service, keep, account, elsewhere)
            together = len(requests) > 1 and not service.local
            yield from as_they_come(ask, requests, self.workers) if together else map(ask, requests)
            requests, done = [], 0
            for theirs in elsewhere:
                assert keep is not None
                keep.claims.wait(theirs.keys)
                with self._lock:
                    keep.refresh()
                    absent = keep.find(theirs.keys) < 0
                done += int(np.count_nonzero(~absent))
                requests += [theirs.rows(absent)] if absent.any() else []
            if done:
                yield done, None

    def send(self, service: Service[V], texts: list[str], account: Account) -> Got[V]:
        """One request with retries. The caller stores the result."""
        self._check_online(service, len(texts))
        retries = chain([0], repeat(1))
        return call(lambda: self._attempt(service, texts, account, next(retries)), self.policy, self.rate_limit)[0]

    def count(self, service: Service[V], keep: Keep[V] | None, request: Request) -> Usage:
        """The usage of a request, estimated from the length of its texts. Sends nothing."""
        missing = request if keep is None else request.rows(keep.find(request.keys) < 0)
        usage = Usage(asked=len(request.texts), cached=len(request.texts) - len(missing.texts))
        if not missing.texts:
            return usage
        tokens, written = guess = service.estimate(missing.texts)
        price = service.price(guess)
        return usage + Usage(requests=1, tokens=tokens, answer_tokens=written, estimated=True, usd=price)

    def _ask(
        self, service: Service[V], keep: Keep[V] | None, account: Account, elsewhere: list[Request], request: Request
    ) -> tuple[int, Got[V] | None]:
        """Requests what no other process requests. The rest goes to `elsewhere`."""
        if keep is None or service.local:
            got = self.send(service, request.texts, account)
            if keep is not None:
                keep.put(got.texts, got.values, got.tokens, request.keys)
            stopping.check()  # Ctrl-C may have come while the answer was waited for
            return len(request.texts), got
        taken = np.array(keep.claims.take(request.keys))
        try:
            with self._lock:
                keep.refresh()
                absent = keep.find(request.keys) < 0
            mine, theirs = request.rows(taken & absent), request.rows(~taken & absent)
            came = self.send(service, mine.texts, account) if mine.texts else None
            if came is not None:
                with self._lock:
                    keep.put(came.texts, came.values, came.tokens, mine.keys)
        finally:
            keep.claims.release(request.keys[taken])
        stopping.check()
        elsewhere += [theirs] if theirs.texts else []
        return len(request.texts) - len(theirs.texts), came

    def _attempt(self, service: Service[V], texts: list[str], account: Account, retries: int) -> Got[V]:
        """One attempt, with its price reserved. An answer that arrived is paid for, usable or not."""
        guess, usd, failed = service.estimate(texts), None, None
        price = service.price(guess)
        if self.budget is not None:
            self.budget.reserve(price, service.name)
        try:
            account.add(Usage(requests=1, retries=retries))
            start = now()
            try:
                with np.errstate():  # what a plug-in sets is its own
                    sent = service.send(texts)
            except (EmbeddingFailed, StoreError, AnswerUnusable) as error:
                sent, failed = Sent(None, None, None), error
            nanoseconds = now() - start
            tokens = guess[0] if sent.tokens is None else sent.tokens
            written = guess[1] if sent.answer_tokens is None else sent.answer_tokens
            usd = service.price((tokens, written))
        finally:
            if self.budget is not None:
                self.budget.settle(price or 0.0, usd or 0.0)
        estimated = sent.tokens is None or sent.answer_tokens is None
        used = Usage(truncated=sent.truncated, tokens=tokens, answer_tokens=written, estimated=estimated)
        account.add(used + Usage(answered=1, usd=usd))
        try:
            if failed is not None:
                raise failed
            return Got(texts, service.read(sent.answer, texts), sent.tokens, nanoseconds)
        except BakeoffError:
            account.add(Usage(unusable=1))
            raise

    def _check_online(self, service: Service[V], count: int) -> None:
        if self.offline and not service.local:
            raise Unavailable(f"--offline, and {service.lacks(count)} not in the cache")


def as_they_come(work: Callable[[A], B], items: Iterable[A], workers: int) -> Iterator[B]:
    """Results of a few threads in the order of arrival. The first failure cancels what has not started."""
    waiting = iter(items)
    running: set[Future[B]] = set()
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            while True:
                running |= {pool.submit(work, item) for item in islice(waiting, 2 * workers - len(running))}
                if not running:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done
                running -= done
                for future in done:
                    yield future.result()
        except BaseException as error:
            if stopping.ends_run(error) and not isinstance(error, GeneratorExit):
                stopping.stop()  # Ctrl-C: wakes up threads that wait for their next attempt
            for future in running:
                future.cancel()
            raise
