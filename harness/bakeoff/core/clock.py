"""Latency that can be trusted, or that says why not: raw samples, their percentiles and their doubts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Percentiles, Timing
from bakeoff.core.machine import Machine

T = TypeVar("T")

now = time.perf_counter_ns  # the one clock of everything that is timed

WARM_UP = 3  # calls that are made and thrown away after the cold one
SAMPLES_FOR = {50: 5, 95: 60, 99: 300}  # fewer samples than this say nothing about the percentile
SCATTER, FEWEST_SCATTERED = 5, 20  # p95 over so many times p50, of at least so many samples


def time_call(call: Callable[[], T]) -> tuple[T, int]:
    """The call's answer and its nanoseconds."""
    start = now()
    answer = call()
    return answer, now() - start


def percentiles(samples_ns: Sequence[int]) -> Percentiles:
    """The percentiles that this many samples support."""
    n = len(samples_ns)
    values = {f"p{q}": _percentile(samples_ns, q) / 1e6 for q, needed in SAMPLES_FOR.items() if n >= needed}
    return Percentiles(n, **values)


def _percentile(samples: Sequence[int], q: int) -> float:
    import numpy as np  # not above: a result is read without it

    return float(np.percentile(samples, q))


def busy(machine: Machine, load: float) -> Fact | None:
    """That other work had a part in the times; None where it had none."""
    return fact("busy", load=load, cores=machine.cores) if machine.cores and load > machine.cores else None


def doubts(timing: Timing, machine: Machine, untimed: Fact) -> list[Fact]:
    """Why this row's timing can't be trusted; nothing when it can.

    `untimed` says what was there already, for the case that no answer was timed whole.
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
