"""Latency that can be trusted, or that says why not: raw samples, the machine they came from, and their doubts."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

T = TypeVar("T")

now = time.perf_counter_ns  # the one clock of everything that is timed

SAMPLES_FOR = {50: 5, 95: 60, 99: 300}  # fewer samples than this say nothing about the percentile
RECORDED = ("bakeoff", "numpy", "faiss-cpu", "chromadb", "onnxruntime", "scikit-learn", "bm25s", "wordllama", "ollama",
            "pgvector", "psycopg", "qdrant-edge-py", "qdrant-client", "lancedb", "sqlite-vec", "usearch", "hnswlib",
            "duckdb")  # fmt: skip


class Percentiles(msgspec.Struct, frozen=True):
    """Milliseconds; a percentile that the number of samples does not support is absent."""

    n: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Timing(msgspec.Struct, kw_only=True):
    """Raw nanoseconds of one contender. The cold first call stands apart; warm-up is not kept."""

    embed_ns: list[int] = []
    search_ns: list[int] = []
    total_ns: list[int] = []
    cold_embed_ns: int | None = None
    cold_search_ns: int | None = None


class Machine(msgspec.Struct, kw_only=True):
    """Where the samples come from: without this a latency is a number with no meaning."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    python: str
    versions: dict[str, str]
    threads: dict[str, str]
    load_before: float
    load_after: float = 0.0


def timed(call: Callable[[], T]) -> tuple[T, int]:
    """The call's answer and its nanoseconds."""
    start = now()
    answer = call()
    return answer, now() - start


def percentiles(samples_ns: Sequence[int]) -> Percentiles:
    """The percentiles that this many samples support."""
    n = len(samples_ns)
    values = {f"p{q}": float(np.percentile(samples_ns, q)) / 1e6 for q, needed in SAMPLES_FOR.items() if n >= needed}
    return Percentiles(n, **values)


def doubts(timing: Timing, machine: Machine, *, local: bool) -> list[str]:
    """Why this row's timing can't be trusted, each with its remedy; nothing when it can."""
    found = []
    if machine.cores and max(machine.load_before, machine.load_after) > machine.cores:
        load = max(machine.load_before, machine.load_after)
        found.append(f"the machine was busy (load {load:.1f} on {machine.cores} cores): run it again when it is idle")
    if timing.search_ns and len(timing.search_ns) < SAMPLES_FOR[95]:
        found.append(f"{len(timing.search_ns)} samples are too few for p95 ({SAMPLES_FOR[95]} needed): raise --rounds")
    for what, samples in (("embedding", timing.embed_ns), ("search", timing.search_ns)):
        if len(samples) >= 20 and np.percentile(samples, 95) > 5 * np.percentile(samples, 50):
            found.append(f"{what} times scatter (p95 is over 5 × p50): close other programs, raise --rounds")
    if not local and not timing.embed_ns:
        found.append("query vectors came from the cache: embedding was not timed (--no-cache times it, and pays)")
    return found


def machine() -> Machine:
    """What this process runs on, with the versions and thread settings that move a latency."""
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory_gb=_memory_gb(),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        versions={name: found for name in RECORDED if (found := _version(name))},
        threads={name: os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ}
        | {"faiss": "1"},
        load_before=load(),
    )


def load() -> float:
    """The one-minute load average; 0 where the system has none."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return 0.0


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return 0.0


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
