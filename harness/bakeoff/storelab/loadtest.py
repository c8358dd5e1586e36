"""A store under load: clients that wait for their answer, or requests that come at a rate whether or not it can.

Every percentile comes from all raw samples of all clients together.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.errors import Unavailable

from bakeoff.core import clock
from bakeoff.core.clock import Percentiles, percentiles
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.run.environment import this_machine
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.null import NullStore
from bakeoff.storelab.vector_sample import VectorSample

LATE_NS = 1_000_000  # begun more than a millisecond after its time
LIMIT = 0.8  # of what the client manages with a store that does nothing
DROP_AFTER = 1.0  # seconds behind its time at which a request is given up


class Level(msgspec.Struct, kw_only=True):
    """One load. `limited` says that the client, not the store, was measured."""

    kind: str
    clients: int
    seconds: float
    answered: int
    throughput: float
    latency: Percentiles
    rate: float | None = None
    late: int = 0
    dropped: int = 0
    errors: dict[str, int] = {}
    client_limit: float = 0.0
    limited: bool = False


class LoadTest(msgspec.Struct, kw_only=True):
    """`loadtest.json`."""

    store: str
    options: dict[str, Any]
    sample: str
    documents: int
    dimensions: int
    k: int
    levels: list[Level]
    knee: int | None
    sentences: list[str]
    warnings: list[str]
    machine: Machine
    samples_ns: list[list[int]] = []


@dataclass(slots=True)
class Answers:
    """What one client saw."""

    samples_ns: list[int] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    late: int = 0
    dropped: int = 0


Search = Callable[[int], None]  # the number of the request


def closed(search: Search, clients: int, seconds: float) -> tuple[list[Answers], float]:
    """Each client asks again as soon as it has its answer. Returns what they saw and how long it took."""
    end = threading.Event()

    def client(number: int, answers: Answers) -> None:
        for request in itertools.count(number, clients):
            if end.is_set():
                return
            start = clock.now()
            _sent(search, request, start, answers)

    def meanwhile() -> None:
        time.sleep(seconds)
        end.set()

    return _together(client, clients, meanwhile)


def open_(
    search: Search, rate: float, clients: int, seconds: float, *, seed: int = 42, drop_after: float = DROP_AFTER
) -> tuple[list[Answers], float]:
    """Requests fall due at random times of the given rate; time counts from then, also when all clients are busy."""
    gaps = np.random.default_rng(seed).exponential(1 / rate, size=int(rate * seconds * 2) + 10)
    due = np.cumsum(gaps)
    due = due[due < seconds]
    next_one = itertools.count()
    begin = clock.now() + 50_000_000

    def client(number: int, answers: Answers) -> None:  # noqa: ARG001 - any client takes the next request
        while (request := next(next_one)) < len(due):
            intended = begin + int(due[request] * 1e9)
            wait = (intended - clock.now()) / 1e9
            if wait > 0:
                time.sleep(wait)
            behind = clock.now() - intended
            if behind > drop_after * 1e9:
                answers.dropped += 1
                continue
            answers.late += behind > LATE_NS
            _sent(search, request, intended, answers)

    return _together(client, clients, lambda: None)


def _sent(search: Search, request: int, since: int, answers: Answers) -> None:
    try:
        search(request)
        answers.samples_ns.append(clock.now() - since)
    except Exception as error:  # whatever goes wrong under load is a finding
        answers.errors[type(error).__name__] += 1


def _together(
    client: Callable[[int, Answers], None], clients: int, meanwhile: Callable[[], None]
) -> tuple[list[Answers], float]:
    answers = [Answers() for _ in range(clients)]
    threads = [threading.Thread(target=client, args=(number, each), daemon=True) for number, each in enumerate(answers)]
    start = clock.now()
    for thread in threads:
        thread.start()
    meanwhile()
    for thread in threads:
        thread.join()
    return answers, (clock.now() - start) / 1e9


def level(kind: str, clients: int, answers: Sequence[Answers], seconds: float, rate: float | None = None) -> Level:
    """All clients' samples in one heap."""
    samples = [taken for client in answers for taken in client.samples_ns]
    errors: Counter[str] = sum((each.errors for each in answers), Counter())
    return Level(
        kind=kind,
        clients=clients,
        seconds=seconds,
        answered=len(samples),
        throughput=len(samples) / seconds,
        latency=percentiles(samples),
        rate=rate,
        late=sum(each.late for each in answers),
        dropped=sum(each.dropped for each in answers),
        errors=dict(errors),
    )


