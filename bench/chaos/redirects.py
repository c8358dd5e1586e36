"""Answers that lead to another host: neither the key nor a text goes there, through any SDK and for any purpose."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from bakeoff.calls.retry import RetryPolicy
from bakeoff.extensions.retrievers.http import Http
from bakeoff.search.rerankers import RERANKERS
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.chat import CHATS
from bakeoff_providers.errors import BakeoffError

from chaos.faults import TASKS, without_proxies
from chaos.processes import KEY
from chaos.row import Figure, Plan
from tests.services import RANKING, TALKING
from tests.wire import Fault, WireServer

CODES = (301, 302, 303, 307, 308)
TEXT = "a text that nobody else may read"
SCHEMA = {"type": "object", "properties": {"grade": {"type": "integer"}}}


def redirects(folder: Path, plan: Plan, count: int) -> list[Figure]:  # noqa: ARG001 - every case is tried once
    """Five SDKs for vectors, three for chat, two for reranking, and a search endpoint, with every code."""
    without_proxies()
    keys = texts = asked = wrong = 0
    with WireServer() as wire, WireServer() as other:
        calls = list(_calls(wire))
        for code in CODES:
            for call in calls:
                wire.faults.clear()
                wire.faults += [Fault(status=code, headers={"Location": f"{other.url}/stolen?x=1"})] * 9
                asked += 1
                wrong += _unexpected(call)
            with _redirecting(code, f"{other.url}/stolen") as url:
                asked += 1
                found = Http(
                    url=url, headers={"Authorization": "Bearer ${OPENAI_API_KEY}"}, policy=RetryPolicy(attempts=1)
                )
                wrong += _unexpected(partial(found.search, TEXT, 3))
        for request in other.requests:
            seen = json.dumps([request.path, request.headers, request.body])
            keys += KEY in seen
            texts += TEXT in seen
    return [
        Figure(f"keys sent to another host, {asked} redirects", keys),
        Figure("  texts sent to another host", texts),
        Figure("  requests of any kind to another host", len(other.requests)),
        Figure("  redirects that were not our own error", wrong),
    ]  # fmt: skip


def _unexpected(call: Callable[[], Any]) -> bool:
    """A redirect must be an error that is ours."""
    try:
        call()
    except BakeoffError:
        return False
    except Exception:
        return True
    return True


def _calls(wire: WireServer) -> Iterator[Callable[[], Any]]:
    for name in TASKS:
        provider = PROVIDERS.create(name, base_url=wire.base(name), timeout=5.0)
        yield partial(provider.embed, [TEXT], Role.DOCUMENT)
    for name in TALKING:
        chat = CHATS.create(name, base_url=wire.base(name), timeout=5.0)
        yield partial(chat.ask, TEXT, SCHEMA, 1)
    for name in RANKING:
        reranker = RERANKERS.create(name, base_url=wire.base(name), timeout=5.0)
        yield partial(reranker.rank, TEXT, [TEXT, "b"])


@contextlib.contextmanager
def _redirecting(code: int, target: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(code)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/search"
        server.shutdown()
