"""Cold start: time for a new process to open a store from disk and answer its first query."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import Unavailable

from bakeoff.core.clock import time_call
from bakeoff.core.facts import Fact, fact
from bakeoff.extensions.storelab.client_loops import in_own_process
from bakeoff.extensions.storelab.vector_sample import VectorSample
from bakeoff.search.stores import STORES

TIMES = 3  # new processes per state, cold and warm
LATER = 20  # further searches, whose median is the warm latency
_READ, _SHARED = 1, 1  # PROT_READ and MAP_SHARED


class Opened(msgspec.Struct, kw_only=True, frozen=True):
    """Milliseconds in one new process, without imports, which do not depend on size."""

    open_ms: float
    first_ms: float
    later_ms: float


class ColdStart(msgspec.Struct, kw_only=True, frozen=True):
    """One store opened by new processes, first with cold files, then with warm ones."""

    store: str
    label: str
    options: dict[str, Any]
    disk_bytes: int | None = None
    dropped: Fact | str = ""  # words in format 1
    cold: list[Opened] = []
    warm: list[Opened] = []
    not_run: str | None = None


def cold_start(name: str, options: dict[str, Any], saved: Path, folder: Path, k: int = 10) -> ColdStart:
    """Fill a store in `folder` in one process, then open it in others."""
    query = np.array(VectorSample.load(saved).queries[0])
    label = STORES.get(name).label(options)
    disk_bytes = in_own_process(_fill, name, options, saved, folder)[0]
    files = files_under(folder)
    dropped: Fact | str = ""
    cold, warm = [], []
    for _ in range(TIMES):
        dropped = drop_from_memory(files)
        cold.append(in_own_process(open_again, name, options, folder, query, k))
    for _ in range(TIMES):
        warm.append(in_own_process(open_again, name, options, folder, query, k))
    in_own_process(_discard, name, options, folder, len(query))
    return ColdStart(
        store=name, label=label, options=options, disk_bytes=disk_bytes, dropped=dropped, cold=cold, warm=warm
    )


def drop_from_memory(files: list[Path]) -> Fact:
    """Evict the files from the page cache, and report the outcome."""
    if not files:
        return fact("storelab.files_of_a_server")
    if not evict(files):
        return fact("storelab.no_eviction")
    return fact("storelab.evicted", files=len(files), resident_share=resident_share(files))


def _fill(name: str, options: dict[str, Any], saved: Path, folder: Path) -> tuple[int | None]:
    """The size on disk, in a tuple since a server may not report one."""
    sample = VectorSample.load(saved)
    store = STORES.create(name, dimensions=sample.dimensions, folder=folder, **options)
    if not store.capabilities.persistent:
        store.discard()
        raise Unavailable("is not persistent, so it can't be opened again")
    store.add(sample.ids, np.array(sample.documents))
    store.build()
    store.persist()
    size = store.size_bytes()
    store.close()
    return (size,)


def open_again(name: str, options: dict[str, Any], folder: Path, query: Vectors, k: int) -> Opened:
    """Runs in a new process. The engine's library is imported before the clock starts."""
    import importlib

    for module in STORES.get(name).modules:
        importlib.import_module(module)
    store, open_ns = time_call(lambda: STORES.create(name, dimensions=len(query), folder=folder, **options))
    hits, first_ns = time_call(lambda: store.search(query, k))
    if not len(hits.ids):
        raise Unavailable("returns nothing after it was opened again")
    later = [time_call(lambda: store.search(query, k))[1] for _ in range(LATER)]
    store.close()
    return Opened(open_ms=open_ns / 1e6, first_ms=first_ns / 1e6, later_ms=float(np.median(later)) / 1e6)


def _discard(name: str, options: dict[str, Any], folder: Path, dimensions: int) -> bool:
    STORES.create(name, dimensions=dimensions, folder=folder, **options).discard()
    return True


def median(openings: list[Opened], field: str) -> float:
    """The median of a field over processes."""
    return float(statistics.median(getattr(each, field) for each in openings))


def files_under(folder: Path) -> list[Path]:
    """All regular files, sorted."""
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink()]


def evict(files: Iterable[Path]) -> bool:
    """Flush the files and evict their pages. False if the system can't."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for file in files:
        with contextlib.suppress(OSError):
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
    return True


def resident_share(files: Iterable[Path]) -> float | None:
    """The share of the files' pages in memory; None if unknown."""
    try:
        libc = ctypes.CDLL("libc.so.6", use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    except (OSError, AttributeError):
        return None
    pages = held = 0
    for file in files:
        size = file.stat().st_size
        count = -(-size // mmap.PAGESIZE)
        if not size:
            continue
        handle = os.open(file, os.O_RDONLY)
        try:
            address = libc.mmap(None, size, _READ, _SHARED, handle, 0)
            flags = ctypes.create_string_buffer(count)
            if address in (None, ctypes.c_void_p(-1).value) or libc.mincore(address, size, flags):
                return None
            libc.munmap(address, size)
        finally:
            os.close(handle)
        pages += count
        held += sum(byte & 1 for byte in flags.raw)
    return held / pages if pages else None
