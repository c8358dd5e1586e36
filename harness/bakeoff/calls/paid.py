"""The one way to make a call that costs money or time: cache, claim, budget, retry, rate limit, account, keep."""

from __future__ import annotations

import threading
import time
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

A = TypeVar("A")
B = TypeVar("B")
V = TypeVar("V")
V_contra = TypeVar("V_contra", contravariant=True)
Tokens = tuple[float, float]  # of a request, and of its answer where that is charged


@dataclass(frozen=True, slots=True)
class Usage:
    """What a service was asked for, counted.

    `asked` and `cached` are texts, pairs or questions. `requests` were sent in this run, failed ones included;
    `answered` of them brought an answer and are paid for, the `unusable` too. `tokens` include what earlier runs paid
    for what is in the cache, `usd` does not; it is None where no price is known.
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
    """The usage so far, counted by several threads."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._lock = threading.Lock()

    def add(self, usage: Usage) -> None:
        """Counts this besides."""
        with self._lock:
            self.usage += usage

    def hand_over(self) -> Usage:
        """What was counted since the last time, for somebody else's account."""
        with self._lock:
            usage, self.usage = self.usage, Usage()
        return usage


class Sent(NamedTuple):
    """A service's answer, not yet looked at; tokens are None where nobody counted."""

    answer: Any
    tokens: int | None
    answer_tokens: float | None = 0.0
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Service(Generic[V]):
    """Something that is asked for a value of each text."""

    name: str
    local: bool  # runs here, for nothing: it is asked offline too, and nothing is claimed
    lacks: Callable[[int], str]  # what is not in the cache, with its verb
    estimate: Callable[[Sequence[str]], Tokens]
    price: Callable[[Tokens], float | None]  # of one request; None where no price is known
    send: Callable[[list[str]], Sent]  # one attempt
    read: Callable[[Any, list[str]], V]  # raises where an answer can't be used; CallFailed has it asked for again


class Keep(Protocol[V_contra]):
    """What was paid for, on disk. It belongs to one service; each process appends to files of its own."""

    claims: Claims  # what processes and threads are asking for right now

    def find(self, keys: Keys, /) -> Places:
        """Where the value of each key is; −1 for those that are not here."""

    def refresh(self) -> None:
        """Takes in what other processes have written since the last look."""

    def check_writable(self, count: int, /) -> None:
        """Before anything is paid for: so many values can be kept."""

    def put(self, texts: Sequence[str], values: V_contra, tokens: int | None, keys: Keys, /) -> None:
        """On disk when it returns."""


class Request(NamedTuple):
    """Texts that are asked for together, and the keys of their values."""

    texts: list[str]
    keys: Keys

    def rows(self, which: NDArray[np.bool_]) -> Request:
        """Some of them."""
        return Request(list(compress(self.texts, which)), self.keys[which])


class Got(NamedTuple, Generic[V]):
    """The values of these texts, paid for now, and the time of the attempt that brought them."""

    texts: list[str]
    values: V
    tokens: int | None
    nanoseconds: int


@dataclass(slots=True)
class Calls:
    """The policy, the budget and the rate limit of one service."""

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
        """Asks for what is not kept, and keeps it as it arrives; says how many texts are there now, and what came.

        What another process or thread is asking for is waited for. What it does not bring is asked for here.
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
        """One request, attempted until it is answered, that is kept nowhere: the caller keeps what came."""
        self._check_online(service, len(texts))
        retries = chain([0], repeat(1))
        return call(lambda: self._attempt(service, texts, account, next(retries)), self.policy, self.rate_limit)[0]

    def count(self, service: Service[V], keep: Keep[V] | None, request: Request) -> Usage:
        """What a request would take, by the length of its texts; nothing is asked."""
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
        """What nobody else asks for; the rest goes to `elsewhere`."""
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
        """Its price is reserved while it is made. An answer that arrived is paid for, whether it can be used or not."""
        guess, usd, failed = service.estimate(texts), None, None
        price = service.price(guess)
        if self.budget is not None:
            self.budget.reserve(price, service.name)
        try:
            account.add(Usage(requests=1, retries=retries))
            start = time.perf_counter_ns()
            try:
                with np.errstate():  # what a plug-in sets is its own
                    sent = service.send(texts)
            except (EmbeddingFailed, StoreError, AnswerUnusable) as error:
                sent, failed = Sent(None, None, None), error
            nanoseconds = time.perf_counter_ns() - start
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
    """The results of a few threads, in the order in which they come; the first failure stops what has not begun."""
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
                stopping.stop()  # Ctrl-C: those that wait for their next attempt stop waiting
            for future in running:
                future.cancel()
            raise
