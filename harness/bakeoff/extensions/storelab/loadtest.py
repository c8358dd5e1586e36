"""Load test of a store: closed loops, where clients wait for answers, and open loops at a fixed rate.

Percentiles are over the pooled times of all clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable

from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Percentiles
from bakeoff.core.filters import Condition, Metadata
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.extensions.storelab.client_loops import (
    DROP_AFTER,
    ClientSamples,
    Histogram,
    Search,
    percentiles_of,
    pool_times,
    run_closed_loop,
    run_open_loop,
)
from bakeoff.extensions.storelab.vector_sample import FORMAT, VectorSample
from bakeoff.running.settings import this_machine
from bakeoff.search.hits import Hits
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Capabilities, SizeModel, Store
from bakeoff.search.stores.scratch import scratch


class NullStore(Store):
    """Returns nothing at once, so that only the client's own time is measured."""

    name = "null"
    capabilities = Capabilities(exact=True, filters=True, persistent=False, updates=True, in_process=True)

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """Keeps nothing."""

    def _delete(self, ids: list[str]) -> None:
        """Has nothing."""

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:  # noqa: ARG002
        return Hits([], [])

    def count(self) -> int:
        """Nothing."""
        return 0

    def size_model(self) -> SizeModel:
        """Nothing."""
        return SizeModel(0, 0, "0")


LIMIT = 0.8  # of the client's throughput with the null store
LATE_SHARE = 0.05  # share of late requests to the null store beyond which the client is the limit


class LoadLevel(msgspec.Struct, kw_only=True, frozen=True):
    """One number of clients or one rate. `limited` means that the client was the bottleneck."""

    loop: str
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
    """`loadtest.json`. In format 1, sentences and warnings were text."""

    store: str
    label: str
    options: dict[str, Any]
    sample: str
    documents: int
    dimensions: int
    k: int
    levels: list[LoadLevel]
    knee: int | None
    warnings: list[Fact | str]
    machine: Machine
    times_ns: list[Histogram] = []
    format: int = 1
    facts: list[Fact] = []


def _count(answers: Sequence[ClientSamples]) -> int:
    return sum(client.times.total() for client in answers)


def _throughput(answers: Sequence[ClientSamples], seconds: float) -> float:
    return _count(answers) / seconds


def level_of(
    loop: str,
    clients: int,
    answers: Sequence[ClientSamples],
    seconds: float,
    rate: float | None = None,
    *,
    client_limit: float = 0.0,
    limited: bool = False,
) -> LoadLevel:
    """What all clients saw together."""
    errors: Counter[str] = sum((client.errors for client in answers), Counter())
    return LoadLevel(
        loop=loop,
        clients=clients,
        seconds=seconds,
        answered=_count(answers),
        throughput=_throughput(answers, seconds),
        latency=percentiles_of(pool_times(answers)),
        rate=rate,
        late=sum(client.late for client in answers),
        dropped=sum(client.dropped for client in answers),
        errors=dict(errors),
        client_limit=client_limit,
        limited=limited,
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
    """Run closed loops with more and more clients, then open loops, each compared with a null store."""
    machine = this_machine()
    null = NullStore(dimensions=sample.dimensions, folder=Path())
    search, nothing = _make_search(store, sample, k), _make_search(null, sample, k)
    for request in range(10):
        search(request)
    levels: list[LoadLevel] = []
    times: list[Histogram] = []
    with progress(f"load test of {store.name}", len(clients) + len(rates)) as advance:
        for count in clients:
            answers, took = run_closed_loop(search, count, seconds)
            idle, idle_took = run_closed_loop(nothing, count, min(seconds, 1.0))
            limit = _throughput(idle, idle_took)
            limited = _throughput(answers, took) >= LIMIT * limit
            levels.append(level_of("closed", count, answers, took, client_limit=limit, limited=limited))
            times.append(pool_times(answers))
            advance(1)
        for rate in rates:
            answers, took = run_open_loop(search, rate, max(clients), seconds, seed=seed)
            idle, idle_took = run_open_loop(nothing, rate, max(clients), min(seconds, 2.0), seed=seed)
            limit = _throughput(idle, idle_took)
            limited = sum(client.late for client in idle) > LATE_SHARE * max(1, _count(idle))
            levels.append(level_of("open", max(clients), answers, took, rate, client_limit=limit, limited=limited))
            times.append(pool_times(answers))
            advance(1)
    best = knee(levels)
    return LoadTest(
        store=store.name,
        label=store.label(options or {}),
        options=options or {},
        sample=sample.name,
        documents=len(sample.documents),
        dimensions=sample.dimensions,
        k=k,
        levels=levels,
        knee=best.clients if best else None,
        warnings=[*sample.warnings()],
        machine=after_work(machine),
        times_ns=times,
        format=FORMAT,
        facts=load_facts(levels),
    )


def loadtest_store(name: str, options: dict[str, Any], sample: VectorSample, **how: Any) -> LoadTest:
    """Build the store, load-test it, remove it."""
    if reason := STORES.get(name).missing(**options):
        raise Unavailable(f"{name}: {reason}")
    with scratch("loadtest") as folder:
        store = STORES.create(name, dimensions=sample.dimensions, folder=folder, **options)
        try:
            store.add(sample.ids, sample.documents)
            store.build()
            return loadtest(store, sample, options=options, **how)
        finally:
            store.discard()


def _make_search(store: Store, sample: VectorSample, k: int) -> Search:
    queries = list(sample.queries)
    count = len(queries)

    def search(request: int) -> None:
        store.search(queries[request % count], k)

    return search


def knee(levels: Sequence[LoadLevel]) -> LoadLevel | None:
    """The level with the highest throughput / p95. Beyond it, latency grows faster than throughput."""
    curve = [level for level in levels if level.loop == "closed" and level.latency.p95]
    return max(curve, key=lambda level: level.throughput / (level.latency.p95 or 1.0), default=None)


def load_facts(levels: Sequence[LoadLevel]) -> list[Fact]:
    """The knee, late and dropped requests, errors, and whether the client was the bottleneck."""
    facts = []
    if best := knee(levels):
        loads = [level for level in levels if level.loop == "closed"]
        most = max(loads, key=lambda level: level.throughput)
        facts.append(
            fact("storelab.knee", clients=best.clients, per_second=best.throughput, p95_ms=best.latency.p95,
                 most_per_second=most.throughput, most_clients=most.clients,
                 last=best.clients == max(level.clients for level in loads))
        )  # fmt: skip
    for level in levels:
        load = {"clients": level.clients, "rate": level.rate}
        if level.limited:
            facts.append(fact("storelab.client_limit", **load, per_second=level.client_limit))
        if level.late or level.dropped:
            facts.append(
                fact("storelab.late", **load, late=level.late, dropped=level.dropped, dropped_after_s=DROP_AFTER)
            )
        if level.errors:
            kinds = sorted(level.errors)
            facts.append(fact("storelab.errors", **load, kinds=kinds, counts=[level.errors[kind] for kind in kinds]))
    return facts
