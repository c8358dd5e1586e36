"""The base of our local web servers: few connections, short timeouts, no noise when a client disconnects."""

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

IDLE = 30.0  # seconds that a connection may be silent
WHOLE = 60.0  # seconds per request, however many bytes arrive
log = logging.getLogger(__name__)
MOST = 64  # connections at a time; a browser opens six


def right_length(headers: Message) -> bool:
    """Whether a Content-Length header, if present, is a plain number. Python also accepts `²` as a digit."""
    given = headers.get("Content-Length", "0")
    return given.isascii() and given.isdigit()


class LocalServer(ThreadingHTTPServer):
    """A server for one person on this machine."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Takes a connection slot, or hangs up."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Frees the slot in any case."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing, since a client that disconnects is not an error."""


class LocalHandler(BaseHTTPRequestHandler):
    """Requests of one connection. Each must arrive completely within its deadline; sending has `timeout` in all."""

    timeout = IDLE
    whole = WHOLE
    until = 0.0

    def setup(self) -> None:
        """Reads under the deadline of the current request."""
        super().setup()
        raw = self.rfile.detach()
        self.rfile = io.BufferedReader(_InTime(raw, self))

    def handle_one_request(self) -> None:
        """Like the base class. A read past the deadline raises TimeoutError, which ends the connection."""
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
        """Like the base class, but refuses addresses that can't be parsed."""
        if not super().parse_request():
            return False
        try:
            urlsplit(self.path)
        except ValueError:
            self.send_error(400)
            return False
        return True


class _InTime(io.RawIOBase):
    """Reads from a connection until the deadline."""

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
