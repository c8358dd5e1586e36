"""A server that takes connections and never answers costs its row after a time, whichever client waits for it."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bakeoff.search.stores import STORES, servers
from bakeoff.search.stores.existing import EXISTING
from bakeoff_providers.errors import Unavailable

from tests.wire import PROXIES


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONNECT", "ANSWER", "SCAN"):
        monkeypatch.setattr(servers, name, 1)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None] = lambda connection: None) -> Iterator[int]:
    """A port whose connections are taken, given to `serve`, and then left open in silence."""
    kept: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                kept.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
    for connection in kept:
        connection.close()


@pytest.mark.parametrize(
    ("store", "library", "url"),
    [
        ("chroma", "chromadb", "http://127.0.0.1:{}"),
        ("qdrant", "qdrant_client", "http://127.0.0.1:{}"),
        ("pgvector", "psycopg", "postgresql://me@127.0.0.1:{}/db"),
        ("typesense", "httpx", "http://127.0.0.1:{}"),
        ("redis", "redis", "redis://127.0.0.1:{}"),
    ],
)
def test_silence_ends_the_opening_of_a_store(tmp_path: Path, store: str, library: str, url: str) -> None:
    pytest.importorskip(library)
    with listening() as port, pytest.raises(Unavailable, match=store):
        STORES.create(store, dimensions=3, folder=tmp_path, url=url.format(port))


@pytest.mark.parametrize(("index", "library"), [("qdrant", "qdrant_client"), ("chroma", "chromadb")])
def test_silence_ends_the_opening_of_an_index_that_exists(index: str, library: str) -> None:
    pytest.importorskip(library)
    with listening() as port, pytest.raises(Exception, match=r"timed|complete"):
        EXISTING.create(index, existing=f"http://127.0.0.1:{port}")


def _greet(connection: socket.socket) -> None:
    """PostgreSQL's beginning: no encryption, no password, ready; then every statement is read and none answered."""
    with contextlib.suppress(OSError):
        while message := connection.recv(65536):
            if message[4:8] == struct.pack("!i", 80877103) or message[4:8] == struct.pack("!i", 80877104):
                connection.sendall(b"N")
            elif message[4:6] == struct.pack("!h", 3):
                connection.sendall(b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I")


def test_a_statement_without_an_answer_is_given_up(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    pytest.importorskip("pgvector")
    with listening(_greet) as port:
        url = f"postgresql://me@127.0.0.1:{port}/db"
        with pytest.raises(Unavailable, match=r"\b1 s\b"):
            STORES.create("pgvector", dimensions=3, folder=tmp_path, url=url)
        with pytest.raises(Exception, match=r"\b1 s\b"):
            EXISTING.create("pgvector", existing=url)


class _Chroma(BaseHTTPRequestHandler):
    """Says who asks and which database that is, and nothing about collections."""

    protocol_version = "HTTP/1.1"
    over: threading.Event

    def do_GET(self) -> None:
        names: dict[str, object] = {"name": "default_tenant"}
        if "identity" in self.path:
            names = {"user_id": "", "tenant": "default_tenant", "databases": ["default_database"]}
        elif "databases" in self.path:
            number = "00000000-0000-0000-0000-000000000000"
            names = {"id": number, "name": "default_database", "tenant": "default_tenant"}
        body = json.dumps(names).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.over.wait(60)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


def test_a_chroma_that_falls_silent_later_costs_its_row(tmp_path: Path) -> None:
    over = threading.Event()
    handler = type("Handler", (_Chroma,), {"over": over})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        with pytest.raises(Unavailable, match="timed"):
            STORES.create("chroma", dimensions=3, folder=tmp_path, url=f"http://127.0.0.1:{server.server_port}")
        over.set()
        server.shutdown()
