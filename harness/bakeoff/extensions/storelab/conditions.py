"""Stores under writes, filters, tenants and a cold start, which search-only benchmarks leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from bakeoff_providers.errors import BakeoffError, Unavailable

from bakeoff.core.facts import Fact, fact
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.extensions.storelab.churn import Writes, churn_saved, plan_writes
from bakeoff.extensions.storelab.client_loops import in_own_process
from bakeoff.extensions.storelab.cold import ColdStart, cold_start
from bakeoff.extensions.storelab.filtered import SHARES, FilterTest, filter_test_saved, possible_shares
from bakeoff.extensions.storelab.footprint import store_folder
from bakeoff.extensions.storelab.vector_sample import FORMAT, VectorSample
from bakeoff.running.settings import this_machine
from bakeoff.search.stores import STORES
from bakeoff.search.stores.scratch import scratch

Line = TypeVar("Line", Writes, FilterTest, ColdStart)


class ConditionSettings(msgspec.Struct, kw_only=True, frozen=True):
    """The conditions to test: % of documents to write, filters, number of tenants, cold start."""

    writes: float = 0.0
    filters: bool = False
    tenants: int = 0
    cold: bool = False

    def __bool__(self) -> bool:
        return bool(self.writes or self.filters or self.tenants or self.cold)


class Conditions(msgspec.Struct, kw_only=True):
    """`conditions.json`: one line per store and condition. A failure affects only its own line.

    In format 1, warnings were text.
    """

    sample: str
    documents: int
    dimensions: int
    k: int
    clients: int
    writes: list[Writes]
    filters: list[FilterTest]
    cold: list[ColdStart]
    warnings: list[Fact | str]
    machine: Machine
    format: int = 1


def conditions(
    sample: VectorSample,
    stores: Sequence[tuple[str, Mapping[str, Any]]],
    asked: ConditionSettings,
    *,
    k: int = 10,
    clients: int = 1,
    seconds: float = 5.0,
    progress: Progress = silent,
) -> Conditions:
    """Measure every store under every requested condition, each in its own processes."""
    if asked.writes:
        plan_writes(sample.documents, asked.writes)  # refuses an impossible share before anything is built
    machine = this_machine()
    lines = Conditions(
        sample=sample.name,
        documents=len(sample.documents),
        dimensions=sample.dimensions,
        k=k,
        clients=clients,
        writes=[],
        filters=[],
        cold=[],
        warnings=[*sample.warnings(), *_list_left_out(len(sample.documents), asked)],
        machine=machine,
        format=FORMAT,
    )
    with scratch("conditions") as saved, progress("stores under conditions", len(stores)) as advance:
        sample.save(saved)

        def measure_writes(name: str, options: dict[str, Any], folder: Path) -> Writes:
            how = {"k": k, "clients": clients, "seconds": seconds}
            return in_own_process(churn_saved, name, options, saved, folder, asked.writes, **how)

        def measure_filters(name: str, options: dict[str, Any], folder: Path) -> FilterTest:
            how = {"k": k, "shares": SHARES if asked.filters else (), "tenants": asked.tenants}
            return in_own_process(filter_test_saved, name, options, saved, folder, **how)

        def measure_cold(name: str, options: dict[str, Any], folder: Path) -> ColdStart:
            return cold_start(name, options, saved, folder, k)

        for name, options in stores:
            if asked.writes:
                lines.writes.append(_line(Writes, name, dict(options), saved, measure_writes, share=asked.writes))
            if asked.filters or asked.tenants:
                lines.filters.append(_line(FilterTest, name, dict(options), saved, measure_filters))
            if asked.cold:
                lines.cold.append(_line(ColdStart, name, dict(options), saved, measure_cold))
            advance(1)
    lines.machine = after_work(machine)
    return lines


def _line(
    kind: type[Line],
    name: str,
    options: dict[str, Any],
    saved: Path,
    measure: Callable[[str, dict[str, Any], Path], Line],
    **more: Any,
) -> Line:
    """Measure one store under one condition; on failure, a line with the reason."""
    store = STORES.get(name)
    try:
        if reason := store.missing(**options):
            raise Unavailable(reason)
        return measure(name, options, store_folder(saved))
    except BakeoffError as error:
        return kind(store=name, label=store.label(options), options=options, not_run=str(error), **more)


def _list_left_out(documents: int, asked: ConditionSettings) -> list[Fact]:
    if not asked.filters:
        return []
    return [
        fact("storelab.filter_left_out", share=share, documents=documents)
        for share in SHARES
        if share not in possible_shares(documents, SHARES)
    ]
