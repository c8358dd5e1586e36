"""Parameter sweeps of a store: recall against latency and size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.errors import BakeoffError

from bakeoff.core import clock
from bakeoff.core.clock import percentiles, time_call
from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Percentiles
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.extensions.storelab.vector_sample import FORMAT, VectorSample, rows_of
from bakeoff.running.settings import this_machine
from bakeoff.search import brute_force
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.scratch import scratch
from bakeoff.statistics.pareto import pareto_front


class SweepPoint(msgspec.Struct, kw_only=True, frozen=True):
    """One setting. It is on a front if no other has as much recall at lower cost."""

    store: str
    label: str  # with its build options
    build: dict[str, Any]
    query: dict[str, Any]
    exact: bool
    recall: float
    latency: Percentiles
    build_seconds: float
    index_bytes: int | None
    size_model_bytes: float
    fastest: bool = False
    smallest: bool = False

    @property
    def setting(self) -> str:
        """The query parameters as text."""
        return ", ".join(f"{name} = {value}" for name, value in self.query.items())


def mark_fronts(points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """Mark the points that are on a Pareto front."""
    fastest, smallest = _front(points, _time_first), _front(points, _size_first)
    return [
        msgspec.structs.replace(point, fastest=place in fastest, smallest=place in smallest)
        for place, point in enumerate(points)
    ]


def _front(points: Sequence[SweepPoint], cost: Callable[[SweepPoint], tuple[float, float] | None]) -> set[int]:
    """Positions of the points on the front. A point of unknown cost is on none."""
    known = {place: price for place, point in enumerate(points) if (price := cost(point)) is not None}
    places = list(known)
    return {places[at] for at in pareto_front([(price, points[place].recall) for place, price in known.items()])}


def _time_first(point: SweepPoint) -> tuple[float, float] | None:
    """At equal latency, prefer the smaller."""
    return None if point.latency.p50 is None else (point.latency.p50, point.index_bytes or np.inf)


def _size_first(point: SweepPoint) -> tuple[float, float] | None:
    """At equal size, as all query settings of one index are, prefer the faster."""
    return None if point.index_bytes is None else (point.index_bytes, point.latency.p50 or np.inf)


def sweep_facts(points: Sequence[SweepPoint], target: float, k: int) -> list[Fact]:
    """The best setting of each tunable index, then the fastest and the smallest of all."""
    facts = []
    for label in dict.fromkeys(point.label for point in points if point.query):
        settings = [point for point in points if point.label == label]
        enough = [point for point in settings if point.recall >= target]
        if enough:
            best = min(enough, key=lambda point: (point.latency.p50 or 0.0) if len(point.query) > 1 else _first(point))
        else:
            best = max(settings, key=lambda point: point.recall)
        facts.append(
            fact("storelab.setting", label=label, setting=best.setting, reached=bool(enough), target=target, k=k,
                 recall=best.recall, p50_ms=best.latency.p50)
        )  # fmt: skip
    reached = [point for point in points if point.recall >= target]
    if timed := [(point.latency.p50, point) for point in reached if point.latency.p50 is not None]:
        milliseconds, best = min(timed, key=lambda entry: entry[0])
        facts.append(
            fact("storelab.fastest", label=best.label, setting=best.setting, target=target, k=k, p50_ms=milliseconds)
        )
    if sized := [(point.index_bytes, point) for point in reached if point.index_bytes is not None]:
        size, best = min(sized, key=lambda entry: entry[0])
        facts.append(fact("storelab.smallest", label=best.label, setting=best.setting, target=target, k=k, bytes=size))
    return facts


def _first(point: SweepPoint) -> float:
    return float(next(iter(point.query.values())))


WARM_UP = 10
Nearest = tuple[brute_force.Rows, brute_force.Similarities]  # per query, best first
TARGET = 0.99


@dataclass(frozen=True, slots=True)
class StoreGrid:
    """One store: fixed options and values to try. Other parameters use the store's own grid."""

    store: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Sweep(msgspec.Struct, kw_only=True):
    """`sweep.json`. In format 1, sentences and warnings were text."""

    sample: str
    documents: int
    dimensions: int
    queries: int
    k: int
    rounds: int
    target: float
    points: list[SweepPoint]
    pruned: int
    not_run: dict[str, str]
    warnings: list[Fact | str]
    machine: Machine
    format: int = 1
    facts: list[Fact] = []


