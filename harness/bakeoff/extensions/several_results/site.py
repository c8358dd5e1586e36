"""The results folder as a site: the history in front, every result behind it; this machine only."""

from __future__ import annotations

import contextlib
import html
import logging
import mimetypes
import re
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from bakeoff_providers.errors import InputError

from bakeoff.core.local_server import LocalHandler, LocalServer, right_length
from bakeoff.extensions.several_results import history
from bakeoff.extensions.several_results.history import Entry, OtherPage
from bakeoff.report import PAGE
from bakeoff.report.comparison import conclusion
from bakeoff.report.frame import STYLE, Head, embedded, environment, style
from bakeoff.report.numbers import difference, signed
from bakeoff.report.pairs import p_text
from bakeoff.report.words import words
from bakeoff.results import schema as results
from bakeoff.results.compare import NotComparable, compare_results, read_results
from bakeoff.results.current import current_summary

HOST = "127.0.0.1"
_TITLE = re.compile("<title>(.*?)</title>", re.DOTALL)
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


def other_pages(folder: Path) -> list[OtherPage]:
    """The pages of folders that hold no result, the newest first: sweeps, load tests, footprints."""
    pages = sorted(folder.glob("[!.]*/*.html"), reverse=True)
    return [
        OtherPage(name=page.parent.name, link=quote(page.relative_to(folder).as_posix()), title=_title(page))
        for page in pages
        if not (page.parent / results.SUMMARY).is_file()
    ]


def _title(page: Path) -> str:
    found = _TITLE.search(page.read_text(encoding="utf-8", errors="replace"))
    return html.unescape(found[1]) if found else page.name


def _page(readable: list[Entry], problems: list[str], others: list[OtherPage]) -> str:
    """The list; a result that can be read but not shown is named with its reason, and does not hide the others."""
    try:
        return history.page(readable, problems=problems, others=others)
    except Exception:  # which of them it was is found out one by one
        failed = {entry.name: reason for entry in readable if (reason := _why_not_shown(entry))}
        problems = [*problems, *(f"{name} can't be shown: {reason}" for name, reason in failed.items())]
        shown = [entry for entry in readable if entry.name not in failed]
        return history.page(shown, problems=problems, others=others)


def _why_not_shown(entry: Entry) -> str:
    try:
        history.page([entry])
    except Exception as error:
        log.warning("%s can't be shown", entry.name, exc_info=True)
        return f"{type(error).__name__}: {error}"
    return ""


class Site(LocalServer):
    """Serves one folder; the front page is rebuilt when a result is added or removed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.resolve()
        self._front: tuple[tuple[tuple[str, int], ...], bytes] | None = None
        super().__init__((HOST, port), _Handler)

    def front(self) -> bytes:
        """The history of everything in the folder."""
        state = tuple((path.name, (path / results.SUMMARY).stat().st_mtime_ns) for path in results.find(self.folder))
        others = other_pages(self.folder)
        state += tuple((other.link, 0) for other in others)
        if self._front is None or self._front[0] != state:
            self._front = (state, _page(*_read(self.folder), others).encode())
        return self._front[1]

    def compare(self, names: list[str]) -> bytes:
        """Two pages side by side; of two results on one task also what differs."""
        pages = {entry.name: entry.link for entry in entries(self.folder)}
        pages |= {other.name: other.link for other in other_pages(self.folder)}
        chosen = {name: pages[name] for name in names if name in pages}
        comparison, said = None, "" if len(chosen) == 2 else "Pick two results in the list."
        found = {path.name: path for path in results.find(self.folder)}
        if not said and all(name in found for name in chosen):
            try:
                comparison = compare_results(read_results([found[name] for name in chosen]), lettered=True)
                said = conclusion(comparison)
            except NotComparable as error:
                said = f"The two can't be compared: {'; '.join(map(words, error.reasons))}."
            except InputError as error:
                said = f"The two can't be compared: {error}."
        pairs = [pair for pair in comparison.pairs if pair.difference] if comparison else []
        means = comparison.means if comparison else {}
        return environment().get_template("compare.html").render(
            policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-src 'self'",
            style=style(STYLE), data=embedded({}), specs=embedded({}), scripts=[],
            pages=chosen if len(chosen) == 2 else {}, said=said,
            heads=[Head("contender", is_text=True), *map(Head, ("A", "B", "change", "p (Holm)"))],
            rows=[[pair.b.removesuffix(" (A)"), f"{means[pair.b]:.3f}", f"{means[pair.a]:.3f}",
                   signed(pair.difference, difference(pair.difference)), p_text(pair.p_holm)] for pair in pairs],
        ).encode()  # fmt: skip

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
        if path in ("/", "/compare"):
            asked = parse_qs(urlsplit(self.path).query).get("result", [])
            page = self.server.front() if path == "/" else self.server.compare(asked)
            self._send(page, "text/html; charset=utf-8", with_body=with_body)
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
