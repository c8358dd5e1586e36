"""A wiki on 127.0.0.1 that speaks as much of MediaWiki's API as `corpus import` asks for, with its limits."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.threaded_server import ThreadedServer


@dataclass
class Page:
    pageid: int
    intro: str
    rest: str = ""
    categories: list[str] = field(default_factory=list)


class Wiki(ThreadedServer):
    """Pages by title, redirects, and answers with errors by script.

    A fault is an HTTP status, an API error's code, a body, bytes that are gzipped, an address to go to instead, or the
    seconds between the bytes of an answer that never ends.
    """

    def __init__(self, pages: dict[str, Page], redirects: dict[str, str] | None = None) -> None:
        super().__init__(_Handler)
        self.pages, self.redirects = pages, redirects or {}
        self.faults: deque[Any] = deque()
        self.requests: list[dict[str, str]] = []
        self.agents: list[str] = []
        self.categories_a_request = 3

    @property
    def api(self) -> str:
        return f"{self.url}/w/api.php"

    def answer(self, asked: dict[str, str]) -> Any:
        titles = asked["titles"].split("|")
        if len(titles) > 50:
            return {"error": {"code": "toomanyvalues", "info": "Too many values supplied for parameter titles."}}
        limit = 20 if "exintro" in asked else 1  # as documented: several extracts only as introductions
        normalized, redirects = [], []
        pages: list[dict[str, Any]] = []
        start = int(asked.get("clcontinue", "0"))
        more = False
        for title in titles:
            name = title[0].upper() + title[1:]
            if name != title:
                normalized.append({"fromencoded": False, "from": title, "to": name})
            if name in self.redirects:
                redirects.append({"from": name, "to": self.redirects[name]})
                name = self.redirects[name]
            if any(page["title"] == name for page in pages):
                continue
            known = self.pages.get(name)
            if known is None:
                pages.append({"ns": 0, "title": name, "missing": True})
                continue
            page: dict[str, Any] = {"pageid": known.pageid, "ns": 0, "title": name}
            if start == 0 and len([page for page in pages if "extract" in page]) < min(limit, int(asked["exlimit"])):
                page["extract"] = known.intro if "exintro" in asked else f"{known.intro}\n{known.rest}"
            chosen = known.categories[start : start + self.categories_a_request]
            if chosen:
                page["categories"] = [{"ns": 14, "title": f"Category:{category}"} for category in chosen]
            more |= len(known.categories) > start + self.categories_a_request
            pages.append(page)
        body: dict[str, Any] = {"batchcomplete": True, "query": {"pages": pages}}
        if normalized:
            body["query"]["normalized"] = normalized
        if redirects:
            body["query"]["redirects"] = redirects
        if more:
            del body["batchcomplete"]
            body["continue"] = {"clcontinue": str(start + self.categories_a_request), "continue": "||"}
        return body


class _Handler(BaseHTTPRequestHandler):
    owner: Wiki

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet: the requests are recorded."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.owner.requests.append(asked)
        self.owner.agents.append(self.headers.get("User-Agent", ""))
        fault = self.owner.faults.popleft() if self.owner.faults else None
        headers = {"Retry-After": "1"} if fault else {}
        if isinstance(fault, float):
            self._drip(fault)
        elif isinstance(fault, bytes):
            self._send_raw(200, fault, {"Content-Encoding": "gzip"})
        elif isinstance(fault, (dict, list)):
            self._send(200, fault, {})
        elif isinstance(fault, str) and fault.startswith("http"):
            self._send(302, {}, {"Location": fault})
        elif isinstance(fault, int):
            self._send(fault, {"error": "a fault of the test server"}, headers)
        elif fault is not None:
            self._send(200, {"error": {"code": fault, "info": f"Waiting: {fault}"}}, headers)
        elif parts.path != "/w/api.php":
            self._send(404, {"error": "no such page"}, {})
        else:
            self._send(200, self.owner.answer(asked), {})

    def _drip(self, seconds: float) -> None:
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while not self.owner.stopping.wait(seconds):
                self.wfile.write(b" ")

    def _send(self, status: int, body: Any, headers: dict[str, str]) -> None:
        self._send_raw(status, json.dumps(body).encode(), headers)

    def _send_raw(self, status: int, payload: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": len(payload)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(payload)
