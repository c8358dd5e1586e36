"""Latency: raw samples, their percentiles, and reasons to distrust them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Percentiles, Timing
from bakeoff.core.machine import Machine

T = TypeVar("T")

now = time.perf_counter_ns  # the only clock used for timing

WARM_UP = 3  # discarded calls after the cold one
SAMPLES_FOR = {50: 5, 95: 60, 99: 300}  # a percentile needs at least this many samples
SCATTER, FEWEST_SCATTERED = 5, 20  # noisy: p95 above 5 × p50, given at least 20 samples


def time_call(call: Callable[[], T]) -> tuple[T, int]:
    """The call's answer, and how long it took in nanoseconds."""
    start = now()
    answer = call()
    return answer, now() - start


def percentiles(samples_ns: Sequence[int]) -> Percentiles:
    """The percentiles that this many samples support."""
    n = len(samples_ns)
    values = {f"p{q}": _percentile(samples_ns, q) / 1e6 for q, needed in SAMPLES_FOR.items() if n >= needed}
    return Percentiles(n, **values)


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
    if timing.search_ns and len(timing.search_ns) < SAMPLES_FOR[95]:
        reasons.append(fact("few_samples", samples=len(timing.search_ns), needed=SAMPLES_FOR[95]))
    for stage, samples in (("embedding", timing.embed_ns), ("search", timing.search_ns)):
        if len(samples) >= FEWEST_SCATTERED and _percentile(samples, 95) > SCATTER * _percentile(samples, 50):
            reasons.append(fact("scattered_times", stage=stage, times=SCATTER))
    if timing.search_ns and not timing.total_ns:
        reasons.append(untimed)
    return reasons
