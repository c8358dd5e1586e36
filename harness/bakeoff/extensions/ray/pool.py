"""A Ray cluster: found or started, checked, and the pool of its worker processes that embed for one contender."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import secrets
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import BakeoffError, EmbeddingFailed, InputError, Unavailable

from bakeoff.core.remote import SharedFolder
from bakeoff.embedding.space import Space
from bakeoff.extensions.ray.workers import Done, EmbedWorker, SharedLimits, WorkerJob
from bakeoff.search.stores.scratch import scratch

LOOPBACK = "127.0.0.1"
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0" keeps Ray to the loopback interface
_CLIENT = "ray://"
STORE_BYTES = 256 << 20  # object store of a local cluster; vectors are in files, not in it
_SECONDS = 60  # seconds for a node to report
_CONNECT_SECONDS = 10


def connect(address: str, workers: int) -> Callable[[], None]:
    """Join the cluster at this address, or start a loopback-only one here. Returns how to end it."""
    if not address:
        os.environ[_CLUSTERS] = "0"  # read when Ray is imported, here and by its processes
    import ray
    from ray._private import ray_constants
    from ray._private.authentication import authentication_token_setup

    if ray.is_initialized():  # by the calling program
        return lambda: None
    common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "namespace": "bakeoff"}
    if address:
        with _own_signals():
            try:
                _check_listening(address)
                # Use an existing token, as `ray start` does; Ray Client and RAY_ADDRESS would ignore it.
                authentication_token_setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
                ray.init(address=address, **common)
            except Exception as error:  # ConnectionError, RuntimeError for versions, ValueError, gRPC's own
                raise Unavailable(_unreachable(address, error)) from error
        return lambda: ray.shutdown()
    ray_constants.ENABLE_RAY_CLUSTER = False  # if Ray was already imported
    resources = contextlib.ExitStack()
    folder = resources.enter_context(scratch("ray"))

    def end() -> None:
        ray.shutdown()
        resources.close()

    with _own_signals():
        try:
            ray.init(
                address="local",
                num_cpus=max(workers, os.cpu_count() or 1),
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                _node_ip_address=LOOPBACK,
                _temp_dir=str(folder),
                **common,
            )
        except Exception as error:
            resources.close()
            raise Unavailable(f"Ray did not start here: {_first_line(error)}") from error
    if others := [node["NodeManagerAddress"] for node in ray.nodes() if node["NodeManagerAddress"] != LOOPBACK]:
        end()
        raise Unavailable(f"Ray would listen on {others[0]}, which other machines can reach, so it was stopped")
    return end


def _check_listening(address: str) -> None:
    """Fail at once if nothing listens there; Ray would retry for minutes."""
    address = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()


def _unreachable(address: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    if "ersion mismatch" in text or "versions" in text:
        return f"version mismatch with the Ray cluster at {address}: {text[:400]}"
    refused = f"the Ray cluster at {address} requires its token"
    if "AuthToken" in f"{text} {error.__cause__}":
        return f"{refused}: set RAY_AUTH_TOKEN, or put it into ~/.ray/auth_token"
    or_token = f", or {refused}" if address.startswith(_CLIENT) else ""  # Ray Client does not say which
    return (
        f"no Ray cluster at {address} ({_first_line(error)}){or_token}: start one with `ray start --head`, "
        "or leave --address out"
    )


def check_capacity(workers: int, gpus: float) -> int:
    """The number of workers (0: as many as fit). A worker needs all its GPUs on one node."""
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    capacities = [int(min(node.get("CPU", 0), node.get("GPU", 0) / gpus if gpus else math.inf)) for node in nodes]
    count = workers or sum(capacities)
    if count > sum(capacities) or not count:
        has = f"{sum(node.get('CPU', 0) for node in nodes):g} processors"
        has += f" and {sum(node.get('GPU', 0) for node in nodes):g} GPUs" if gpus else ""
        most = max((node.get("GPU", 0) for node in nodes), default=0)
        has += f", at most {most:g} on one node" if gpus and len(nodes) > 1 else ""
        each = f" with {gpus:g} GPUs each" if gpus else ""
        raise InputError(
            f"{count or 'some'} workers{each} requested, but the cluster has {has}",
            place="engine workers" + (", gpus_per_worker" if gpus else ""),
            remedy="request fewer, or omit workers" if sum(capacities) else "request fewer GPUs, or none",
        )
    return count


def check_nodes(
    needs: Mapping[str, tuple[tuple[str, ...], str]], shared: SharedFolder | None, vectors: Sequence[Path] = ()
) -> None:
    """Check every node's versions, libraries for these contenders, and access to these folders."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with contextlib.nullcontext("") if shared is None else shared.mark() as mark:
        folders: dict[str, tuple[str | Path, str]] = {}
        if shared is not None:
            here = "set BAKEOFF_HOME to a folder that all nodes see"
            there = "install what fsspec needs for it there, with the same settings as here"
            folders[mark] = shared.address, there if shared.remote else here
        for folder in vectors:  # read-only, so identified by their contents
            for file in islice(folder.resolve().glob("*/*.json"), 1):
                folders[str(file)] = folder, "give --vectors a folder that all nodes see under this path"
        asked = []
        for node in ray.nodes():
            if node["Alive"]:
                where = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
                task = ray.remote(num_cpus=0, max_retries=0)(_examiner(needs, list(folders)))
                asked.append((node["NodeManagerAddress"], task.options(scheduling_strategy=where).remote()))
        for address, answer in asked:
            try:
                has, lacking, unseen = ray.get(answer, timeout=_SECONDS)
            except Exception as error:
                raise Unavailable(f"Ray's node {address} can't do the work: {_first_line(error)}") from error
            for what, wanted in versions().items():
                if has[what] != wanted:
                    raise Unavailable(
                        f"Ray's node {address} has {what} {has[what]}, this machine {wanted}: "
                        "install the same, with bakeoff[ray], on every node"
                    )
            if lacking:
                label, remedy = next(iter(lacking.items()))
                raise Unavailable(f"Ray's node {address} can't run {label}: {remedy} there")
            for marked, reason in unseen.items():
                named, remedy = folders[marked]
                raise InputError(f"Ray's node {address} does not see this folder ({reason})", file=named, remedy=remedy)


