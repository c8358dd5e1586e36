"""What servers answer: a wiki, a search endpoint, embedding providers, rerankers and chat models."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from chaos.target import Target, command, write
from tests.dialects import DIALECTS, Asked
from tests.wiki import Page, Wiki
from tests.wire import PROXIES

KEY = "FUZZ_API_KEY"
TIMEOUT = 10.0
Ask = Callable[[str], object]


class Server:
    """On this machine: the first question gets this answer, every later one an empty object."""

    def __init__(self) -> None:
        self.body, self.status = b"", 200
        given = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                body, given.body = given.body, b"{}"
                self.send_response(given.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Silence."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"


def _answers(folder: Path) -> list[Target]:
    """One server for all of them."""
    os.environ[KEY] = "fuzz-key-0123456789"
    for name in PROXIES:
        os.environ.pop(name, None)
    server = Server()
    targets = [_target(server, folder, "answers wiki", _wiki(), _import)]
    hits = [{"_id": number, "_score": 1.0 / number, "_source": {"title": "x"}} for number in (1, 2)]
    targets.append(_target(server, folder, "answers endpoint", {"hits": {"hits": hits}}, _search))
    for name, dialect in DIALECTS.items():
        provider, _, kind = name.partition(" ")
        asked = Asked("some-model", ["copper", "lake"], plain=True, task="x")
        if kind == "chat":
            assert dialect.chat is not None
            body, ask = dialect.chat(asked, '{"grade": 2, "reason": "it fits"}'), _chat(provider)
        else:
            body = dialect.write(asked, np.array([[0.6, 0.8], [0.8, 0.6]], dtype=np.float32))
            ask = _rerank(provider) if kind else _embed(provider)
        targets.append(_target(server, folder, f"answers {name}", body, ask))
    return targets


def _target(server: Server, folder: Path, name: str, body: Any, ask: Ask) -> Target:
    place = folder / name.replace(" ", "-")
    names = write(place, {"answer.json": body})

    def read(work: Path, rng: random.Random) -> None:
        server.body = (work / "answer.json").read_bytes()
        server.status = 200 if rng.random() < 0.9 else rng.choice([201, 400, 404, 422])
        ask(server.url)

    return Target(name, place, names, read)


def _wiki() -> Any:
    pages = {
        "Loa, Utah": Page(11, "Loa is a town.", "It has a lake.", ["Towns in Utah", "B", "C", "D"]),
        "Bear Lake": Page(12, "Bear Lake is a lake.", categories=["Lakes of Utah"]),
    }
    asked = {"titles": "Loa|bear Lake|Nowhere", "exintro": "1", "exlimit": "20"}
    return Wiki(pages, {"Loa": "Loa, Utah"}).answer(asked)


def _import(url: str) -> None:
    titles = Path("titles.txt")  # in a folder of the attack's own
    titles.write_text("Loa\nbear Lake\nNowhere\n")
    command("corpus", "import", str(titles), "--api", f"{url}/w/api.php", "--out", "wiki.json")


def _search(url: str) -> None:
    from bakeoff.calls.retry import RetryPolicy
    from bakeoff.core.id_rows import IdRows
    from bakeoff.core.task import Query
    from bakeoff.extensions.retrievers.http import Http
    from bakeoff.systems.retriever import RetrieverSearcher

    retriever = Http(
        url=url, ids="hits.hits.*._id", scores="hits.hits.*._score", timeout=TIMEOUT, policy=RetryPolicy(attempts=1)
    )
    try:
        RetrieverSearcher(retriever, {}, IdRows(["1", "2"]), {}, depth=5).ask(Query("q1", "copper"))
    finally:
        retriever.close()


def _embed(name: str) -> Ask:
    def ask(url: str) -> None:
        from bakeoff_providers import PROVIDERS
        from bakeoff_providers.base import Role, check_batch

        provider = PROVIDERS.create(name, base_url=url, key_env=KEY, timeout=TIMEOUT, dimensions=2)
        try:
            check_batch(provider.embed(["copper", "lake"], Role.DOCUMENT), ["copper", "lake"], provider.card)
        finally:
            provider.close()

    return ask


def _rerank(name: str) -> Ask:
    def ask(url: str) -> None:
        from bakeoff.search.rerankers import RERANKERS

        reranker: Any = RERANKERS.create(name, base_url=url, key_env=KEY, timeout=TIMEOUT)
        try:
            reranker.rank("metal", ["copper", "lake"])
        finally:
            reranker.close()

    return ask


def _chat(name: str) -> Ask:
    def ask(url: str) -> None:
        import msgspec
        from bakeoff.calls.budget import Budget
        from bakeoff.calls.retry import RetryPolicy
        from bakeoff.extensions.testsets.ask import Asker, Question, read_object
        from bakeoff_providers.chat import CHATS

        model = CHATS.create(name, base_url=url, key_env=KEY, timeout=TIMEOUT, price_in=1.0, price_out=1.0)
        asker = Asker(model, policy=RetryPolicy(attempts=2, first_wait=0.0), budget=Budget(1e9))
        shape = msgspec.defstruct("Grade", [("grade", int)])
        try:
            asker.ask(Question("is it copper?", {"type": "object"}), lambda text: read_object(text, shape))
        finally:
            asker.close()

    return ask


MAKERS = [_answers]
