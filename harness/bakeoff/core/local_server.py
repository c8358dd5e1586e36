"""What every page that we serve shares: few connections, none idle for long, and quiet when a reader goes away."""

from __future__ import annotations

import contextlib
import io
import logging
import threading
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

IDLE = 30.0  # seconds that a connection may say nothing
WHOLE = 60.0  # seconds from the end of one request to that of the next, however lively its bytes are
log = logging.getLogger(__name__)
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


class LocalHandler(BaseHTTPRequestHandler):
    """Requests of one connection: each must have come whole by its deadline. What is sent has `timeout` in all."""

    timeout = IDLE
    whole = WHOLE
    until = 0.0

    def setup(self) -> None:
        """Reads under the deadline of the request that it is at."""
        super().setup()
        raw = self.rfile.detach()
        self.rfile = io.BufferedReader(_InTime(raw, self))

    def handle_one_request(self) -> None:
        """As any other; a read that comes too late raises TimeoutError, which ends the connection there."""
        self.until = time.monotonic() + self.whole
        try:
            super().handle_one_request()
        except OSError:
            raise
        except Exception as error:
            log.warning("no answer to %s", self.command, exc_info=error)
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.send_error(500)

    def parse_request(self) -> bool:
        """As any other; what can't be taken apart is no address."""
        if not super().parse_request():
            return False
        try:
            urlsplit(self.path)
        except ValueError:
            self.send_error(400)
            return False
        return True


class _InTime(io.RawIOBase):
    """What comes over a connection, as long as there is time."""

    def __init__(self, raw: io.RawIOBase, handler: LocalHandler) -> None:
        self._raw, self._handler = raw, handler

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        handler = self._handler
        left = handler.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("a request that did not come whole")
        handler.connection.settimeout(min(handler.timeout, left))
        try:
            return self._raw.readinto(buffer)
        finally:
            handler.connection.settimeout(handler.timeout)

    def close(self) -> None:
        self._raw.close()
        super().close()
