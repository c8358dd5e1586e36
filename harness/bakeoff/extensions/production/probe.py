"""Recall of a live index against exact search over its own vectors. Read-only.

The collection is read once, in blocks. Only one block and each query's best k scores are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import BakeoffError, InputError, StoreError
from bakeoff_providers.stopping import ends_run
from numpy.typing import NDArray

from bakeoff.core.clock import percentiles, time_call
from bakeoff.core.facts import fact
from bakeoff.core.hashing import order_key
from bakeoff.results.check import Check, Gauge
from bakeoff.search import brute_force
from bakeoff.search.stores.existing import ExistingIndex
from bakeoff.statistics.small_samples import mean_intervals
from bakeoff.systems.failures import reason_of

METRICS = ("cosine", "l2", "ip")


@dataclass(frozen=True, slots=True)
class ProbeQueries:
    """Query vectors; if they are stored in the index, `own` has their ids."""

    source: str
    vectors: Vectors
    own: Sequence[str] = ()


@contextmanager
def report_client_errors(index: str) -> Iterator[None]:
    """Report any error of a client library as a service that did not answer."""
    try:
        yield
    except BakeoffError:
        raise
    except BaseException as error:
        if ends_run(error):
            raise
        raise StoreError(f"{index} did not answer: {reason_of(error)}") from error


def draw_queries(index: ExistingIndex, size: int, seed: int) -> ProbeQueries:
    """Draw stored entries by their ids, so that the same ones are drawn every night."""
    kept: list[tuple[str, str, Vectors]] = []
    for names, vectors in index.blocks():
        kept += [(order_key(seed, name), name, vector) for name, vector in zip(names, vectors, strict=True)]
        kept = sorted(kept, key=lambda entry: entry[0])[:size]
    if not kept:
        raise InputError(f"{index.existing} is empty", remedy="name a collection that is in use")
    return ProbeQueries("stored vectors", np.stack([vector for _, _, vector in kept]), [name for _, name, _ in kept])


def recalls(index: ExistingIndex, queries: ProbeQueries, k: int) -> tuple[NDArray[np.float64], list[int]]:
    """Recall@k of each query by the index's metric, and the nanoseconds of every search.

    An entry tied with the k-th counts. A stored query does not count itself.
    """
    if queries.vectors.shape[1] != index.dimensions:
        problem = f"the queries have {queries.vectors.shape[1]} dimensions, the index {index.dimensions}"
        raise InputError(problem, remedy="embed them with the model that filled the index")
    if index.metric not in METRICS:
        raise InputError(
            f"exact search does not support the metric {index.metric or '(unknown)'}",
            place="--metric",
            remedy=f"only {', '.join(METRICS)} can be probed",
        )
    index.search(queries.vectors[0], k)  # warm-up
    answers: list[list[str]] = []
    times: list[int] = []
    for at, vector in enumerate(queries.vectors):
        hits, nanoseconds = time_call(partial(index.search, vector, k + bool(queries.own)))
        own = queries.own[at] if queries.own else None
        answers.append([name for name in hits.ids if name != own][:k])
        times.append(nanoseconds)
    best, scored = _exact(index, queries, answers, k)
    shares = []
    for row, wanted in enumerate(min(k, int(np.isfinite(scores).sum())) for scores in best):
        last = best[row][wanted - 1] if wanted else 0.0
        size = 1.0 if index.metric == "cosine" or not wanted else float(np.abs(best[row][:wanted]).max()) or 1.0
        shares.append(brute_force.recall(np.array(scored[row]) / size, last / size, wanted))
    return np.array(shares), times


def _exact(
    index: ExistingIndex, queries: ProbeQueries, answers: Sequence[Sequence[str]], k: int
) -> tuple[NDArray[np.float64], list[list[float]]]:
    """Each query's k best scores over all entries, best first, and the exact scores of what the index returned."""
    asked = _prepare(queries.vectors, index.metric, query=True)
    best = np.full((len(asked), k), -np.inf)
    wanted: dict[str, list[int]] = {}
    for row, answer in enumerate(answers):
        for name in set(answer):
            wanted.setdefault(name, []).append(row)
    entry_scores: dict[tuple[int, str], list[float]] = {}
    for names, vectors in index.blocks():
        scores = asked @ _prepare(vectors, index.metric, query=False).T
        for column, name in enumerate(names):
            for row in wanted.get(name, ()):
                entry_scores.setdefault((row, name), []).append(float(scores[row, column]))
        if queries.own:
            places = {name: column for column, name in enumerate(names)}
            for row, name in enumerate(queries.own):
                if name in places:
                    scores[row, places[name]] = -np.inf
        best = -np.sort(-np.concatenate([best, scores], axis=1), axis=1)[:, :k]
    scored: list[list[float]] = []
    for row, answer in enumerate(answers):
        left = {name: sorted(entry_scores.get((row, name), []), reverse=True) for name in set(answer)}
        scored.append([left[name].pop(0) for name in answer if left[name]])  # several entries may have one name
    return best, scored