def _examiner(
    needs: Mapping[str, tuple[tuple[str, ...], str]], marks: Sequence[str]
) -> Callable[[], tuple[dict[str, str], dict[str, str], dict[str, str]]]:
    """The remote check: versions, contenders with missing libraries, and marker files that are not visible."""

    def examine() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """Sent by value, so that a node without bakeoff can run it."""
        import importlib.metadata
        import importlib.util
        import pathlib
        import platform

        has = {"python": platform.python_version(), "bakeoff": "none"}
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            has["bakeoff"] = importlib.metadata.version("bakeoff")
        lacking = {
            label: remedy
            for label, (modules, remedy) in needs.items()
            if not all(importlib.util.find_spec(module) for module in modules)
        }
        unseen = {}
        for mark in marks:
            try:
                if "://" in mark:
                    import fsspec

                    system, path = fsspec.core.url_to_fs(mark)
                    seen = system.exists(path)
                else:
                    seen = pathlib.Path(mark).exists()
            except Exception as error:
                unseen[mark] = f"{type(error).__name__}: {error}"
            else:
                if not seen:
                    unseen[mark] = "a different folder there"
        return has, lacking, unseen

    return examine


def versions() -> dict[str, str]:
    """Versions that must match for identical results."""
    return {"python": platform.python_version(), "bakeoff": version("bakeoff")}


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Restore our SIGTERM handler, which Ray replaces; ours tells the user what was saved and how to continue."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


AHEAD = 2  # batches queued per worker, so that none waits for the next
TRIES = 3  # workers that may die on the same batch
SHARD_BYTES, SHARD_SECONDS = 64 << 20, 60.0  # a returned shard is sent at this size or age
PLACE_SECONDS = 120.0  # until at least one worker is scheduled and started
_SHOWN = 60  # characters of a batch's first text shown in errors


class LimitsActor:
    """The pool's shared budget and rate limit, an actor on the driver's node. Workers find it by name."""

    def __init__(self, budget: float | None) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.name = f"bakeoff-limits-{secrets.token_hex(8)}"
        here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(num_cpus=0)(SharedLimits).options(name=self.name, scheduling_strategy=here)
        self._actor = actor.remote(budget)

    def sum_spending(self) -> float | None:
        """Dollars spent by all workers so far; None if the actor has died."""
        import ray

        with contextlib.suppress(Exception):  # Ray raises various errors for a dead process
            return float(ray.get(self._actor.sum_spending.remote()))
        return None

    def close(self) -> None:
        """Kill the actor."""
        _end(self._actor)


@dataclass(eq=False, slots=True)
class _Batch:
    texts: list[str]
    lost: int = 0  # workers that died with it


@dataclass(eq=False, slots=True)
class _PoolWorker:
    actor: Any
    up: bool = False
    has: list[_Batch] = field(default_factory=list)

    def takes(self, again: bool) -> bool:
        """A batch that killed a worker runs alone, so that a second death can be blamed on it."""
        if again or any(batch.lost for batch in self.has):
            return self.up and not self.has
        return self.up and len(self.has) < AHEAD


