"""What every page that we serve shares: few connections, none idle for long, and quiet when a reader goes away."""

from __future__ import annotations

import threading
from email.message import Message
from http.server import ThreadingHTTPServer
from typing import Any

IDLE = 30.0  # seconds that a connection may say nothing
MOST = 64  # connections at a time: a browser opens six


def right_length(headers: Message) -> bool:
    """Whether a Content-Length, where one is sent, is a number that can be read; `²` is a digit to Python."""
    given = headers.get("Content-Length", "0")
    return given.isascii() and given.isdigit()


class LocalServer(ThreadingHTTPServer):
    """A server for one person on this machine."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Takes a place, or hangs up."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Gives the place back, whatever happened."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: a reader that goes away is no error, and the terminal belongs to the person who started it."""
