"""Latency: raw samples, their percentiles, and reasons to distrust them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Percentiles, Timing
from bakeoff.core.machine import Machine

T = TypeVar("T")

WARM_UP = 3  # discarded calls after the cold one
SAMPLES_FOR = {50: 5, 95: 60, 99: 300}  # a percentile needs at least this many samples
SCATTER, FEWEST_SCATTERED = 5, 20  # noisy: p95 above 5 × p50, given at least 20 samples


class TimeLimits(NamedTuple):
    """Time limits in seconds: for an answer, a call and an index."""

    query: float = 60.0
    build: float = 14_400.0


class _Detours(threading.local):
    nanoseconds = 0


_detours = _Detours()
_limit: ContextVar[float | None] = ContextVar("limit", default=None)


def now() -> int:
    """The only clock used for timing, in nanoseconds. It excludes the time to reach a child process and back."""
    return time.perf_counter_ns() - _detours.nanoseconds


def leave_out(nanoseconds: int) -> None:
    """Time of this thread that belongs to no call: a message's way to another process and back."""
    _detours.nanoseconds += nanoseconds


@contextmanager
def limit_calls(seconds: float) -> Iterator[None]:
    """Ends interruptible calls of this thread after this many seconds, within the block."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def call_limit() -> float | None:
    """The seconds after which a call of this thread is to be ended."""
    return _limit.get()


def time_call(call: Callable[[], T]) -> tuple[T, int]:
    """The call's answer, and how long it took in nanoseconds."""
    start = now()
    answer = call()
    return answer, now() - start


def percentiles(samples_ns: Sequence[int], limit_ns: int | None = None) -> Percentiles:
    """The percentiles that this many samples support. Samples beyond the limit count as the limit."""
    n = len(samples_ns)
    if limit_ns is not None:
        samples_ns = [min(sample, limit_ns) for sample in samples_ns]
    values = {f"p{q}": _percentile(samples_ns, q) / 1e6 for q, needed in SAMPLES_FOR.items() if n >= needed}
    return Percentiles(n, **values)


def _lower_bounds(samples_ns: Sequence[int], limit_ns: int) -> list[str]:
    """The percentiles that a sample beyond the limit has a part in: the true ones may be higher."""
    n, beyond = len(samples_ns), sum(sample >= limit_ns for sample in samples_ns)
    return [f"p{q}" for q, needed in SAMPLES_FOR.items() if n >= needed and (n - 1) * q / 100 > n - beyond - 1]


def _percentile(samples: Sequence[int], q: int) -> float:
    import numpy as np  # here because results are read without numpy

    return float(np.percentile(samples, q))


def busy(machine: Machine, load: float) -> Fact | None:
    """A fact if other work slowed the machine down, else None."""
    return fact("busy", load=load, cores=machine.cores) if machine.cores and load > machine.cores else None


def doubts(timing: Timing, machine: Machine, untimed: Fact) -> list[Fact]:
    """Reasons why this row's timing is unreliable; empty if it is reliable.

    `untimed` is the reason to give if no answer was timed as a whole.
    """
    reasons = [reason] if (reason := busy(machine, max(machine.load_before, machine.load_after))) else []
    if timing.limit_ns and (bounds := _lower_bounds(timing.total_ns, timing.limit_ns)):
        reasons.append(fact("censored_times", seconds=timing.limit_ns / 1e9, percentiles=bounds))
    if timing.search_ns and len(timing.search_ns) < SAMPLES_FOR[95]:
        reasons.append(fact("few_samples", samples=len(timing.search_ns), needed=SAMPLES_FOR[95]))
    for stage, samples in (("embedding", timing.embed_ns), ("search", timing.search_ns)):
        if len(samples) >= FEWEST_SCATTERED and _percentile(samples, 95) > SCATTER * _percentile(samples, 50):
            reasons.append(fact("scattered_times", stage=stage, times=SCATTER))
    if timing.search_ns and not timing.total_ns:
        reasons.append(untimed)
    return reasons
