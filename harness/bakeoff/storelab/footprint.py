"""What a store takes: time to build, time until it can be searched, disk, memory, and how that grows.

Each store is built in a process of its own, at two sizes: the memory of one is not mistaken for another's, and two
sizes make a line.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import multiprocessing
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.errors import BakeoffError, Unavailable

from bakeoff.core.clock import timed
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.run.environment import this_machine
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.storelab.vector_sample import VectorSample

SIZES = (1_000_000, 100_000_000)


class Measured(msgspec.Struct, kw_only=True):
    """One store with so many documents. What a server does not tell is absent."""

    documents: int
    add_seconds: float
    build_seconds: float
    searchable_seconds: float
    disk_bytes: int | None
    resident_bytes: int
    server_bytes: int | None
    theory_bytes: float
    formula: str
    exact: bool


class Projection(msgspec.Struct, kw_only=True):
    """The same for a number of documents that was not tried."""

    documents: int
    build_seconds: float
    disk_bytes: float | None
    resident_bytes: float
    theory_bytes: float


class Footprint(msgspec.Struct, kw_only=True):
    """One store: what was measured, and the lines through it."""

    store: str
    options: dict[str, Any]
    measured: list[Measured] = []
    projections: list[Projection] = []
    formulas: dict[str, str] = {}
    not_run: str | None = None


class Footprints(msgspec.Struct, kw_only=True):
    """`footprint.json`."""

    sample: str
    dimensions: int
    stores: list[Footprint]
    warnings: list[str]
    machine: Machine


def footprints(
    sample: VectorSample, stores: Sequence[tuple[str, Mapping[str, Any]]], *, progress: Progress = silent
) -> Footprints:
    """Every store at half and at full size."""
    machine = this_machine()
    found = []
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-footprint-"))
    try:
        np.save(folder / "vectors.npy", sample.documents)
        np.save(folder / "query.npy", sample.queries[0])
        with progress("footprint", 2 * len(stores)) as advance:
            for store, options in stores:
                made = Footprint(store=store, options=dict(options))
                try:
                    for documents in (len(sample.documents) // 2, len(sample.documents)):
                        made.measured.append(_in_a_process(store, dict(options), folder, documents))
                        advance(1)
                    project(made)
                except BakeoffError as error:
                    made.not_run = str(error)
                found.append(made)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    machine = after_work(machine)
    return Footprints(
        sample=sample.name, dimensions=sample.dimensions, stores=found, warnings=sample.warnings(), machine=machine
    )


def _in_a_process(store: str, options: dict[str, Any], folder: Path, documents: int) -> Measured:
    if reason := STORES.get(store).missing(**options):
        raise Unavailable(reason)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        problem, measured = pool.submit(_measure, store, options, str(folder), documents).result()
    if measured is None:
        raise Unavailable(problem)
    return msgspec.convert(measured, Measured)


def _measure(store: str, options: dict[str, Any], folder: str, documents: int) -> tuple[str, dict[str, Any] | None]:
    """In the other process; errors go back as words, since not every exception can travel."""
    place = Path(tempfile.mkdtemp(prefix="store-", dir=folder))
    place.chmod(0o755)  # a server may run as another user
    Path(folder).chmod(0o755)
    try:
        vectors = np.load(Path(folder) / "vectors.npy")[:documents].copy()
        return "", msgspec.to_builtins(measure(store, options, vectors, np.load(Path(folder) / "query.npy"), place))
    except BakeoffError as error:
        return str(error), None


def measure(store: str, options: dict[str, Any], vectors: Any, query: Any, folder: Path) -> Measured:
    """Builds one store in this process and weighs what it added to it."""
    made = STORES.create(store, dimensions=int(vectors.shape[1]), folder=folder, **options)
    ids = [str(row) for row in range(len(vectors))]
    before = resident()
    _, added = timed(lambda: made.add(ids, vectors))
    _, built = timed(made.build)
    _, first = timed(lambda: made.search(query, 10))
    made.persist()
    after = resident()
    theory = made.size_model()
    found = Measured(
        documents=len(vectors),
        add_seconds=added / 1e9,
        build_seconds=built / 1e9,
        searchable_seconds=(added + built + first) / 1e9,
        disk_bytes=made.size_bytes(),
        resident_bytes=max(0, after - before),
        server_bytes=_server(made),
        theory_bytes=theory.bytes(len(vectors)),
        formula=theory.formula,
        exact=made.capabilities.exact,
    )
    made.discard()
    return found


def resident() -> int:
    """Bytes of this process that are in memory, after what is free was given back."""
    import psutil

    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def _server(store: Store) -> int | None:
    """All of a server's processes; pages that they share are counted once."""
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


def project(made: Footprint, sizes: Sequence[int] = SIZES) -> None:
    """Bytes grow along the line through the two sizes; a graph's time by n · log n, an exact store's by n."""
    small, large = made.measured
    disk = _line(small.documents, small.disk_bytes, large.documents, large.disk_bytes)
    memory = _line(small.documents, _memory(small), large.documents, _memory(large))
    theory = _line(small.documents, small.theory_bytes, large.documents, large.theory_bytes)
    assert memory is not None
    assert theory is not None
    seconds = large.add_seconds + large.build_seconds
    growth = (lambda n: float(n)) if large.exact else (lambda n: n * math.log2(max(n, 2)))
    each = seconds / growth(large.documents)
    made.formulas = {
        "build": f"{each:.3g} s · n" + ("" if large.exact else " · log2 n"),
        "disk": _words(disk),
        "memory": _words(memory),
        "theory": large.formula,
    }
    made.projections = [
        Projection(
            documents=documents,
            build_seconds=each * growth(documents),
            disk_bytes=None if disk is None else disk[0] + disk[1] * documents,
            resident_bytes=memory[0] + memory[1] * documents,
            theory_bytes=theory[0] + theory[1] * documents,
        )
        for documents in sizes
    ]


def _memory(measured: Measured) -> int:
    return measured.resident_bytes + (measured.server_bytes or 0)


def _line(n1: int, bytes1: float | None, n2: int, bytes2: float | None) -> tuple[float, float] | None:
    """Fixed bytes and bytes a document; where the line would fall below zero, in proportion."""
    if bytes1 is None or bytes2 is None:
        return None
    slope = (bytes2 - bytes1) / (n2 - n1)
    fixed = bytes2 - slope * n2
    return (fixed, slope) if slope > 0 and fixed >= 0 else (0.0, bytes2 / n2)


def _words(line: tuple[float, float] | None) -> str:
    return "not known" if line is None else f"{line[0] / 1e6:.1f} MB + {line[1]:.0f} bytes · n"
