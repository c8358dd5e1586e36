"""Churn: recall and latency of a store while documents are inserted, deleted and updated.

Recall is against exact search over what the store should contain at that moment. It is measured between writes, since
the right result of a search during a write is undefined. Latency is measured during writes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core import clock
from bakeoff.core.clock import percentiles
from bakeoff.core.figures import Percentiles
from bakeoff.extensions.storelab.client_loops import (
    ClientSamples,
    percentiles_of,
    pool_times,
    run_closed_loop,
    run_closed_loop_during,
)
from bakeoff.extensions.storelab.vector_sample import VectorSample, rows_of
from bakeoff.search import brute_force
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store


class ReadWriteLock:
    """A read-write lock for engines that can't be searched during a write. Writers have priority."""

    def __init__(self, *, needed: bool) -> None:
        self._needed = needed
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0  # waiting or at work
        self._writing = False

    @contextmanager
    def hold_for_reading(self) -> Iterator[None]:
        """Wait until no write is pending."""
        if not self._needed:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._writers)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def hold_for_writing(self) -> Iterator[None]:
        """Block new searches during the write."""
        if not self._needed:
            yield
            return
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: not self._readers and not self._writing)
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writers -= 1
                self._writing = False
                self._changed.notify_all()


CHECKS = 5  # recall checks during the writes
WRITES = 20  # writes between two checks; each inserts, deletes and updates
ASKED = 200  # queries per check
MOST = 25.0  # per cent; beyond it too few original documents remain

Rows = NDArray[np.int64]


PhaseName = Literal["before", "during", "after", "built again"]


class Phase(msgspec.Struct, kw_only=True, frozen=True):
    """One phase: before, during or after. `stale` counts results that were already deleted."""

    name: PhaseName
    documents: int
    recall: float
    lowest_recall: float
    stale: int
    latency: Percentiles
    errors: dict[str, int] = {}


class Writes(msgspec.Struct, kw_only=True, frozen=True):
    """One store under writes. `waits` means that searches had to wait for writes."""

    store: str
    label: str
    options: dict[str, Any]
    share: float
    changed: int = 0
    in_place: bool = False
    waits: bool = False
    written_per_second: float = 0.0
    write: Percentiles = Percentiles(0)
    rebuild_seconds: float | None = None
    phases: list[Phase] = []
    not_run: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One write: rows to insert, delete and update."""

    inserted: Rows
    deleted: Rows
    updated: Rows
    replacements: Vectors


class ExpectedContents:
    """What the store should contain: each row's vector, and whether it is present."""

    def __init__(self, vectors: Vectors, present: int) -> None:
        self.vectors = vectors.copy()
        self._there = np.arange(len(vectors)) < present

    def apply(self, change: Write) -> None:
        """Apply a write."""
        self._there[change.inserted] = True
        self._there[change.deleted] = False
        self.vectors[change.updated] = change.replacements

    @property
    def rows(self) -> Rows:
        """The rows present now."""
        return np.flatnonzero(self._there)

    def look(self, store: Store, queries: Vectors, k: int) -> tuple[float, int]:
        """Recall against exact search over the present rows, and the number of stale results."""
        rows = self.rows
        nearest, scores = brute_force.nearest(queries, self.vectors[rows], k)
        recalls, stale = [], 0
        for query, places, best in zip(queries, nearest, scores, strict=True):
            hits = rows_of(store.search(query, k))
            known = self._there[hits]
            stale += int(np.count_nonzero(~known))
            recalls.append(brute_force.recall_of_rows(hits[known], query, self.vectors, rows[places], best))
        return float(np.mean(recalls)), stale


def plan_writes(vectors: Vectors, share: float, seed: int = 42) -> tuple[ExpectedContents, list[Write]]:
    """Shuffle the vectors. Most are present at first; half of the rest are inserted, half replace others."""
    rng = np.random.default_rng(seed)
    vectors = vectors[rng.permutation(len(vectors))]
    changed = round(len(vectors) * share / 100)
    present = len(vectors) - 2 * changed
    if not changed or present < 2 * changed:
        raise InputError(
            f"{share:g} % of {len(vectors)} documents can't be inserted, deleted and updated",
            place="--writes",
            remedy=f"from {100 / len(vectors):.2g} to {MOST:g} per cent",
        )
    drawn = rng.permutation(present)[: 2 * changed]
    parts = min(changed, CHECKS * WRITES)
    changes = [
        Write(*each)
        for each in zip(
            np.array_split(np.arange(present, present + changed), parts),
            np.array_split(drawn[:changed], parts),
            np.array_split(drawn[changed:], parts),
            np.array_split(vectors[present + changed :], parts),
            strict=True,
        )
    ]
    return ExpectedContents(vectors[: present + changed], present), changes