def _prepare(vectors: Vectors, metric: str, *, query: bool) -> NDArray[np.float64]:
    """Make the inner product order as the metric does; for L2, 2q·x − |x|² with one more dimension."""
    values = np.asarray(vectors, dtype=np.float64)
    if metric == "cosine":
        return np.asarray(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12))
    if metric == "l2":
        if query:
            return np.concatenate([2 * values, np.ones((len(values), 1))], axis=1)
        return np.concatenate([values, -(values**2).sum(axis=1, keepdims=True)], axis=1)
    return values


def probe(index: ExistingIndex, queries: ProbeQueries, *, k: int, min_recall: float) -> Check:
    """Compare the index with exact search; worse if mean recall is below the limit."""
    with report_client_errors(index.name):
        shares, times = recalls(index, queries, k)
    mean, latency = float(shares.mean()), percentiles(times)
    low, high = (float(end[0]) for end in mean_intervals(shares[:, None]))
    has_interval = bool(np.isfinite(low))  # a single query has none
    worse = mean < min_recall
    worst = int(np.count_nonzero(shares < 0.5))
    shown = {name: value for name, value in (("p50", latency.p50), ("p95", latency.p95)) if value is not None}
    facts = [
        fact("production.probe_index", store=index.name, index=index.collection or index.existing,
             entries=index.entries, dimensions=index.dimensions, metric=index.metric, queries=len(shares),
             source=queries.source),
        fact("production.probe_recall", k=k, recall=mean, low=low if has_interval else None,
             high=high if has_interval else None, lost_half=worst),
        *([fact("production.probe_times", p50=latency.p50, p95=latency.p95)] if shown else []),
        fact("production.probe_limit", worse=worse, limit=min_recall),
    ]  # fmt: skip
    if worse:
        facts.append(fact("production.probe_remedy"))
    if queries.own:
        facts.append(fact("production.probe_stored_queries"))
    labels = {"index": index.name, "collection": index.collection}
    gauges = [
        Gauge("probe_recall", "Share of the nearest entries that the index returns", mean, labels),
        *([Gauge("probe_recall_low", "Lower end of the interval of recall", low, labels)] if has_interval else []),
        Gauge("probe_entries", "Entries in the collection", float(index.entries), labels),
    ]
    gauges += [
        Gauge("probe_search_ms", "Milliseconds of a search", value, {**labels, "percentile": name})
        for name, value in shown.items()
    ]
    figures = {
        "entries": index.entries, "queries": len(shares), "stored": bool(queries.own), "k": k, "metric": index.metric,
        "recall": mean, "low": low, "high": high, "limit": min_recall, "p50_ms": latency.p50, "p95_ms": latency.p95,
        "lost_half": worst,
    }  # fmt: skip
    return Check(command="probe", worse=worse, facts=facts, figures=figures, gauges=gauges)
