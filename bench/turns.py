"""Jobs in turns, so that a busy spell of the machine hits all alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Turns(NamedTuple):
    """By job: the least wall and CPU time, in seconds, and the last answer."""

    wall: dict[str, float]
    cpu: dict[str, float]
    answers: dict[str, Any]


def in_turns(jobs: Mapping[str, Callable[[], Any]], rounds: int) -> Turns:
    """Every round in the other direction: none is always after the one that leaves the caches full."""
    turns = Turns(dict.fromkeys(jobs, float("inf")), dict.fromkeys(jobs, float("inf")), {})
    for number in range(rounds):
        for name in list(jobs) if number % 2 == 0 else list(jobs)[::-1]:
            gc.collect()
            start, start_cpu = time.perf_counter(), time.process_time()
            turns.answers[name] = jobs[name]()
            turns.wall[name] = min(turns.wall[name], time.perf_counter() - start)
            turns.cpu[name] = min(turns.cpu[name], time.process_time() - start_cpu)
    return turns
