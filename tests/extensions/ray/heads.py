"""Clusters of other processes on the loopback interface, and environments in which something is not installed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import site
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.wire import PROXIES

ROOT = Path(__file__).parents[3]
LOOPBACK = ("127.", "::1", "::ffff:127.")
TOKEN = secrets.token_hex(32)
_SECONDS = 120  # for a head to start on a busy machine
_HEAD = {
    "RAY_AUTH_MODE": "token",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": str(_SECONDS),
}


@dataclass(frozen=True)
class Head:
    """A cluster of one node: its address, and that for Ray Client."""

    process: subprocess.Popen[bytes]
    address: str
    client: str


def environment(**changes: str) -> dict[str, str]:
    """This process's, without proxies, with the sources, and with a Ray that keeps to the loopback interface."""
    sources = os.pathsep.join([str(ROOT / "harness"), str(ROOT / "providers"), str(ROOT)])
    kept = {name: value for name, value in os.environ.items() if name not in PROXIES and not name.startswith("RAY_")}
    fixed = {"PYTHONPATH": sources, "OPENAI_API_KEY": "sk-none", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    return {**kept, **fixed, "RAY_AUTH_TOKEN": TOKEN, **changes}


@contextlib.contextmanager
def head(
    python: str = sys.executable, *, cpus: int = 2, gpus: int = 0, changes: Mapping[str, str] | None = None
) -> Iterator[Head]:
    """Started by Ray's own command, and ended by it. No process is started before it is needed."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # a socket's path must be short
    port, client, agent = _free_ports(3)  # Ray's own choice for the last may be one of the others
    options = ["--head", "--block", "--disable-usage-stats", "--include-dashboard=false"]
    options += ["--node-ip-address=127.0.0.1", f"--port={port}", f"--ray-client-server-port={client}"]
    options += [f"--dashboard-agent-listen-port={agent}"]
    options += [f"--num-cpus={cpus}", f"--num-gpus={gpus}", f"--object-store-memory={128 << 20}"]
    with (folder / "head.txt").open("wb") as output:
        process = subprocess.Popen(
            [python, "-m", "ray.scripts.scripts", "start", *options, f"--temp-dir={folder / 'ray'}"],
            stdout=output,
            stderr=output,
            env=environment(**_HEAD, **(changes or {})),
        )
    try:
        limit = time.monotonic() + _SECONDS
        while not (_answers(port) and _answers(client)):
            said = (folder / "head.txt").read_text()
            assert process.poll() is None, said
            assert time.monotonic() < limit, said
            time.sleep(0.2)
        yield Head(process, f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}")
    finally:
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.terminate()
        process.wait(60)
        _, left = psutil.wait_procs(children, timeout=10)
        for child in left:
            child.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process with a cluster of two nodes below it, and the address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.extensions.ray.two_nodes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(**_HEAD),
    )
    assert process.stdin
    assert process.stdout
    children: list[psutil.Process] = []
    try:
        address = process.stdout.readline().strip()
        assert address
        children = psutil.Process(process.pid).children(recursive=True)
        yield process, address
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.wait(60)
        _, left = psutil.wait_procs(children, timeout=10)
        for child in left:
            child.kill()


def listeners(process: psutil.Process) -> list[tuple[str, str]]:
    """Every address that this process and those below it listen on."""
    listening = []
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            found = [c for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN]
            listening += [(one.name(), c.laddr.ip) for c in found]
    return listening


def python_without(folder: Path, missing: Sequence[str]) -> str:
    """An environment with all packages of this one but these."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (own,) = folder.glob("lib/python*/site-packages")
    folders = [path for path in map(Path, [*site.getsitepackages(), *sys.path]) if path.name == "site-packages"]
    for package in (entry for path in dict.fromkeys(folders) for entry in path.iterdir()):
        link = own / package.name
        if package.suffix != ".pth" and not package.name.startswith(tuple(missing)) and not link.exists():
            link.symlink_to(package)
    return str(folder / "bin" / "python")


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
