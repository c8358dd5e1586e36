"""A server on 127.0.0.1 for as long as a block lasts; the test servers of wikis and providers are made of it."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class ThreadedServer:
    """Starts on a free port; `stopping` is set when it ends. Its handlers have it as `owner`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._handler = type("Handler", (handler,), {"owner": self})
        self.stopping = threading.Event()

    def __enter__(self) -> Self:
        self._server = _Quiet(("127.0.0.1", 0), self._handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The root."""
        return f"http://127.0.0.1:{self._server.server_port}"


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed on its way is part of the tests."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