def churn(
    store: Store,
    sample: VectorSample,
    share: float,
    *,
    options: dict[str, Any] | None = None,
    k: int = 10,
    clients: int = 1,
    seconds: float = 5.0,
    seed: int = 42,
) -> Writes:
    """Fill the store, then insert, delete and update `share` per cent each while searching."""
    contents, changes = plan_writes(sample.documents, share, seed)
    queries = sample.queries[:ASKED]
    lock = ReadWriteLock(needed=not store.reads_while_writing)
    rows = contents.rows
    store.add([str(row) for row in rows], contents.vectors[rows])
    store.build()

    def search(request: int) -> None:
        with lock.hold_for_reading():
            store.search(sample.queries[request % len(sample.queries)], k)

    def phase(name: PhaseName, looks: Sequence[tuple[float, int]], answers: Sequence[ClientSamples]) -> Phase:
        recalls = [recall for recall, _ in looks]
        return Phase(
            name=name,
            documents=len(contents.rows),
            recall=float(np.mean(recalls)),
            lowest_recall=min(recalls),
            stale=sum(stale for _, stale in looks),
            latency=percentiles_of(pool_times(answers)),
            errors=dict(sum((client.errors for client in answers), Counter())),
        )

    def quiet(name: PhaseName) -> Phase:
        return phase(name, [contents.look(store, queries, k)], run_closed_loop(search, clients, seconds / CHECKS)[0])

    search(0)
    before = quiet("before")
    looks: list[tuple[float, int]] = []
    answers: list[ClientSamples] = []
    write_ns: list[int] = []
    for batch in _batches(changes):
        work = partial(_write, store, lock, contents, batch, seconds / CHECKS, write_ns)
        answers += run_closed_loop_during(search, clients, work)[0]
        looks.append(contents.look(store, queries, k))
    phases = [before, phase("during", looks, answers), quiet("after")]
    rebuild_seconds = None
    if type(store).build is not Store.build:
        rebuild_seconds = clock.time_call(store.build)[1] / 1e9
        phases.append(quiet("built again"))
    return Writes(
        store=store.name,
        label=store.label(options or {}),
        options=options or {},
        share=share,
        changed=sum(len(change.inserted) for change in changes),
        in_place=store.capabilities.updates,
        waits=not store.reads_while_writing,
        written_per_second=3 * sum(len(change.inserted) for change in changes) / (sum(write_ns) / 1e9),
        write=percentiles(write_ns),
        rebuild_seconds=rebuild_seconds,
        phases=phases,
    )


def _batches(changes: Sequence[Write]) -> Iterator[Sequence[Write]]:
    """The writes between two checks."""
    step = -(-len(changes) // CHECKS)
    for start in range(0, len(changes), step):
        yield changes[start : start + step]


def _write(
    store: Store,
    lock: ReadWriteLock,
    contents: ExpectedContents,
    batch: Sequence[Write],
    seconds: float,
    write_ns: list[int],
) -> None:
    """Spread the writes over this time, or write as fast as the store can."""
    begin, pause = clock.now(), seconds / len(batch)
    for place, change in enumerate(batch):
        time.sleep(max(0.0, place * pause - (clock.now() - begin) / 1e9))
        for write in (
            partial(store.add, _ids(change.inserted), contents.vectors[change.inserted]),
            partial(store.delete, _ids(change.deleted)),
            partial(store.add, _ids(change.updated), change.replacements),
        ):
            with lock.hold_for_writing():
                write_ns.append(clock.time_call(write)[1])
        contents.apply(change)


def _ids(rows: Rows) -> list[str]:
    return [str(row) for row in rows]


def churn_saved(name: str, options: dict[str, Any], saved: Path, folder: Path, share: float, **how: Any) -> Writes:
    """Runs in its own process: create the store in `folder`, measure, remove it."""
    sample = VectorSample.load(saved)
    store = STORES.create(name, dimensions=sample.dimensions, folder=folder, **options)
    try:
        return churn(store, sample, share, options=options, **how)
    finally:
        store.discard()
