"""The machine that a run was measured on. Latencies mean nothing without it."""

from __future__ import annotations

import datetime
import functools
import os
import platform
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
from bakeoff_providers.registry import snapshot_packages

from bakeoff.core.facts import Public
from bakeoff.core.figures import CallTime

ALWAYS_RECORDED = ("bakeoff", "numpy")
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of a run. Loads are one-minute averages."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    python: str
    versions: Public[dict[str, str]]
    threads: dict[str, str]
    load_before: float
    load_after: float = 0.0


def machine(distributions: Iterable[str] = (), threads: Mapping[str, int] | None = None) -> Machine:
    """This process's machine. The caller names the packages to record and their thread limits."""
    names = dict.fromkeys((*ALWAYS_RECORDED, *distributions))
    state = snapshot_packages()
    pinned = {name: str(count) for name, count in (threads or {}).items()}
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory_gb=_memory_gb(),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        versions={name: installed for name in names if (installed := _version(name, state))},
        threads={name: os.environ[name] for name in THREAD_SETTINGS if name in os.environ} | pinned,
        load_before=load(),
    )


def after_work(before: Machine) -> Machine:
    """The same machine, with the load at the end."""
    return msgspec.structs.replace(before, load_after=load())


@functools.cache
def machine_name() -> str:
    """The processor and its cores, as stored in results."""
    return f"{_cpu()}, {os.cpu_count() or 0} cores"


def call_time(nanoseconds: int) -> CallTime:
    """The time of a call that was just made here."""
    now = datetime.datetime.now(datetime.UTC)
    return CallTime(nanoseconds, now.isoformat(timespec="seconds"), machine_name())


def load() -> float:
    """The one-minute load average; 0 if the system has none."""
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


@lru_cache(maxsize=256)
def _version(name: str, state: object) -> str | None:  # noqa: ARG001 - what is installed depends on it
    from importlib.metadata import PackageNotFoundError, version  # here because it takes long

    try:
        return version(name)
    except PackageNotFoundError:
        return None
