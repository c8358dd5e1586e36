"""One server on 127.0.0.1 that speaks every provider's protocol, so that the real SDKs can be driven without a key.

with WireServer() as wire:
    wire.faults.append(Fault(status=429, headers={"Retry-After": "2"}))
    OpenAI(base_url=wire.base("openai")).embed(["a text"], Role.DOCUMENT)
    assert wire.requests[0].texts == ["a text"]

Chat models get what `wire.answer(model, prompt)` returns: the recorded answers of a test.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import gzip
import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socket import SHUT_RDWR
from typing import Any, Literal

import numpy as np

from tests.dialects import DIALECTS, Asked, Dialect, Refused, find_dialect
from tests.threaded_server import ThreadedServer

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
MODELS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "voyage-4": 1024,
    "voyage-4-lite": 1024,
    "voyage-4-large": 1024,
    "gemini-embedding-001": 3072,
    "gemini-embedding-2": 3072,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "embed-v4.0": 1536,
}
OTHER_DIMENSIONS = 8
Kind = Literal[
    "status",
    "drop",
    "broken",
    "slow",
    "truncated",
    "html",
    "wrong_shape",
    "null",
    "too_few",
    "nan",
    "zero",
    "dimension",
    "boolean",
    "text",
    "duplicate",
    "reversed",
    "huge",
    "drip",
    "stray_nan",
    "bom",
    "twice",
    "text_index",
    "text_tokens",
    "negative_tokens",
    "no_text",
    "parts",
    "half",
]


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; `None` in the queue lets one request pass.

    drop: closed with no answer; broken: closed within the body; slow: answers after `seconds`; truncated: JSON that
    breaks off; html: a page with status 200; wrong_shape and null: JSON with nothing in it; too_few: one vector less;
    boolean and text: a number that is none; duplicate: an index twice; reversed: the rows, each with its own index;
    huge: 50 MB of text, gzipped; drip: a byte every `seconds`; twice: the first row again; text_index: an index as
    text; bom and stray_nan: what JSON has not, which lenient parsers read, and reversed rows, with a boolean or not;
    text_tokens and negative_tokens: counts that are none. In words: no_text: a number; parts: the text as a list of
    parts, as some servers send it; half: one half of a surrogate pair.
    """

    kind: Kind = "status"
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "a fault of the test server"
    code: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Recorded:
    """One request as it came in: `headers` by lower-case name, and the parts that every protocol has."""

    provider: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    model: str = ""
    texts: list[str] = field(default_factory=list)
    task: str | None = None
    dimensions: int | None = None


