"""Pages for one person: connections are bounded in number, and a reader that goes away prints nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from bakeoff.core import local_server
from bakeoff.core.local_server import LocalHandler, LocalServer
from bakeoff.extensions.several_results.history import Site
from bakeoff.extensions.testsets import annotate
from bakeoff.extensions.testsets.annotate import GradingSession

from tests.native_task import open_task, ungraded_task


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        raise ConnectionResetError

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def test_idle_connections_are_bounded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(local_server, "MOST", 2)
    with LocalServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        address = ("127.0.0.1", server.server_port)
        idle = [socket.create_connection(address) for _ in range(2)]
        with socket.create_connection(address, timeout=10) as third:
            assert third.recv(1) == b""
        idle[0].sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert idle[0].makefile("rb").readline().startswith(b"HTTP/1.0 200")
        for connection in idle:
            connection.close()
        server.shutdown()
    assert capfd.readouterr().err == ""


class _Short(LocalHandler):
    protocol_version = "HTTP/1.1"
    timeout, whole = 0.3, 0.8

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def _serving(server: LocalServer) -> Iterator[tuple[str, int]]:
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield "127.0.0.1", server.server_port
        server.shutdown()


def _is_cut(connection: socket.socket) -> bool:
    """Whether the other side has ended the connection; it may do so in the middle of what is sent."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_connection_that_says_nothing_is_cut() -> None:
    with (
        _serving(LocalServer(("127.0.0.1", 0), _Short)) as address,
        socket.create_connection(address, timeout=10) as idle,
        socket.create_connection(address, timeout=10) as half,
    ):
        half.sendall(b"GET / HT")
        assert _is_cut(idle)
        assert _is_cut(half)


@pytest.mark.parametrize("beginning", [b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"])
def test_a_request_that_comes_byte_by_byte_has_a_deadline(beginning: bytes) -> None:
    """Each byte comes in time, the whole never does."""
    with (
        _serving(LocalServer(("127.0.0.1", 0), _Short)) as address,
        socket.create_connection(address, timeout=10) as lively,
    ):
        lively.sendall(beginning)
        lively.settimeout(0.05)
        for _ in range(400):
            try:
                lively.sendall(b"x")
                ended = _is_cut(lively)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
            assert ended
            break
        else:
            raise AssertionError("after twenty seconds it was still read")


def test_requests_of_one_connection_have_a_deadline_each() -> None:
    with (
        _serving(LocalServer(("127.0.0.1", 0), _Short)) as address,
        socket.create_connection(address, timeout=10) as connection,
    ):
        answers = connection.makefile("rb")
        for _ in range(6):  # 1.2 seconds in all
            time.sleep(0.2)
            connection.sendall(b"GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
            assert answers.readline().startswith(b"HTTP/1.1 200")
            while answers.readline().strip():
                pass
            assert answers.read(2) == b"ok"


def test_both_pages_cut_idle_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalHandler, "timeout", 0.2)
    ungraded_task(tmp_path)
    page = annotate.Server(GradingSession(open_task(tmp_path), "ada", [("q1", "1")]))
    with (
        _serving(Site(tmp_path, 0)) as site,
        _serving(page._http) as grading,
        socket.create_connection(site, timeout=10) as one,
        socket.create_connection(grading, timeout=10) as other,
    ):
        assert _is_cut(one)
        assert _is_cut(other)
