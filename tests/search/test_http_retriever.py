"""What a search endpoint sends is held to a time, a size and an address, as a provider's answers are."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.extensions.retrievers.http import Http
from bakeoff_providers.errors import BakeoffError, CallFailed, StoreError

from tests.errors import says
from tests.wire import PROXIES

ONCE = RetryPolicy(attempts=1)


class _Endpoint(BaseHTTPRequestHandler):
    behave: ClassVar[Callable[[_Endpoint], None]]
    asked: ClassVar[list[str]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(self.path)
        self.behave()

    do_GET = do_POST

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@contextmanager
def endpoint(behave: Callable[[_Endpoint], None]) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (_Endpoint,), {"behave": behave, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/search", asked
        server.shutdown()


def failing(behave: Callable[[_Endpoint], None], timeout: float = 10.0) -> tuple[BakeoffError, int]:
    with endpoint(behave) as (url, asked):
        found = Http(url=url, policy=ONCE, timeout=timeout)
        with pytest.raises(BakeoffError) as caught:
            found.search("a query", 3)
        found.close()
        return caught.value, len(asked)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


def test_an_answer_that_drips_has_a_deadline() -> None:
    over = threading.Event()

    def drip(handler: _Endpoint) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        try:
            while not over.wait(0.05):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            pass

    error, asked = failing(drip, timeout=0.5)
    over.set()
    assert isinstance(error, CallFailed)
    assert error.retryable
    assert error.status is None
    assert asked == 1


def test_a_small_answer_that_unpacks_to_a_large_one_is_not_read() -> None:
    bomb = gzip.compress(b'["' + bytes(40 << 20) + b'"]', 1)
    error, _ = failing(lambda handler: handler.send(200, bomb, Content_Encoding="gzip"))
    assert isinstance(error, CallFailed)
    assert not error.retryable
    assert "bytes" in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with endpoint(lambda handler: handler.send(200, b'["1"]')) as (other, reached):
        error, _ = failing(lambda handler: handler.send(status, Location=f"{other}?q=secret"))
    assert "redirect" in str(error)
    assert "secret" not in str(error)
    assert reached == []


def test_nesting_without_end_is_no_json() -> None:
    error, _ = failing(lambda handler: handler.send(200, b"[" * 100_000 + b"]" * 100_000))
    assert isinstance(error, StoreError)
    says(str(error), "JSON")


def test_an_ordinary_answer_is_read_packed_or_not() -> None:
    with endpoint(lambda handler: handler.send(200, gzip.compress(b'["2", "1"]'), Content_Encoding="gzip")) as (url, _):
        found = Http(url=url, policy=ONCE, headers={"X-Own": "yes"})
        assert [document for document, _ in found.search("a query", 3)[0]] == ["2", "1"]
        found.close()