class WireServer(ThreadedServer):
    """Deterministic vectors, documented limits, recorded requests, and faults by script."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[Recorded] = []
        self.faults: deque[Fault | None] = deque()
        self.models = dict(MODELS)
        self.answer: Callable[[str, str], str] = lambda model, prompt: "{}"
        self.pulled = ["nomic-embed-text:latest", "mxbai-embed-large:latest", "llama3.1:latest"]
        self.beside: dict[str, Any] = {}  # sent with all data, also in place of what the protocol says
        self.peak = 0
        self.seconds_each = 0.0  # how long every request for vectors takes
        self.most_at_once: int | None = None  # more requests than this at the same time are refused with 429
        self._lock = threading.Lock()
        self._in_flight = 0

    def base(self, provider: str) -> str:
        """The address to give to that provider's adapter: ollama, Gemini and cohere are at the root."""
        prefix = f"/{provider}/v1"
        return self.url + (prefix if DIALECTS[provider].path.startswith(prefix) else "")

    def embeddings(self) -> list[Recorded]:
        """The requests that asked for vectors: what a provider would have charged for."""
        return [request for request in self.requests if request.texts and not request.provider.endswith(" chat")]

    def chats(self) -> list[Recorded]:
        """The requests that asked for an answer in words."""
        return [request for request in self.requests if request.provider.endswith(" chat")]

    def vectors(self, asked: Asked) -> np.ndarray[Any, np.dtype[np.float32]]:
        """A vector for each text, from a hash of the model, the task and the text; a shorter one is its beginning."""
        full = self.models.get(asked.model.partition(":")[0], OTHER_DIMENSIONS)
        rows = []
        for text in asked.texts:
            digest = hashlib.sha256(f"{asked.model}\0{asked.task}\0{text}".encode()).digest()
            row = np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(max(full, 2048))
            rows.append(row[: asked.dimensions or full] / np.linalg.norm(row[:full]))
        return np.array(rows, dtype=np.float32)

    def vectors_of(self, model: str, task: str | None, *texts: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """What this server answers for these texts, in full length."""
        return self.vectors(Asked(model, list(texts), task))

    def next_fault(self) -> Fault | None:
        """Each request for vectors takes the next of the queue, also when several come at once."""
        with self._lock:
            return self.faults.popleft() if self.faults else None

    def entered(self, by: int) -> None:
        """Counts requests under way, for tests of concurrency."""
        with self._lock:
            self._in_flight += by
            self.peak = max(self.peak, self._in_flight)

    def crowded(self) -> bool:
        """Whether more requests are under way than are allowed."""
        with self._lock:
            return self.most_at_once is not None and self._in_flight > self.most_at_once


class _Handler(BaseHTTPRequestHandler):
    owner: WireServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # with wbufsize, saves 40 ms a request
    wbufsize = -1

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet: the requests are recorded."""

    def do_GET(self) -> None:
        self._serve("GET", None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if len(raw) < int(self.headers.get("content-length") or 0):
            self._hang_up()  # the client was killed on its way
            return
        self._serve("POST", json.loads(raw) if raw else None)

    def _serve(self, method: str, body: Any) -> None:
        self.owner.entered(+1)
        try:
            self._route(method, self.path.partition("?")[0], body)
        finally:
            self.owner.entered(-1)

    def _route(self, method: str, path: str, body: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        name = find_dialect(method, path)
        if name is None:
            self.owner.requests.append(Recorded("", method, self.path, headers, body))
            self._look_up(path, body)
            return
        dialect = DIALECTS[name]
        asked = dialect.read(path, body)
        self.owner.requests.append(
            Recorded(name, method, self.path, headers, body, asked.model, asked.texts, asked.task, asked.dimensions)
        )
        fault = self.owner.next_fault()
        if fault is None and self.owner.crowded():
            fault = Fault(status=429, message="too many at once", headers={"Retry-After-Ms": "20"})
        try:
            if fault is not None and fault.kind == "status":
                raise Refused(fault.status, fault.message, fault.code)
            if dialect.auth and not headers.get(dialect.auth):
                raise Refused(401, "no key was sent")
            if name.startswith("ollama") and not {asked.model, f"{asked.model}:latest"} & set(self.owner.pulled):
                raise Refused(404, f'model "{asked.model}" not found, try pulling it first')
            dialect.limit(asked)
        except Refused as refused:
            self._send(refused.status, dialect.error(refused), fault.headers if fault else {})
            return
        self._answer(dialect, asked, fault)

    def _answer(self, dialect: Dialect, asked: Asked, fault: Fault | None) -> None:
        kind = fault.kind if fault else None
        if self.owner.seconds_each:
            self.owner.stopping.wait(self.owner.seconds_each)
        if kind == "slow" and fault is not None:
            self.owner.stopping.wait(fault.seconds)
        if kind == "drip" and fault is not None:
            self._drip(fault.seconds)
            return
        if dialect.chat is not None:
            said = dialect.chat(asked, self.owner.answer(asked.model, asked.texts[-1]))
            self._deliver(_altered_words(said, kind), kind)
            return
        vectors = self.owner.vectors(asked)
        if kind == "too_few":
            vectors = vectors[:-1]
        elif kind == "dimension":
            vectors = vectors[:, :-1]
        elif kind == "nan":
            vectors[0, 0] = np.nan
        elif kind == "zero":
            vectors[0] = 0
        self._deliver(_altered({**dialect.write(asked, vectors), **self.owner.beside}, kind), kind)

    def _deliver(self, body: Any, kind: Kind | None) -> None:
        if kind in ("text_tokens", "negative_tokens"):
            body = _miscounted(body, "12" if kind == "text_tokens" else -1_000_000)
        elif kind == "stray_nan":
            body = {"stray": float("nan"), **body}
        payload = json.dumps(body).encode()
        if kind == "bom":
            payload = codecs.BOM_UTF8 + payload
        if kind == "drop":
            self._hang_up()
        elif kind == "broken":
            self._send_raw(200, payload[: len(payload) // 2], {}, length=len(payload))
            self._hang_up()
        elif kind == "truncated":
            self._send_raw(200, payload[: len(payload) // 2], {})
        elif kind == "html":
            self._send_raw(200, b"<html>a gateway's page</html>", {"Content-Type": "text/html"})
        elif kind == "huge":
            packed = gzip.compress(b'{"embeddings": "' + b"1," * 25_000_000 + b'"}', 1)
            self._send_raw(200, packed, {"Content-Encoding": "gzip"})
        elif kind in ("wrong_shape", "null"):
            self._send(200, None if kind == "null" else {"unexpected": True}, {})
        else:
            self._send_raw(200, payload, {})

    def _drip(self, seconds: float) -> None:
        """Alive at every look, and never done."""
        try:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while not self.owner.stopping.wait(seconds):
                self.wfile.write(b" ")
                self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _look_up(self, path: str, body: Any) -> None:
        """What is asked besides vectors: versions and lists of models."""
        if path == "/api/version":
            self._send(200, {"version": "0.13.0"}, {})
        elif path == "/api/tags":
            self._send(200, {"models": [{"model": name, "name": name} for name in self.owner.pulled]}, {})
        elif path == "/api/show" and f"{(body or {}).get('model')}".partition(":")[0] in self.owner.models:
            self._send(200, {"details": {"family": "bert"}, "model_info": {}, "capabilities": ["embedding"]}, {})
        elif path.endswith("/v1/models"):
            known = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.owner.models]
            self._send(200, {"object": "list", "data": known}, {})
        else:
            self._send(404, {"error": {"message": "no such route"}}, {})

    def _send(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        self._send_raw(status, json.dumps(body).encode(), headers)

    def _send_raw(self, status: int, payload: bytes, headers: Mapping[str, str], length: int | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload) if length is None else length))
            self.end_headers()
            self.wfile.write(payload)
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client did not wait: that was the test

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)


def _altered(body: Any, kind: Kind | None) -> Any:
    """The same answer with one thing wrong, wherever this protocol keeps its vectors."""
    rows = body.get("data") or body.get("results") or body["embeddings"]
    rows = rows["float"] if isinstance(rows, dict) else rows
    if kind in ("boolean", "text", "stray_nan"):
        wrong: Any = "0.5" if kind == "text" else True
        row = rows[0]
        if isinstance(row, dict) and "relevance_score" in row:
            row["relevance_score"] = wrong
        elif isinstance(row, dict):
            field = "values" if "values" in row else "embedding"
            numbers = row[field]
            if isinstance(numbers, str):
                numbers = np.frombuffer(base64.b64decode(numbers), dtype="<f4").tolist()
            row[field] = [wrong, *numbers[1:]]
        else:
            row[0] = wrong
    elif kind == "duplicate":
        rows[0]["index"] = rows[1]["index"]
    elif kind == "twice":
        rows.append(rows[0])
    elif kind == "text_index":
        rows[0]["index"] = str(rows[0]["index"])
    if kind in ("reversed", "stray_nan", "bom"):
        rows.reverse()
    return body


def _altered_words(body: Any, kind: Kind | None) -> Any:
    """The same answer with another text in it, wherever this protocol keeps it."""
    if "candidates" in body:
        place, key = body["candidates"][0]["content"]["parts"][0], "text"
    else:
        place, key = body.get("message") or body["choices"][0]["message"], "content"
    if kind in ("no_text", "stray_nan", "bom", "boolean"):
        place[key] = True
    elif kind == "parts":
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "let me see"}]}
        place[key] = [thought, *({"type": "text", "text": part} for part in (place[key][:3], place[key][3:]))]
    elif kind == "half":
        place[key] = f"half: \ud800 {place[key]}"
    return body


def _miscounted(body: Any, count: Any) -> Any:
    """The same with every number of tokens replaced."""
    if isinstance(body, dict):
        counts = {key for key in body if re.search("tokens?(_?count)?$|eval_count$", key, re.IGNORECASE)}
        return {key: count if key in counts else _miscounted(value, count) for key, value in body.items()}
    return [_miscounted(entry, count) for entry in body] if isinstance(body, list) else body
