"""Concurrent clients: closed loops, where each waits for its answer, and open loops at a fixed rate."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bakeoff.core import clock

LATE_NS = 1_000_000  # a request that starts later than this after it is due is late
DROP_AFTER = 1.0  # seconds after it is due


@dataclass(slots=True)
class ClientSamples:
    """The measurements of one client."""

    samples_ns: list[int] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    late: int = 0
    dropped: int = 0


Search = Callable[[int], None]  # takes the number of the request


def run_closed_loop(search: Search, clients: int, seconds: float) -> tuple[list[ClientSamples], float]:
    """Each client sends its next request once it has an answer. Returns measurements and seconds."""
    return run_closed_loop_during(search, clients, lambda: time.sleep(seconds))


def run_closed_loop_during(search: Search, clients: int, work: Callable[[], None]) -> tuple[list[ClientSamples], float]:
    """The same while `work` runs in this thread."""
    end = threading.Event()

    def client(number: int, answers: ClientSamples) -> None:
        for request in itertools.count(number, clients):
            if end.is_set():
                return
            start = clock.now()
            _time_search(search, request, start, answers)

    def meanwhile() -> None:
        try:
            work()
        finally:
            end.set()

    return _run_clients(client, clients, meanwhile)


def run_open_loop(
    search: Search, rate: float, clients: int, seconds: float, *, seed: int = 42, drop_after: float = DROP_AFTER
) -> tuple[list[ClientSamples], float]:
    """Requests are due at random times at this rate. Latency counts from then, even if all clients are busy."""
    gaps = np.random.default_rng(seed).exponential(1 / rate, size=int(rate * seconds * 2) + 10)
    due = np.cumsum(gaps)
    due = due[due < seconds]
    requests = itertools.count()
    begin = clock.now() + 50_000_000

    def client(number: int, answers: ClientSamples) -> None:  # noqa: ARG001 - any client takes the next request
        while (request := next(requests)) < len(due):
            intended = begin + int(due[request] * 1e9)
            wait = (intended - clock.now()) / 1e9
            if wait > 0:
                time.sleep(wait)
            behind = clock.now() - intended
            if behind > drop_after * 1e9:
                answers.dropped += 1
                continue
            answers.late += behind > LATE_NS
            _time_search(search, request, intended, answers)

    return _run_clients(client, clients, lambda: None)


def _time_search(search: Search, request: int, since: int, answers: ClientSamples) -> None:
    try:
        search(request)
        answers.samples_ns.append(clock.now() - since)
    except Exception as error:  # any failure under load is a result
        answers.errors[type(error).__name__] += 1


def _run_clients(
    client: Callable[[int, ClientSamples], None], clients: int, meanwhile: Callable[[], None]
) -> tuple[list[ClientSamples], float]:
    answers = [ClientSamples() for _ in range(clients)]
    threads = [threading.Thread(target=client, args=pair, daemon=True) for pair in enumerate(answers)]
    start = clock.now()
    for thread in threads:
        thread.start()
    meanwhile()
    for thread in threads:
        thread.join()
    return answers, (clock.now() - start) / 1e9
