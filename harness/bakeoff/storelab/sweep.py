"""Walks a store's parameters over one set of vectors: what recall costs in time and in bytes."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.errors import BakeoffError, InputError

from bakeoff.core import clock
from bakeoff.core.clock import Percentiles, percentiles, timed
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.run.environment import this_machine
from bakeoff.search import exact
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.storelab.vector_sample import VectorSample

WARM_UP = 10
TARGET = 0.99


@dataclass(frozen=True, slots=True)
class Walk:
    """One store: options that stay, and the values to walk; what is not named comes from the store itself."""

    store: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Point(msgspec.Struct, kw_only=True):
    """One setting. It is on a front when no other has as much recall for less."""

    store: str
    build: dict[str, Any]
    query: dict[str, Any]
    exact: bool
    recall: float
    latency: Percentiles
    build_seconds: float
    index_bytes: int | None
    theory_bytes: float
    fastest: bool = False
    smallest: bool = False

    @property
    def label(self) -> str:
        """The store as it was built."""
        return " ".join([self.store, *(_shown(item) for item in self.build.items())])

    @property
    def setting(self) -> str:
        """Its query parameters."""
        return ", ".join(f"{name} = {value}" for name, value in self.query.items())


class Sweep(msgspec.Struct, kw_only=True):
    """`sweep.json`."""

    sample: str
    documents: int
    dimensions: int
    queries: int
    k: int
    rounds: int
    target: float
    points: list[Point]
    pruned: int
    not_run: dict[str, str]
    sentences: list[str]
    warnings: list[str]
    machine: Machine


def sweep(
    sample: VectorSample,
    walks: Sequence[Walk],
    *,
    k: int = 10,
    rounds: int = 3,
    target: float = TARGET,
    progress: Progress = silent,
) -> Sweep:
    """Builds every build setting once and asks it under every query setting that can still win."""
    machine = this_machine()
    _, scores = exact.nearest(sample.queries, sample.documents, k)
    points: list[Point] = []
    not_run: dict[str, str] = {}
    pruned = 0
    plan = [(walk, build) for walk in walks for build in _builds(walk, sample)]
    with progress("sweep", len(plan)) as advance:
        for walk, build in plan:
            try:
                found, left = _walked(walk, build, sample, k, rounds, scores[:, -1])
                points += found
                pruned += left
            except BakeoffError as error:
                not_run[" ".join([walk.store, *(_shown(item) for item in build.items())])] = str(error)
            advance(1)
    mark_fronts(points)
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
        sentences=sentences(points, target, k),
        warnings=sample.warnings(),
        machine=after_work(machine),
    )


def _builds(walk: Walk, sample: VectorSample) -> list[dict[str, Any]]:
    """Every combination of build values; the store's own grid stands in for parameters that were not named."""
    adapter = STORES.get(walk.store)
    STORES.check_options(walk.store, {**walk.fixed, **walk.values})
    grid = dict(adapter.grid(len(sample.documents), sample.dimensions))
    named = {name: values for name, values in walk.values.items() if name not in adapter.query}
    if named:
        grid = {}
    grid = {name: values for name, values in (grid | named).items() if name not in walk.fixed}
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _walked(
    walk: Walk, build: dict[str, Any], sample: VectorSample, k: int, rounds: int, last: exact.Similarities
) -> tuple[list[Point], int]:
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-sweep-"))
    store: Store | None = None
    try:
        options = {**walk.fixed, **build}
        store = STORES.create(walk.store, dimensions=sample.dimensions, folder=folder, **options)
        made = store
        _, added = timed(lambda: made.add(sample.ids, sample.documents))
        _, built = timed(made.build)
        size, theory = store.size_bytes(), store.size_model().bytes(len(sample.documents))
        points: list[Point] = []
        pruned = 0
        for query in _settings(store, walk):
            if any(_no_cheaper(query, point) for point in points if point.recall == 1):
                pruned += 1
                continue
            store.tune(**query)
            recall, samples = _asked(store, sample, k, rounds, last)
            points.append(
                Point(
                    store=walk.store,
                    build={**walk.fixed, **build},
                    query=query,
                    exact=store.capabilities.exact,
                    recall=recall,
                    latency=percentiles(samples),
                    build_seconds=(added + built) / 1e9,
                    index_bytes=size,
                    theory_bytes=theory,
                )
            )
        return points, pruned
    finally:
        if store is not None:
            store.discard()
        shutil.rmtree(folder, ignore_errors=True)


