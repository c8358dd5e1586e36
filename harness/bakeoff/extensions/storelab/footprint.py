"""Resources of a store: build time, time until searchable, disk, memory, and how they grow.

Each store is built at two sizes, which give a line. Each build has its own process, so that memory is not mixed up.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.errors import BakeoffError, Unavailable

from bakeoff.core.clock import time_call
from bakeoff.core.facts import Fact
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.extensions.storelab.client_loops import in_own_process
from bakeoff.extensions.storelab.vector_sample import FORMAT, VectorSample
from bakeoff.running.settings import this_machine
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.scratch import scratch

SIZES = (1_000_000, 100_000_000)


class Measured(msgspec.Struct, kw_only=True):
    """One store at one size. Figures that a server does not report are None."""

    documents: int
    add_seconds: float
    build_seconds: float
    searchable_seconds: float
    disk_bytes: int | None
    resident_bytes: int
    server_bytes: int | None
    size_model_bytes: float
    formula: str
    exact: bool


class SizeProjection(msgspec.Struct, kw_only=True):
    """Estimates for a larger number of documents."""

    documents: int
    build_seconds: float
    disk_bytes: float | None
    resident_bytes: float
    size_model_bytes: float


class Footprint(msgspec.Struct, kw_only=True, frozen=True):
    """One store: measurements and projections."""

    store: str
    label: str
    options: dict[str, Any]
    measured: list[Measured] = []
    projections: list[SizeProjection] = []
    formulas: dict[str, str] = {}
    not_run: str | None = None


class Footprints(msgspec.Struct, kw_only=True):
    """`footprint.json`. In format 1, warnings were text."""

    sample: str
    dimensions: int
    stores: list[Footprint]
    warnings: list[Fact | str]
    machine: Machine
    format: int = 1


def footprints(
    sample: VectorSample, stores: Sequence[tuple[str, Mapping[str, Any]]], *, progress: Progress = silent
) -> Footprints:
    """Measure every store at half and at full size."""
    machine = this_machine()
    measured: list[Footprint] = []
    with scratch("footprint") as folder:
        sample.save(folder)
        with progress("footprint", 2 * len(stores)) as advance:
            for store, options in stores:
                measured.append(_footprint(store, dict(options), folder, len(sample.documents)))
                advance(2)
    machine = after_work(machine)
    return Footprints(
        sample=sample.name, dimensions=sample.dimensions, stores=measured, warnings=[*sample.warnings()],
        machine=machine, format=FORMAT,
    )  # fmt: skip


def _footprint(store: str, options: dict[str, Any], folder: Path, documents: int) -> Footprint:
    label = STORES.get(store).label(options)
    sizes: list[Measured] = []
    try:
        if reason := STORES.get(store).missing(**options):
            raise Unavailable(reason)
        for size in (documents // 2, documents):
            sizes.append(in_own_process(_measure_saved, store, options, folder, size))
    except BakeoffError as error:
        return Footprint(store=store, label=label, options=options, measured=sizes, not_run=str(error))
    small, large = sizes
    formulas, projections = project(small, large)
    return Footprint(
        store=store, label=label, options=options, measured=sizes, projections=projections, formulas=formulas
    )


def _measure_saved(store: str, options: dict[str, Any], folder: Path, documents: int) -> Measured:
    """Runs in the other process, which reads the vectors itself."""
    sample = VectorSample.load(folder)
    vectors = np.array(sample.documents[:documents])
    return measure(store, options, vectors, np.array(sample.queries[0]), store_folder(folder))


def store_folder(folder: Path) -> Path:
    """A new folder for a store, readable by others, since a server may run as another user."""
    place = Path(tempfile.mkdtemp(prefix="store-", dir=folder))
    place.chmod(0o755)
    folder.chmod(0o755)
    return place


def measure(store: str, options: dict[str, Any], vectors: Any, query: Any, folder: Path) -> Measured:
    """Build one store in this process and measure what it added."""
    built = STORES.create(store, dimensions=int(vectors.shape[1]), folder=folder, **options)
    ids = [str(row) for row in range(len(vectors))]
    before = resident()
    _, add_ns = time_call(lambda: built.add(ids, vectors))
    _, build_ns = time_call(built.build)
    _, first_ns = time_call(lambda: built.search(query, 10))
    built.persist()
    after = resident()
    model = built.size_model()
    measured = Measured(
        documents=len(vectors),
        add_seconds=add_ns / 1e9,
        build_seconds=build_ns / 1e9,
        searchable_seconds=(add_ns + build_ns + first_ns) / 1e9,
        disk_bytes=built.size_bytes(),
        resident_bytes=max(0, after - before),
        server_bytes=_server(built),
        size_model_bytes=model.bytes(len(vectors)),
        formula=model.formula,
        exact=built.capabilities.exact,
    )
    built.discard()
    return measured


def resident() -> int:
    """Resident bytes of this process, after freed memory was returned."""
    import psutil

    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def _server(store: Store) -> int | None:
    """Memory of all the server's processes, with shared pages counted once."""
    import psutil

    total = 0
    for pid in store.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            try:
                memory = psutil.Process(pid).memory_full_info()
            except psutil.AccessDenied:
                return None
            total += int(getattr(memory, "pss", memory.uss))
    return total or None


@dataclass(frozen=True, slots=True)
class GrowthLine:
    """Fixed bytes, and bytes per document."""

    fixed: float
    slope: float

    @classmethod
    def through(cls, n1: int, bytes1: float, n2: int, bytes2: float) -> GrowthLine:
        """The line through two sizes. If it has a negative part, scale the larger size in proportion."""
        slope = (bytes2 - bytes1) / (n2 - n1)
        fixed = bytes2 - slope * n2
        return cls(fixed, slope) if slope > 0 and fixed >= 0 else cls(0.0, bytes2 / n2)

    def at(self, documents: int) -> float:
        """Bytes for this many documents."""
        return self.fixed + self.slope * documents

    def __str__(self) -> str:
        return f"{self.fixed / 1e6:.1f} MB + {self.slope:.0f} bytes · n"


def project(
    small: Measured, large: Measured, sizes: Sequence[int] = SIZES
) -> tuple[dict[str, str], list[SizeProjection]]:
    """Extrapolate: bytes linearly, build time by n · log n for a graph and by n for an exact store."""
    disk = None
    if small.disk_bytes is not None and large.disk_bytes is not None:
        disk = GrowthLine.through(small.documents, small.disk_bytes, large.documents, large.disk_bytes)
    memory = GrowthLine.through(small.documents, _memory(small), large.documents, _memory(large))
    size_model = GrowthLine.through(small.documents, small.size_model_bytes, large.documents, large.size_model_bytes)
    growth = (lambda n: float(n)) if large.exact else (lambda n: n * math.log2(max(n, 2)))
    rate = (large.add_seconds + large.build_seconds) / growth(large.documents)
    formulas = {
        "build": f"{rate:.3g} s · n" + ("" if large.exact else " · log2 n"),
        **({} if disk is None else {"disk": str(disk)}),
        "memory": str(memory),
        "size_model": large.formula,
    }
    projections = [
        SizeProjection(
            documents=documents,
            build_seconds=rate * growth(documents),
            disk_bytes=None if disk is None else disk.at(documents),
            resident_bytes=memory.at(documents),
            size_model_bytes=size_model.at(documents),
        )
        for documents in sizes
    ]
    return formulas, projections


def _memory(measured: Measured) -> int:
    return measured.resident_bytes + (measured.server_bytes or 0)