def sweep(
    sample: VectorSample,
    grids: Sequence[StoreGrid],
    *,
    k: int = 10,
    rounds: int = 3,
    target: float = TARGET,
    progress: Progress = silent,
) -> Sweep:
    """Build each build setting once. Measure it under every query setting that can still win."""
    machine = this_machine()
    nearest = brute_force.nearest(sample.queries, sample.documents, k)
    points: list[SweepPoint] = []
    not_run: dict[str, str] = {}
    pruned = 0
    plan = []
    for store_grid in grids:
        if reason := STORES.get(store_grid.store).missing(**store_grid.fixed):
            not_run[store_grid.store] = reason
        else:
            plan += [(store_grid, {**store_grid.fixed, **build}) for build in _builds(store_grid, sample)]
    with progress("sweep", len(plan)) as advance:
        for store_grid, build in plan:
            try:
                measured, skipped = _measure(store_grid, build, sample, k, rounds, nearest)
                points += measured
                pruned += skipped
            except BakeoffError as error:
                not_run[STORES.get(store_grid.store).label(build)] = str(error)
            advance(1)
    points = mark_fronts(points)
    return Sweep(
        sample=sample.name,
        documents=len(sample.documents),
        dimensions=sample.dimensions,
        queries=len(sample.queries),
        k=k,
        rounds=rounds,
        target=target,
        points=points,
        pruned=pruned,
        not_run=not_run,
        warnings=[*sample.warnings()],
        machine=after_work(machine),
        format=FORMAT,
        facts=sweep_facts(points, target, k),
    )


def _builds(store_grid: StoreGrid, sample: VectorSample) -> list[dict[str, Any]]:
    """Every combination of build values; the store's own grid if none were given."""
    adapter = STORES.get(store_grid.store)
    STORES.check_options(store_grid.store, store_grid.fixed)
    for option, values in store_grid.values.items():
        for value in values:
            STORES.check_options(store_grid.store, {option: value})
    grid = dict(adapter.grid(len(sample.documents), sample.dimensions))
    named = {name: values for name, values in store_grid.values.items() if name not in adapter.query_options}
    if named:
        grid = {}
    grid = {name: values for name, values in (grid | named).items() if name not in store_grid.fixed}
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _measure(
    store_grid: StoreGrid, build: dict[str, Any], sample: VectorSample, k: int, rounds: int, nearest: Nearest
) -> tuple[list[SweepPoint], int]:
    with (
        scratch("sweep") as folder,
        _discard_after(STORES.create(store_grid.store, dimensions=sample.dimensions, folder=folder, **build)) as store,
    ):
        _, added = time_call(partial(store.add, sample.ids, sample.documents))
        _, built = time_call(store.build)
        size, size_model = store.size_bytes(), store.size_model().bytes(len(sample.documents))
        points: list[SweepPoint] = []
        pruned = 0
        for query in _settings(store, store_grid):
            if any(_no_cheaper(query, point) for point in points if point.recall == 1):
                pruned += 1
                continue
            store.tune(**query)
            recall, samples = _search_all(store, sample, k, rounds, nearest)
            points.append(
                SweepPoint(
                    store=store_grid.store,
                    label=store.label(build),
                    build=build,
                    query=query,
                    exact=store.capabilities.exact,
                    recall=recall,
                    latency=percentiles(samples),
                    build_seconds=(added + built) / 1e9,
                    index_bytes=size,
                    size_model_bytes=size_model,
                )
            )
        return points, pruned


@contextmanager
def _discard_after(store: Store) -> Iterator[Store]:
    try:
        yield store
    finally:
        store.discard()


def _settings(store: Store, store_grid: StoreGrid) -> Iterator[dict[str, Any]]:
    """Query settings, cheapest first, so that settings after a perfect one can be skipped."""
    grid = {
        name: store_grid.values.get(name, values)
        for name, values in store.tunings().items()
        if name not in store_grid.fixed
    }
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _no_cheaper(query: Mapping[str, Any], point: SweepPoint) -> bool:
    """Whether every parameter is at least as large as in a setting with perfect recall."""
    return all(query[name] >= point.query[name] for name in query)


def _search_all(store: Store, sample: VectorSample, k: int, rounds: int, nearest: Nearest) -> tuple[float, list[int]]:
    """Measure recall in the first round and latency in all."""
    exact_rows, exact_scores = nearest
    for query in sample.queries[:WARM_UP]:
        store.search(query, k)
    samples: list[int] = []
    recalls: list[float] = []
    for turn in range(rounds):
        for place, query in enumerate(sample.queries):
            start = clock.now()
            hits = store.search(query, k)
            samples.append(clock.now() - start)
            if turn == 0:
                nearest_rows, scores = exact_rows[place], exact_scores[place]
                recalls.append(brute_force.recall_of_rows(rows_of(hits), query, sample.documents, nearest_rows, scores))
    return float(np.mean(recalls)), samples
