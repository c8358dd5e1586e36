"""Connect to a Ray cluster, or start one here, and check that it can do the work before anything is paid for."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.remote import SharedFolder
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
