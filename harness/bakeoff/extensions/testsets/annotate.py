"""Manual grading on a local page, blind to contenders and other annotators. Every grade is saved at once."""

from __future__ import annotations

import contextlib
import hmac
import html
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from bakeoff_providers.errors import BakeoffError, InputError
from bakeoff_providers.files import try_lock
from markupsafe import Markup

from bakeoff.core.files import write_json
from bakeoff.core.hashing import order_key
from bakeoff.core.local_server import LocalHandler, LocalServer, right_length
from bakeoff.core.printable import whole_number
from bakeoff.core.task import Document
from bakeoff.extensions.testsets.annotations import Annotation, QueryDocument
from bakeoff.extensions.testsets.grade import definition
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.report.frame import MARKS, environment, style


class GivenGrade(msgspec.Struct, forbid_unknown_fields=True):
    """A grade from the page. It names its pair, so that a stale page can't grade another one."""

    query: str
    document: str
    grade: int | None
    note: str = ""


class GradingSession:
    """One annotator's pairs, in the annotator's own shuffled order, and the grades so far."""

    def __init__(self, folder: TaskFolder, who: str, pairs: Sequence[QueryDocument]) -> None:
        self.folder, self.path = folder, folder.file_of(who)
        self.who = self.path.stem
        self.pairs = sorted(pairs, key=lambda pair: (folder.place(pair)[0], order_key(self.who, *pair)))
        self.annotation = folder.read(self.path) if self.path.exists() else Annotation()
        if self.annotation.kind == "model":
            raise InputError("holds a model's grades", file=self.path, remedy="choose another --who")
        self.annotation.metadata |= {"annotator": self.who, "kind": "person"}
        self._lock = threading.Lock()

    def grade_of(self, pair: QueryDocument) -> int | None:
        """This annotator's grade, if any."""
        return self.annotation.grades.get(pair[0], {}).get(pair[1])

    @property
    def done(self) -> int:
        """Number of graded pairs."""
        return sum(self.grade_of(pair) is not None for pair in self.pairs)

    def next_open(self, after: int = -1) -> int | None:
        """The next ungraded pair after this one, wrapping around."""
        places = [*range(after + 1, len(self.pairs)), *range(min(after + 1, len(self.pairs)))]
        return next((at for at in places if self.grade_of(self.pairs[at]) is None), None)

    def describe_pair(self, at: int | None) -> dict[str, Any]:
        """One pair for the page, without its contenders and without others' grades."""
        with self._lock:
            if at is None:
                at = self.next_open()
            state = {"at": at, "total": len(self.pairs), "done": self.done, "who": self.who}
            if at is None:
                return state
            if not 0 <= at < len(self.pairs):
                raise InputError(f"there is no pair {at}")
            pair = self.pairs[at]
            query, document = self.folder.query(pair[0]), self.folder.document(pair[1])
            return state | {
                "query": {"id": pair[0], "text": query.text, "category": query.category},
                "document": {
                    "id": pair[1],
                    "title": document.title,
                    "text": document.text,
                    "where": _where(document),
                },
                "place": 1 + sum(other[0] == pair[0] for other in self.pairs[:at]),
                "of": sum(other[0] == pair[0] for other in self.pairs),
                "grade": self.grade_of(pair),
                "note": self.annotation.notes.get(pair[0], {}).get(pair[1], ""),
                "next": self.next_open(at),
            }

    def give(self, given: GivenGrade) -> dict[str, Any]:
        """Save a grade, a note or both to disk."""
        pair = (given.query, given.document)
        if pair not in self.pairs:
            raise InputError(f"the task has no pair {given.query}, {given.document} to grade")
        if given.grade is not None:
            self.folder.check(*pair, given.grade)
        with self._lock:
            kept = self.annotation
            grades, notes = dict(kept.grades), dict(kept.notes)
            if given.grade is not None:
                grades[pair[0]] = {**grades.get(pair[0], {}), pair[1]: given.grade}
            said = {**notes.get(pair[0], {}), pair[1]: given.note.strip()}
            notes[pair[0]] = {document: note for document, note in said.items() if note}
            changed = msgspec.structs.replace(kept, grades=grades, notes={q: said for q, said in notes.items() if said})
            write_json(self.path, changed)  # a failed write changes nothing
            self.annotation = changed
            return {"done": self.done, "next": self.next_open(self.pairs.index(pair))}

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the annotator's file, since two pages would overwrite each other."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mark = self.path.with_name(f".{self.path.stem}.lock")
        with mark.open("w") as file:
            if try_lock(file.fileno()) is False:  # None: no locks on this system
                raise InputError(
                    f"{self.who} is already grading", file=self.path, remedy="close that page, or choose another --who"
                )
            try:
                yield
            finally:
                mark.unlink(missing_ok=True)


def _where(document: Document) -> str:
    """The document's URL or path, otherwise its id."""
    known = (document.metadata.get(key) for key in ("url", "path", "source"))
    return next((place for place in known if isinstance(place, str) and place), document.id)


def to_html(markdown: str) -> str:
    """Convert guidelines to HTML. Everything is escaped first, so they can't add markup."""
    blocks = re.split(r"\n\s*\n", markdown.strip())
    return "\n".join(_block(block.strip("\n")) for block in blocks if block.strip())


def _block(block: str) -> str:
    """Render a block's lines by kind. A continuation line belongs to its item."""
    parts: list[tuple[str, str]] = []
    for line in block.splitlines():
        kind = _kind(line)
        if kind == "text" and parts and parts[-1][0] in ("item", "number", "text"):
            parts[-1] = (parts[-1][0], f"{parts[-1][1]} {line.strip()}")
        else:
            parts.append((kind, line.strip()))
    return "".join(
        _render_block(kind, [line for _, line in lines]) for kind, lines in groupby(parts, key=lambda part: part[0])
    )