def loadtest(
    store: Store,
    sample: VectorSample,
    *,
    options: dict[str, Any] | None = None,
    k: int = 10,
    clients: Sequence[int] = (1, 2, 4, 8),
    rates: Sequence[float] = (),
    seconds: float = 5.0,
    seed: int = 42,
    progress: Progress = silent,
) -> LoadTest:
    """Closed loops with more and more clients, then open loops at the given rates, each beside a null store."""
    machine = this_machine()
    null = NullStore(dimensions=sample.dimensions, folder=Path())
    asked, nothing = _searching(store, sample, k), _searching(null, sample, k)
    for request in range(10):
        asked(request)
    levels: list[Level] = []
    raw: list[list[int]] = []
    with progress(f"load test of {store.name}", len(clients) + len(rates)) as advance:
        for count in clients:
            answers, took = closed(asked, count, seconds)
            found = level("closed", count, answers, took)
            found.client_limit = level("closed", count, *closed(nothing, count, min(seconds, 1.0))).throughput
            found.limited = found.throughput >= LIMIT * found.client_limit
            levels.append(found)
            raw.append([taken for client in answers for taken in client.samples_ns])
            advance(1)
        for rate in rates:
            answers, took = open_(asked, rate, max(clients), seconds, seed=seed)
            found = level("open", max(clients), answers, took, rate)
            idle, spent = open_(nothing, rate, max(clients), min(seconds, 2.0), seed=seed)
            found.client_limit = level("open", max(clients), idle, spent, rate).throughput
            late = sum(each.late for each in idle)
            found.limited = late > 0.05 * max(1, sum(len(each.samples_ns) for each in idle))
            levels.append(found)
            raw.append([taken for client in answers for taken in client.samples_ns])
            advance(1)
    best = knee(levels)
    return LoadTest(
        store=store.name,
        options=options or {},
        sample=sample.name,
        documents=len(sample.documents),
        dimensions=sample.dimensions,
        k=k,
        levels=levels,
        knee=best.clients if best else None,
        sentences=sentences(levels),
        warnings=sample.warnings(),
        machine=after_work(machine),
        samples_ns=raw,
    )


def loadtest_store(name: str, options: dict[str, Any], sample: VectorSample, **how: Any) -> LoadTest:
    """Builds the store, puts it under load, and removes it again."""
    if reason := STORES.get(name).missing(**options):
        raise Unavailable(f"{name}: {reason}")
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-loadtest-"))
    try:
        store = STORES.create(name, dimensions=sample.dimensions, folder=folder, **options)
        try:
            store.add(sample.ids, sample.documents)
            store.build()
            return loadtest(store, sample, options=options, **how)
        finally:
            store.discard()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _searching(store: Store, sample: VectorSample, k: int) -> Search:
    queries = list(sample.queries)
    count = len(queries)

    def search(request: int) -> None:
        store.search(queries[request % count], k)

    return search


def knee(levels: Sequence[Level]) -> Level | None:
    """Where throughput divided by p95 is highest: beyond it, waiting grows faster than what gets done."""
    curve = [each for each in levels if each.kind == "closed" and each.latency.p95]
    return max(curve, key=lambda each: each.throughput / (each.latency.p95 or 1.0), default=None)


def sentences(levels: Sequence[Level]) -> list[str]:
    """The knee, what came too late, what failed, and whether the store was measured at all."""
    found = []
    if best := knee(levels):
        most = max((each for each in levels if each.kind == "closed"), key=lambda each: each.throughput)
        found.append(
            f"The knee is at {_clients(best)}: {best.throughput:.0f} a second, p95 {best.latency.p95:.2f} ms; "
            f"the most was {most.throughput:.0f} a second, with {_clients(most)}."
        )
    for each in levels:
        name = _clients(each) if each.rate is None else f"{each.rate:g} a second"
        if each.limited:
            found.append(
                f"{name}: the client's own limit was reached ({each.client_limit:.0f} a second with a store that does "
                "nothing): this says little about the store."
            )
        if each.late or each.dropped:
            found.append(
                f"{name}: {each.late} requests began late and {each.dropped} were dropped after {DROP_AFTER:g} s; "
                "times count from when they were due."
            )
        if each.errors:
            counted = ", ".join(f"{count} × {kind}" for kind, count in sorted(each.errors.items()))
            found.append(f"{name}: errors: {counted}.")
    return found


def _clients(each: Level) -> str:
    return "1 client" if each.clients == 1 else f"{each.clients} clients"
