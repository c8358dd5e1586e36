"""The only retry policy. SDKs' own retries are off, so that every request is counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import tenacity
from bakeoff_providers import stopping
from bakeoff_providers.errors import AnswerUnusable, CallFailed

T = TypeVar("T")


class Unanswered(AnswerUnusable):
    """The server answered in time, but not what was asked. It is not overloaded, so retry at once."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and with which delays a failed call is retried."""

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0
    sleep: Callable[[float], None] = stopping.sleep

    def wait(self, state: tenacity.RetryCallState) -> float:
        """Exponential backoff with jitter, at least what the server asked for. No wait after an unusable answer."""
        if state.outcome and isinstance(state.outcome.exception(), Unanswered):
            return 0.0
        backoff = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)(state)
        return max(backoff, _retry_after(state) or 0.0)

    def worthwhile(self, error: BaseException) -> bool:
        """Whether a retry may help: the failure is temporary, and the requested wait is not too long."""
        return isinstance(error, CallFailed) and error.retryable and (error.retry_after or 0.0) <= self.longest_wait


def _retry_after(state: tenacity.RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, CallFailed) else None


@dataclass(slots=True)
class RateLimit:
    """One provider's rate limit, learned from its 429s. While one call waits, all do."""

    sleep: Callable[[float], None] = stopping.sleep
    _until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pause(self, seconds: float) -> None:
        """Blocks all calls for this long."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)

    def wait(self) -> None:
        """Waits until calls are allowed again."""
        with self._lock:
            wait = self._until - time.monotonic()
        if wait > 0:
            self.sleep(wait)


def call(make: Callable[[], T], policy: RetryPolicy, rate_limit: RateLimit) -> tuple[T, int]:
    """Makes the call under the policy. Returns only the successful attempt's nanoseconds."""

    def before_sleep(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, CallFailed) and error.status == 429 and state.next_action:
            rate_limit.pause(state.next_action.sleep)

    def attempt() -> tuple[T, int]:
        rate_limit.wait()
        stopping.check()
        start = time.perf_counter_ns()
        return make(), time.perf_counter_ns() - start

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(policy.attempts),
        wait=policy.wait,
        retry=tenacity.retry_if_exception(policy.worthwhile),
        before_sleep=before_sleep,
        sleep=policy.sleep,
        reraise=True,
    )
    return retrying(attempt)
