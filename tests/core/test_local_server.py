"""Pages for one person: connections are bounded in number, and a reader that goes away prints nothing."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler

import pytest
from bakeoff.core import local_server
from bakeoff.core.local_server import LocalServer


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
