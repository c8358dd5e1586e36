"""Reaching a Ray cluster, or starting one here, and finding out before any money whether it can do the work."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.remote import SharedFolder
from bakeoff.search.stores.scratch import scratch

LOOPBACK = "127.0.0.1"
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0" keeps Ray to the loopback interface
_CLIENT = "ray://"
STORE_BYTES = 256 << 20  # Ray's object store of a cluster that is started here: vectors are in files, not in it
_SECONDS = 60  # for a node to say what it has
_CONNECT_SECONDS = 10


def connect(address: str, workers: int) -> Callable[[], None]:
    """Joins the cluster at this address, or starts one on this machine that only it can reach; how to end it."""
    if not address:
        os.environ[_CLUSTERS] = "0"  # read when Ray is imported, here and by its processes
    import ray
    from ray._private import ray_constants
    from ray._private.authentication import authentication_token_setup

    if ray.is_initialized():  # by whoever uses us as a library
        return lambda: None
    common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "namespace": "bakeoff"}
    if address:
        with _own_signals():
            try:
                _check_listening(address)
                # A token that is there is used, as `ray start` does; Ray Client and RAY_ADDRESS would not.
                authentication_token_setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
                ray.init(address=address, **common)
            except Exception as error:  # ConnectionError, RuntimeError for versions, ValueError, gRPC's own
                raise Unavailable(_unreachable(address, error)) from error
        return lambda: ray.shutdown()
    ray_constants.ENABLE_RAY_CLUSTER = False  # where somebody has imported it before
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
        raise Unavailable(f"Ray would listen on {others[0]}, which other machines can reach: it was ended")
    return end


def _check_listening(address: str) -> None:
    """Fails at once where nobody listens: Ray itself would try for minutes."""
    address = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()


def _unreachable(address: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    if "ersion mismatch" in text or "versions" in text:
        return f"the Ray cluster at {address} has another version: {text[:400]}"
    refused = f"the Ray cluster at {address} takes no connection without its token"
    if "AuthToken" in f"{text} {error.__cause__}":
        return f"{refused}: set RAY_AUTH_TOKEN, or put it into ~/.ray/auth_token"
    or_token = f", or {refused}" if address.startswith(_CLIENT) else ""  # Ray Client does not say which
    return (
        f"no Ray cluster at {address} ({_first_line(error)}){or_token}: start one with `ray start --head`, "
        "or leave --address out"
    )


def check_nodes(needs: Mapping[str, tuple[tuple[str, ...], str]], shared: SharedFolder | None) -> None:
    """Asks every node for its versions, the libraries of these contenders, and whether it sees the shared folder."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    expected = versions()
    with contextlib.nullcontext("") if shared is None else shared.marked() as mark:
        asked = {}
        for node in ray.nodes():
            if node["Alive"]:
                where = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
                task = ray.remote(num_cpus=0, max_retries=0)(_examiner(needs, mark))
                asked[node["NodeManagerAddress"]] = task.options(scheduling_strategy=where).remote()
        for address, answer in asked.items():
            try:
                has, lacking, unseen = ray.get(answer, timeout=_SECONDS)
            except Exception as error:
                raise Unavailable(f"Ray's node {address} can't do the work: {_first_line(error)}") from error
            for what, wanted in expected.items():
                if has[what] != wanted:
                    raise Unavailable(
                        f"Ray's node {address} has {what} {has[what]}, this machine {wanted}: "
                        "install the same, with bakeoff[ray], on every node"
                    )
            if lacking:
                label, remedy = next(iter(lacking.items()))
                raise Unavailable(f"Ray's node {address} can't run {label}: {remedy} there")
            if unseen and shared is not None:
                remedy = "install what fsspec needs for it there, with the settings that it has here"
                raise InputError(
                    f"Ray's node {address} does not see this folder ({unseen})",
                    file=shared.address,
                    remedy=remedy if shared.remote else "set BAKEOFF_HOME to a folder that all nodes see",
                )


def _examiner(needs: Mapping[str, tuple[tuple[str, ...], str]], mark: str) -> Callable[[], tuple[Any, Any, str]]:
    """What a node is asked: its versions, the contenders that it lacks a library for, and why it can't see the mark."""

    def examine() -> tuple[dict[str, str], dict[str, str], str]:
        """Sent by value: a node without bakeoff can run it, too."""
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
        try:
            if "://" in mark:
                import fsspec

                system, path = fsspec.core.url_to_fs(mark)
                seen = system.exists(path)
            else:
                seen = not mark or pathlib.Path(mark).exists()
        except Exception as error:
            return has, lacking, f"{type(error).__name__}: {error}"
        return has, lacking, "" if seen else "it is another one there"

    return examine


def versions() -> dict[str, str]:
    """What must be the same everywhere for the bits to be the same."""
    return {"python": platform.python_version(), "bakeoff": version("bakeoff")}


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; ours says what is kept and how to go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