def _kind(line: str) -> str:
    if re.match(r"\s*#{1,6}\s", line):
        return "heading"
    if re.match(r"\s*\|", line):
        return "table"
    if re.match(r"\s*[-*+]\s", line):
        return "item"
    return "number" if re.match(r"\s*\d+[.)]\s", line) else "text"


def _render_block(kind: str, lines: list[str]) -> str:
    if kind == "heading":
        return "".join(f"<h3>{_inline(line.lstrip('#').strip())}</h3>" for line in lines)
    if kind == "table":
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        kept = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
        cells = ("".join(f"<td>{_inline(cell)}</td>" for cell in row) for row in kept)
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
    if kind in ("item", "number"):
        tag = "ul" if kind == "item" else "ol"
        items = (re.sub(r"^([-*+]|\d+[.)])\s+", "", line) for line in lines)
        return f"<{tag}>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + f"</{tag}>"
    return "".join(f"<p>{_inline(line)}</p>" for line in lines)


def _inline(text: str) -> str:
    text = html.escape(text)
    text = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<b>\1</b>", text)
    return re.sub(r"(?<!\*)\*(?=[^\s*])([^*]+?)(?<=\S)\*(?!\*)", r"<i>\1</i>", text)


_HERE = Path(__file__).parent
_SCRIPT = _HERE / "static" / "annotate.js"
MOST_BYTES = 100_000  # of a request


class Server:
    """Serves the page on 127.0.0.1, protected by a token in its URL."""

    def __init__(self, session: GradingSession, port: int = 0) -> None:
        self.session, self.token = session, secrets.token_urlsafe(16)
        self._guidelines = session.folder.guidelines  # fails before the page is served
        handler = type("Handler", (_AnnotationHandler,), {"server_of_page": self})
        try:
            self._http = LocalServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise InputError(f"port {port} can't be used: {error.strerror}", remedy="choose another --port") from None
        self._http.daemon_threads = True

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """The page's URL, with the token."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Serve until stopped."""
        self._http.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """End `serve` from another thread."""
        self._http.shutdown()

    def close(self) -> None:
        """Release the port."""
        self._http.server_close()

    def page(self, nonce: str) -> str:
        """The page, with the task's scale and guidelines."""
        folder = self.session.folder
        return environment(_HERE).get_template("annotate.html").render(
            nonce=nonce,
            who=self.session.who,
            scale=[_step(grade, name) for grade, name in sorted(folder.scale.items())],
            guidelines=Markup(to_html(self._guidelines)),
            style=style(_HERE / "static" / "annotate.css"),
            script=Markup("".join(file.read_text(encoding="utf-8") for file in (MARKS, _SCRIPT))),
            command=f"bakeoff validate {folder.name}",
        )  # fmt: skip


def _step(grade: int, name: str) -> dict[str, Any]:
    """A grade for its button. Our definition is shown only if the task uses our name for it."""
    return {"grade": grade, "name": name, "words": definition(grade, name).removeprefix(name).removeprefix(": ")}


class _AnnotationHandler(LocalHandler):
    server_of_page: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bakeoff", ""

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing, since URLs hold the token."""

    def do_GET(self) -> None:
        route = self._route()
        if route is None:
            return
        if route == "":
            nonce = secrets.token_urlsafe(12)
            self._send(200, self.server_of_page.page(nonce).encode(), "text/html; charset=utf-8", nonce)
        elif route == "pair":
            wanted = parse_qs(urlsplit(self.path).query).get("at", [""])[0]
            self._answer(lambda: self.server_of_page.session.describe_pair(whole_number(wanted)))
        else:
            self._refuse(404, "there is no such page")

    def do_POST(self) -> None:
        route = self._route()
        if route is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length:
            self._refuse(400, "Content-Length must be a number")
        elif len(length) > 9 or int(length) > MOST_BYTES:
            self._refuse(413, "the request is too large for a grade")
        elif route != "grade" or self.headers.get_content_type() != "application/json":
            self._refuse(404, "only JSON grades are accepted here")
        else:
            body = self.rfile.read(int(length))
            self._answer(lambda: self.server_of_page.session.give(msgspec.json.decode(body, type=GivenGrade)))

    def _route(self) -> str | None:
        """The path after the token. A request with another Host comes from a foreign page and is refused."""
        host = (self.headers.get("Host") or "").partition(":")[0]
        token, _, rest = urlsplit(self.path).path.lstrip("/").partition("/")
        if host not in ("127.0.0.1", "localhost"):
            self._refuse(403, "only this machine may send requests")
        elif not right_length(self.headers):
            self._refuse(400, "Content-Length must be a number")
        elif not hmac.compare_digest(token.encode(), self.server_of_page.token.encode()):
            self._refuse(403, "this address is no longer valid; open the one that `bakeoff annotate` printed")
        else:
            return rest
        return None

    def _answer(self, make: Any) -> None:
        try:
            body = msgspec.json.encode(make())
        except (BakeoffError, msgspec.DecodeError) as error:
            self._refuse(400, str(error))
        else:
            self._send(200, body, "application/json")

    def _refuse(self, status: int, why: str) -> None:
        self.close_connection = True  # an unread body must not be parsed as the next request
        self._send(status, msgspec.json.encode({"error": why}), "application/json")

    def _send(self, status: int, body: bytes, kind: str, nonce: str = "") -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header(
                "Content-Security-Policy",
                f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
                "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            )
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
