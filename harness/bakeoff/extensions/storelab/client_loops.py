"""Clients that search at the same time: each waiting for its answer, or all serving requests that fall due."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import numpy as np
from bakeoff_providers.errors import BakeoffError, Unavailable

from bakeoff.core import clock

P = ParamSpec("P")
T = TypeVar("T")


def in_own_process(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run `work`, a module-level function, in a new process. Any failure there is Unavailable."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            problem: str
            answer: T | None
            problem, answer = pool.submit(_catch, work, *arguments, **named).result()
        except BrokenProcessPool:
            raise Unavailable("its process ended without an answer") from None
    if answer is None:
        raise Unavailable(problem)
    return answer


def _catch(work: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, Any]:
    """Runs in the other process. Errors return as text, since not every exception can be pickled."""
    try:
        return "", work(*arguments, **named)
    except BakeoffError as error:
        return str(error), None
    except Exception as error:
        return f"{type(error).__name__}: {error}", None


LATE_NS = 1_000_000  # begun more than a millisecond after its time
DROP_AFTER = 1.0  # seconds behind its time at which a request is given up


@dataclass(slots=True)
class ClientSamples:
    """What one client saw."""

    samples_ns: list[int] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    late: int = 0
    dropped: int = 0


Search = Callable[[int], None]  # the number of the request


def closed(search: Search, clients: int, seconds: float) -> tuple[list[ClientSamples], float]:
    """Each client asks again as soon as it has its answer. Returns what they saw and how long it took."""
    return closed_during(search, clients, lambda: time.sleep(seconds))


def closed_during(search: Search, clients: int, work: Callable[[], None]) -> tuple[list[ClientSamples], float]:
    """The same for as long as `work` takes, in this thread."""
    end = threading.Event()

    def client(number: int, answers: ClientSamples) -> None:
        for request in itertools.count(number, clients):
            if end.is_set():
                return
            start = clock.now()
            _timed_search(search, request, start, answers)

    def meanwhile() -> None:
        try:
            work()
        finally:
            end.set()

    return _run_clients(client, clients, meanwhile)


def open_(
    search: Search, rate: float, clients: int, seconds: float, *, seed: int = 42, drop_after: float = DROP_AFTER
) -> tuple[list[ClientSamples], float]:
    """Requests fall due at random times of the given rate; time counts from then, also when all clients are busy."""
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
            _timed_search(search, request, intended, answers)

    return _run_clients(client, clients, lambda: None)


def _timed_search(search: Search, request: int, since: int, answers: ClientSamples) -> None:
    try:
        search(request)
        answers.samples_ns.append(clock.now() - since)
    except Exception as error:  # whatever goes wrong under load is a finding
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