class EmbedPool:
    """Workers with one CPU each. The next batch goes to a free worker, so that all finish at about the same time.

    A dead worker is replaced here, since Ray would retry the same batch forever.
    """

    def __init__(self, job: WorkerJob, count: int, gpus: float) -> None:
        import ray

        worker = ray.remote(num_cpus=1, num_gpus=gpus)(EmbedWorker)
        self._make: Callable[[], Any] = lambda: worker.remote(job)
        self._workers = [_PoolWorker(self._make()) for _ in range(count)]
        self._stopped = False

    def ready(self, texts: list[str]) -> None:
        """Return when every worker has loaded its model and embedded these texts."""
        import ray

        ray.get([worker.actor.embed.remote(texts) for worker in self._workers])

    def embed(
        self,
        batches: Iterable[list[str]],
        asked: Callable[[list[str]], None] = lambda _: None,
        replaced: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[list[str], Done]]:
        """Results of the batches, in any order. `asked` is called before each batch is sent to a worker."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        fresh, again = iter(batches), deque[_Batch]()
        following = _next(fresh)
        waiting: dict[Any, tuple[_PoolWorker, _Batch | None]] = {}  # None: the worker is starting
        for worker in self._workers:
            waiting[worker.actor.ready.remote()] = worker, None
        while (not self._stopped and (following or again)) or any(worker.has for worker in self._workers):
            for worker in () if self._stopped else self._workers:
                while worker.takes(bool(again)) and (batch := again.popleft() if again else following):
                    following = _next(fresh) if batch is following else following
                    asked(batch.texts)
                    worker.has.append(batch)
                    waiting[worker.actor.embed.remote(batch.texts)] = worker, batch
            limit = None if any(worker.up for worker in self._workers) else PLACE_SECONDS
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=limit)
            if not done:
                raise Unavailable(
                    f"none of {len(self._workers)} workers was scheduled on the cluster within {PLACE_SECONDS:.0f} "
                    "seconds; its processors or GPUs may be busy"
                )
            worker, ended = waiting.pop(done[0])
            try:
                answer = ray.get(done[0])
            except RayTaskError:  # raised inside the worker: the contender failed
                raise
            except RayError as error:
                for reference in [one for one, (whose, _) in waiting.items() if whose is worker]:
                    del waiting[reference]
                again.extend(self._remove_worker(worker, error))
                if worker.up:
                    replaced()
                    self._workers.append(_PoolWorker(self._make()))
                    waiting[self._workers[-1].actor.ready.remote()] = self._workers[-1], None
                continue
            if ended is None:
                worker.up = True
            else:
                worker.has.remove(ended)
                yield ended.texts, answer

    def stop(self) -> None:
        """Send no further batches. Running ones still return."""
        self._stopped = True

    def close(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            _end(worker.actor)

    def _remove_worker(self, worker: _PoolWorker, error: Exception) -> list[_Batch]:
        """Remove a dead worker and return its batches. Raise if no worker could start."""
        _end(worker.actor)  # an unreachable worker may still run
        self._workers.remove(worker)
        if not worker.up and not self._workers:
            raise Unavailable(f"no worker could start on the cluster: {reason_of(error)}") from error
        for batch in worker.has:
            batch.lost += 1
            if batch.lost >= TRIES:
                first = batch.texts[0] if len(batch.texts[0]) <= _SHOWN else batch.texts[0][:_SHOWN] + "…"
                raise EmbeddingFailed(
                    f"{batch.lost} workers died on the same batch of {len(batch.texts)} texts, "
                    f"the first being {first!r}: {reason_of(error)}"
                ) from error
        return worker.has


class Keeper:
    """Writes returned vectors to the local copy batch by batch, and sends them in shards of a useful size."""

    def __init__(self, space: Space, shared: SharedFolder) -> None:
        self._space, self._shared = space, shared
        self._bytes, self._began = 0, 0.0

    def keep(self, texts: list[str], vectors: Vectors, tokens: int | None) -> None:
        """Write one batch to disk. What can't be sent now is sent at the end."""
        if not self._bytes:
            self._began = time.monotonic()
        self._space.put(texts, vectors, tokens)
        self._bytes += vectors.nbytes
        if self._bytes >= SHARD_BYTES or time.monotonic() - self._began >= SHARD_SECONDS:
            self.send()

    def send(self) -> None:
        """Close the current shard and send it."""
        self._bytes = 0
        with contextlib.suppress(BakeoffError):
            self._shared.send_files(self._space.end_shard())


def as_they_end(calls: Iterable[Callable[[], Any]]) -> Iterator[tuple[int, Any]]:
    """Run tasks, at most two per CPU at a time. Yield each task's number and result as it ends."""
    import ray

    at_once = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    running: dict[Any, int] = {}
    for number, call in enumerate(calls):
        if len(running) >= at_once:
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), ray.get(done)
        running[call()] = number
    while running:
        (done,), _ = ray.wait(list(running), num_returns=1)
        yield running.pop(done), ray.get(done)


def _next(batches: Iterator[list[str]]) -> _Batch | None:
    texts = next(batches, None)
    return None if texts is None else _Batch(texts)


def _end(actor: Any) -> None:
    import ray

    with contextlib.suppress(Exception):  # Ray itself may be gone
        ray.kill(actor)


def reason_of(error: Exception) -> str:
    """Why a Ray process ended. The last line holds an exception, the first a signal."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if "creation task" in lines[0] else lines[0]