def _settings(store: Store, walk: Walk) -> Iterator[dict[str, Any]]:
    """Query settings, the cheapest first, so that what comes after a perfect one need not be tried."""
    grid = {name: walk.values.get(name, values) for name, values in store.tunings().items() if name not in walk.fixed}
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _no_cheaper(query: Mapping[str, Any], point: Point) -> bool:
    """Whether every parameter asks for at least as much work as a setting that already missed nothing."""
    return all(query[name] >= point.query[name] for name in query)


def _asked(
    store: Store, sample: VectorSample, k: int, rounds: int, last: exact.Similarities
) -> tuple[float, list[int]]:
    """Recall by score from the first round, times from all."""
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
                found = sample.documents[[int(item) for item in hits.ids]] @ query
                recalls.append(exact.recall(found, float(last[place]), min(k, len(sample.documents))))
    return float(np.mean(recalls)), samples


def mark_fronts(points: Sequence[Point]) -> None:
    """A point is on a front unless another has no less recall for no more cost, and one of the two is better."""
    for front, cost in (("fastest", _time_first), ("smallest", _size_first)):
        for point in points:
            mine = cost(point)
            beaten = mine is None or any(
                (theirs := cost(other)) is not None
                and other.recall >= point.recall
                and theirs <= mine
                and (other.recall > point.recall or theirs < mine)
                for other in points
            )
            setattr(point, front, not beaten)


def _time_first(point: Point) -> tuple[float, float] | None:
    """Equal in time: the smaller one."""
    return None if point.latency.p50 is None else (point.latency.p50, point.index_bytes or np.inf)


def _size_first(point: Point) -> tuple[float, float] | None:
    """Equal in size, as all query settings of one index are: the faster one."""
    return None if point.index_bytes is None else (point.index_bytes, point.latency.p50 or np.inf)


def _milliseconds(point: Point) -> float | None:
    return point.latency.p50


def _bytes(point: Point) -> float | None:
    return point.index_bytes


def sentences(points: Sequence[Point], target: float, k: int) -> list[str]:
    """What to set, for each index that has something to set; then the fastest and the smallest of all."""
    found = []
    for label in dict.fromkeys(point.label for point in points if point.query):
        walked = [point for point in points if point.label == label]
        enough = [point for point in walked if point.recall >= target]
        if enough:
            best = min(enough, key=lambda point: (point.latency.p50 or 0.0) if len(point.query) > 1 else _first(point))
            found.append(
                f"{label}: {best.setting} is enough for {target:g} (recall@{k} {best.recall:.4f}, p50 {_ms(best)})"
            )
        else:
            best = max(walked, key=lambda point: point.recall)
            found.append(f"{label}: never reaches {target:g} (at most {best.recall:.4f}, with {best.setting})")
    reached = [point for point in points if point.recall >= target]
    for word, cost, shown in (("fastest", _milliseconds, _ms), ("smallest", _bytes, _mb)):
        ranked = [point for point in reached if cost(point) is not None]
        if ranked:
            best = min(ranked, key=lambda point: cost(point) or 0.0)
            setting = f" with {best.setting}" if best.query else ""
            found.append(f"The {word} with recall@{k} of {target:g} or more: {best.label}{setting}, {shown(best)}.")
    return found


def _first(point: Point) -> float:
    return float(next(iter(point.query.values())))


def _ms(point: Point) -> str:
    return "unknown" if point.latency.p50 is None else f"{point.latency.p50:.3f} ms"


def _mb(point: Point) -> str:
    return "unknown" if point.index_bytes is None else f"{point.index_bytes / 1e6:.1f} MB"


def _shown(item: tuple[str, Any]) -> str:
    """An index's own name says enough; other parameters need theirs."""
    name, value = item
    return str(value) if name == "index" else f"{name}={value}"


def parse_values(texts: Sequence[str]) -> dict[str, list[Any]]:
    """`ef=16`, given again for each value: numbers and truth values as such, everything else as text."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, given, value = text.partition("=")
        if not given or not name:
            raise InputError(f"{text!r} sets nothing", remedy="write it as name=value, for example ef=64")
        found.setdefault(name.strip(), []).append(_value(value.strip()))
    return found


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
