"""The results folder as a site: the history in front, every result behind it; this machine only."""

from __future__ import annotations

import contextlib
import logging
import mimetypes
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from bakeoff_providers.errors import InputError

from bakeoff.core.local_server import LocalHandler, LocalServer, right_length
from bakeoff.extensions.several_results import history
from bakeoff.extensions.several_results.history import Entry
from bakeoff.report import PAGE
from bakeoff.results import schema as results
from bakeoff.results.current import current_summary

HOST = "127.0.0.1"
log = logging.getLogger(__name__)


def entries(folder: Path) -> list[Entry]:
    """Every result that can be read; one that is broken does not hide the others."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[list[Entry], list[str]]:
    """What can be read, and why the rest can't."""
    readable, problems = [], []
    for path in results.find(folder):
        try:
            summary = current_summary(path)
        except InputError as error:
            problems.append(f"{path.name} can't be read: {error}")
            continue
        link = quote(f"{path.relative_to(folder).as_posix()}/{PAGE}") if path != folder else PAGE
        readable.append(Entry(name=path.name, link=link if (path / PAGE).is_file() else "", summary=summary))
    return readable, problems


def _page(readable: list[Entry], problems: list[str]) -> str:
    """The history; a result that can be read but not shown is named with its reason, and does not hide the others."""
    try:
        return history.page(readable, problems=problems)
    except Exception:  # which of them it was is found out one by one
        failed = {entry.name: reason for entry in readable if (reason := _why_not_shown(entry))}
        problems = [*problems, *(f"{name} can't be shown: {reason}" for name, reason in failed.items())]
        return history.page([entry for entry in readable if entry.name not in failed], problems=problems)


def _why_not_shown(entry: Entry) -> str:
    try:
        history.page([entry])
    except Exception as error:
        log.warning("%s can't be shown", entry.name, exc_info=True)
        return f"{type(error).__name__}: {error}"
    return ""


class Site(LocalServer):
    """Serves one folder; the front page is made anew when a result has come or gone."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.resolve()
        self._front: tuple[tuple[tuple[str, int], ...], bytes] | None = None
        super().__init__((HOST, port), _Handler)

    def front(self) -> bytes:
        """The history of everything in the folder."""
        state = tuple((path.name, (path / results.SUMMARY).stat().st_mtime_ns) for path in results.find(self.folder))
        if self._front is None or self._front[0] != state:
            self._front = (state, _page(*_read(self.folder)).encode())
        return self._front[1]

    def file(self, path: str) -> Path | None:
        """A visible file inside the folder, or nothing."""
        wanted = (self.folder / unquote(path).lstrip("/")).resolve()
        if not wanted.is_relative_to(self.folder) or not wanted.is_file():
            return None
        hidden = any(part.startswith(".") for part in wanted.relative_to(self.folder).parts)
        return None if hidden else wanted


class _Handler(LocalHandler):
    server: Site
    server_version = "bakeoff"
    sys_version = ""

    def do_GET(self) -> None:
        """A page or a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """The same without its content."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        if host not in (HOST, "localhost"):  # another name that was made to point here
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if not right_length(self.headers):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._send(self.server.front(), "text/html; charset=utf-8", with_body=with_body)
            return
        try:
            file = self.server.file(path)
        except (ValueError, OSError):  # a null byte, a name that is too long
            file = None
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        text = kind.startswith("text/") or kind == "application/json"
        self._send(file.read_bytes(), f"{kind}; charset=utf-8" if text else kind, with_body=with_body)

    def _send(self, content: bytes, kind: str, *, with_body: bool) -> None:
        with contextlib.suppress(ConnectionError):  # a reader that went away
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the terminal belongs to the person who started it."""
