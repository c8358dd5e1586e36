"""Filtered search: filters that fewer and fewer documents pass, and many tenants in one collection.

Which documents pass is random and independent of their vectors: the hard case for an index that filters during search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.base import Vectors
from numpy.typing import NDArray

from bakeoff.core import clock
from bakeoff.core.clock import percentiles
from bakeoff.core.figures import Percentiles
from bakeoff.core.filters import Where
from bakeoff.extensions.storelab.vector_sample import VectorSample, rows_of
from bakeoff.search import brute_force
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store

SHARES = (50.0, 10.0, 1.0, 0.1, 0.01)  # per cent of documents that pass
ASKED = 200  # queries per filter
WARM_UP = 5


class Filtered(msgspec.Struct, kw_only=True, frozen=True):
    """One filter. `full` is the number of results divided by min(k, documents that pass)."""

    name: str
    passing: float
    recall: float
    full: float
    latency: Percentiles


class FilterTest(msgspec.Struct, kw_only=True, frozen=True):
    """One store under every filter. `itself` means that the engine filters during search."""

    store: str
    label: str
    options: dict[str, Any]
    itself: bool = False
    filters: list[Filtered] = []
    not_run: str | None = None


def metadata_of(documents: int, shares: Sequence[float], tenants: int, seed: int = 42) -> list[dict[str, Any]]:
    """One field per share, true for that share of documents, and equally sized tenants."""
    rng = np.random.default_rng(seed)
    fields: list[dict[str, Any]] = [{} for _ in range(documents)]
    for share in shares:
        for row in rng.permutation(documents)[: round(documents * share / 100)]:
            fields[row][_field(share)] = True
    if tenants:
        for place, row in enumerate(rng.permutation(documents)):
            fields[row]["tenant"] = place % tenants
    return fields


def possible_shares(documents: int, shares: Sequence[float]) -> list[float]:
    """The shares that let at least one document pass."""
    return [share for share in shares if round(documents * share / 100)]


def filter_test(
    store: Store,
    sample: VectorSample,
    *,
    options: dict[str, Any] | None = None,
    shares: Sequence[float] = SHARES,
    tenants: int = 0,
    k: int = 10,
    seed: int = 42,
) -> FilterTest:
    """Fill the store once. Run the same queries under each filter, then each within a random tenant."""
    shares = possible_shares(len(sample.documents), shares)
    fields = metadata_of(len(sample.documents), shares, tenants, seed)
    store.add(sample.ids, np.array(sample.documents), fields)
    store.build()
    queries = sample.queries[:ASKED]
    filters = [_measure_filter(store, "none", sample.documents, queries, [None] * len(queries), [{}] * len(fields), k)]
    for share in shares:
        conditions: list[Where | None] = [{_field(share): True}] * len(queries)
        filters.append(_measure_filter(store, f"{share:g} %", sample.documents, queries, conditions, fields, k))
    if tenants:
        drawn = np.random.default_rng(seed).integers(tenants, size=len(queries))
        conditions = [{"tenant": int(tenant)} for tenant in drawn]
        filters.append(
            _measure_filter(store, f"1 of {tenants:,} tenants", sample.documents, queries, conditions, fields, k)
        )
    return FilterTest(
        store=store.name,
        label=store.label(options or {}),
        options=options or {},
        itself=store.capabilities.filters,
        filters=filters,
    )


def _measure_filter(
    store: Store,
    name: str,
    documents: Vectors,
    queries: Vectors,
    conditions: Sequence[Where | None],
    fields: Sequence[Mapping[str, Any]],
    k: int,
) -> Filtered:
    """Run every query under its filter. Compare with exact search over the documents that pass."""
    passing: dict[str, NDArray[np.intp]] = {}
    for query, where in list(zip(queries, conditions, strict=True))[:WARM_UP]:
        store.search(query, k, where)
    samples, recalls, answered, possible_answers, sizes = [], [], 0, 0, []
    for query, where in zip(queries, conditions, strict=True):
        hits, nanoseconds = clock.time_call(partial(store.search, query, k, where))
        samples.append(nanoseconds)
        rows = passing.setdefault(str(where), _rows_passing(fields, where))
        nearest, scores = brute_force.nearest(query[None], documents[rows], k)
        returned = rows_of(hits)
        allowed = returned[np.isin(returned, rows)]
        recalls.append(brute_force.recall_of_rows(allowed, query, documents, rows[nearest[0]], scores[0]))
        answered += len(allowed)
        possible_answers += nearest.shape[1]
        sizes.append(len(rows))
    return Filtered(
        name=name,
        passing=float(np.mean(sizes)),
        recall=float(np.mean(recalls)),
        full=answered / possible_answers if possible_answers else 1.0,
        latency=percentiles(samples),
    )


def _rows_passing(fields: Sequence[Mapping[str, Any]], where: Where | None) -> NDArray[np.intp]:
    wanted = (where or {}).items()
    return np.flatnonzero([all(document.get(field) == value for field, value in wanted) for document in fields])


def _field(share: float) -> str:
    return f"share_{share:g}"


def filter_test_saved(name: str, options: dict[str, Any], saved: Path, folder: Path, **how: Any) -> FilterTest:
    """Runs in its own process: create the store in `folder`, measure, remove it."""
    sample = VectorSample.load(saved)
    store = STORES.create(name, dimensions=sample.dimensions, folder=folder, **options)
    try:
        return filter_test(store, sample, options=options, **how)
    finally:
        store.discard()
