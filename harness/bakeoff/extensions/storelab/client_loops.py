"""Concurrent clients: closed loops, where each waits for its answer, and open loops at a fixed rate."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import numpy as np
from bakeoff_providers.errors import BakeoffError, Unavailable

from bakeoff.core import clock
from bakeoff.core.figures import Percentiles

LATE_NS = 1_000_000  # a request that starts later than this after it is due is late
DROP_AFTER = 1.0  # seconds after it is due
BITS = 10  # leading bits of a time to keep: an error of at most 0.1%

Histogram = Mapping[int, int]  # nanoseconds → how often

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


@dataclass(slots=True)
class ClientSamples:
    """The measurements of one client. `times` has at most 512 entries per doubling, however long it runs."""

    times: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    late: int = 0
    dropped: int = 0

    def add(self, nanoseconds: int) -> None:
        """Counts one answer."""
        cut = max(0, nanoseconds.bit_length() - BITS)
        self.times[(nanoseconds + (1 << cut >> 1)) >> cut << cut] += 1


def pool_times(answers: Sequence[ClientSamples]) -> Counter[int]:
    """The times of all clients, since a mean of percentiles is not a percentile."""
    return sum((client.times for client in answers), Counter())


def percentiles_of(times: Histogram) -> Percentiles:
    """The percentiles that this many samples support, between neighbours as numpy's."""
    values = np.array(sorted(times), dtype=np.float64)
    ends = np.cumsum([times[int(value)] for value in values])
    n = int(ends[-1]) if len(ends) else 0

    def percentile(q: int) -> float:
        below, share = divmod((n - 1) * q / 100, 1)
        low, high = values[np.searchsorted(ends, [below, min(below + 1, n - 1)], side="right")]
        return float(low + share * (high - low))

    found = {f"p{q}": percentile(q) / 1e6 for q, needed in clock.SAMPLES_FOR.items() if n >= needed}
    return Percentiles(n, **found)


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
    requests, taking = enumerate(_due_times(rate, seconds, seed)), threading.Lock()
    begin = clock.now() + 50_000_000

    def client(number: int, answers: ClientSamples) -> None:  # noqa: ARG001 - any client takes the next request
        while True:
            with taking:
                request, due = next(requests, (0, None))
            if due is None:
                return
            intended = begin + int(due * 1e9)
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


def _due_times(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Seconds at which requests fall due, with gaps as of a Poisson process."""
    rng, due = np.random.default_rng(seed), 0.0
    while (due := due + rng.exponential(1 / rate)) < seconds:
        yield due


def _time_search(search: Search, request: int, since: int, answers: ClientSamples) -> None:
    try:
        search(request)
        answers.add(clock.now() - since)
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
