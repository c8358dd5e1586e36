"""Rows of one's own from a line-up: a function or a class in a file, a search function, a search endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.report.words import failure_words
from bakeoff.results.schema import Cost
from bakeoff.results.summary import summarise
from bakeoff.running.runner import Outcome, Settings, run
from bakeoff_providers.errors import InputError

from tests.errors import says
from tests.facts import ids
from tests.native_task import native_files, write_lineup

MINE = """
import numpy as np

WORDS = ["copper", "sailing", "lake", "forest"]

def embed(texts):
    return [[1e-6 + text.lower().count(word) for word in WORDS] for text in texts]

def by_role(texts, role):
    scale = 1 if role == "document" else 2
    return np.array(embed(texts)) * scale

class Words:
    def __init__(self, first="copper"):
        self.words = [first, "lake"]

    def encode(self, texts):
        return np.array([[1e-6 + text.lower().count(word) for word in self.words] for text in texts])

def search(text, k):
    return {"copper": ["1", "3"], "lake": ["3", "2"]}.get(text, [])[:k]

def scored(text, k):
    return [("1", 0.1), ("2", 0.9)]

def broken(text, k):
    raise RuntimeError("the cluster is down")

def twice(text, k):
    return ["1", "1"]
"""


def _run(folder: Path, contenders: str, settings: Settings | None = None) -> Outcome:
    file = write_lineup(folder, native_files(), head='measures = ["mrr"]\nrounds = 1', contenders=contenders)
    return run(Lineup.read(file), settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


@pytest.mark.parametrize(
    ("contender", "label"),
    [
        ('provider = "file:mine.py:embed"', "embed+faiss"),
        ('provider = "file:mine.py:by_role"\nlabel = "roles"', "roles+faiss"),
        ('provider = "file:mine.py:Words"\noptions = { first = "copper" }', "Words+faiss"),
    ],
)
def test_a_function_or_class_beside_the_line_up_is_a_provider(folder: Path, contender: str, label: str) -> None:
    outcome = _run(folder, f'[[contender]]\n{contender}\nstore = "faiss"\n')
    assert outcome.not_run == []
    # "copper" is only in document 1, "lake" only in document 2, "volcano" in none and document 3 is not relevant for it
    assert outcome.scores[label]["mrr"][:2] == [1, 1]
    (row,) = outcome.ran
    assert row.search is not None
    assert row.search.timing.embed_ns
    assert Lineup.read(_written(folder, outcome)).contenders == outcome.lineup.contenders


def _written(folder: Path, outcome: Outcome) -> Path:
    path = folder / "again.toml"
    path.write_text(lineup_text(outcome.lineup.to_dict()))
    return path


def test_a_search_function_is_a_row_with_its_latency(folder: Path) -> None:
    outcome = _run(
        folder, '[[contender]]\nretriever = "file:mine.py:search"\n[[contender]]\nretriever = "file:mine.py:scored"\n'
    )
    assert outcome.scores["search"]["mrr"] == [1, 1, 0]  # q2: document 3 has grade 1, and comes first
    assert outcome.scores["scored"]["mrr"] == [0.5, 1, 0]  # 2 before 1, by their scores
    assert all(row.search and len(row.search.timing.total_ns) == 3 for row in outcome.ran)
    assert Lineup.read(_written(folder, outcome)).contenders == outcome.lineup.contenders


@pytest.mark.parametrize(
    ("contender", "said"),
    [
        ('retriever = "file:mine.py:broken"', "RuntimeError: the cluster is down"),
        ('retriever = "file:mine.py:twice"', "'1'"),
        ('retriever = "file:mine.py:serach"', "'search'"),
        ('retriever = "file:none.py:search"', "none.py"),
        ('provider = "file:mine.py:nothing"\nstore = "faiss"', "'nothing'"),
        ('provider = "file:mine.py:embed"\nstore = "faiss"\noptions = { depth = 3 }', "'depth'"),
        ('provider = "file:bad.py:embed"\nstore = "faiss"', "ZeroDivisionError"),
    ],
)
def test_code_that_fails_costs_its_row(folder: Path, contender: str, said: str) -> None:
    (folder / "bad.py").write_text("1 / 0\n")
    outcome = _run(folder, f'[[contender]]\n{contender}\n[[contender]]\nranker = "bm25"\n')
    (lost,) = outcome.not_run
    says(failure_words(lost.failure), said)
    assert [row.contender.label for row in outcome.ran] == ["bm25"]


def test_changed_code_never_meets_old_vectors(folder: Path) -> None:
    """The same function in another order of words: document vectors of the one and queries of the other would mix."""
    settings = Settings(cache=folder / "vectors")
    contender = '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
    before = _run(folder, contender, settings).scores
    turned = MINE.replace('["copper", "sailing", "lake", "forest"]', '["forest", "lake", "sailing", "copper"]')
    (folder / "mine.py").write_text(turned)
    outcome = _run(folder, contender, settings)
    assert outcome.scores == before
    assert _cached(outcome) == 0
    assert _cached(_run(folder, contender, settings)) == 3  # unchanged, so the documents are kept


def test_a_declared_revision_names_the_code(folder: Path) -> None:
    settings = Settings(cache=folder / "vectors")
    contender = '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\noptions = { revision = "7" }\n'
    _run(folder, contender, settings)
    (folder / "mine.py").write_text(f"{MINE}\n# a comment\n")
    assert _cached(_run(folder, contender, settings)) == 3


def _cached(outcome: Outcome) -> int:
    (row,) = outcome.ran
    assert row.search is not None
    assert row.search.embedding is not None
    return sum(usage.cached for usage in row.search.embedding.usage.values())


class Endpoint(BaseHTTPRequestHandler):
    """Answers as Elasticsearch does, and keeps what it was asked."""

    asked: ClassVar[list[Any]] = []
    failures: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((body, self.headers.get("Authorization")))
        if self.failures:
            self.send_response(self.failures.pop())
            self.end_headers()
            return
        found = {"copper": [("1", 2.5)], "lake": [("1", 1.0), ("2", 3.0), ("other", 2.0)]}
        hits = [{"_id": name, "_score": score} for name, score in found.get(body["query"]["match"]["text"], [])]
        content = json.dumps({"hits": {"hits": hits}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    Endpoint.asked, Endpoint.failures = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/search"
    server.shutdown()
    server.server_close()
    thread.join()


HTTP = """
[[contender]]
label = "live"
[contender.retriever]
url = "URL"
body = { size = "{k}", query = { match = { text = "{text}" } } }
ids = "hits.hits.*._id"
scores = "hits.hits.*._score"
headers = { Authorization = "Bearer ${SEARCH_KEY}" }
unknown = "drop"
"""


def test_an_endpoint_is_a_row_with_its_real_latency(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", "s3cret")
    Endpoint.failures = [503]
    waits: list[float] = []
    outcome = _run(folder, HTTP.replace("URL", url), Settings(policy=RetryPolicy(sleep=waits.append)))
    assert outcome.not_run == []
    assert outcome.scores["live"]["mrr"] == [1, 1, 0]
    body, key = Endpoint.asked[-1]
    assert body["size"] == 3  # a number, as many as the task has documents
    assert key == "Bearer s3cret"
    assert len(waits) == 1  # the 503 was asked again, and its wait is not in the latency
    (row,) = outcome.ran
    assert row.search is not None
    assert min(row.search.timing.total_ns) > 0
    (shown,) = [row for row in summarise(outcome).rows if row.row_type == "retriever"]
    assert shown.cost == Cost()  # nobody knows what the server costs
    assert shown.latency is not None
    assert not {"untimed_embedding", "untimed_second_stage"} & {*ids(shown.latency.doubts)}
    assert "s3cret" not in json.dumps(outcome.lineup.to_dict())


def test_an_endpoint_without_its_key_or_with_unknown_documents_costs_its_row(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    text = HTTP.replace("URL", url)
    (lost,) = _run(folder, text).not_run
    says(failure_words(lost.failure), "SEARCH_KEY")
    monkeypatch.setenv("SEARCH_KEY", "x")
    (lost,) = _run(folder, text.replace('unknown = "drop"\n', "")).not_run
    says(failure_words(lost.failure), "'other'")
    says(failure_words(lost.failure), '"drop"', "[[contender]]")
    (lost,) = _run(folder, text.replace("hits.hits.*._id", "hits.*.id")).not_run
    says(failure_words(lost.failure), "'hits.*.id'")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('url = "ftp://x"', "URL"),
        ('url = "http://me:pw@x/"', "line-up"),
        ('url = "http://[x"', "URL"),
        ('url = "http://x/"\nids = "hits"', '"hits.*.id"'),
        ('url = "http://x/"\nheaders = { Authorization = "Bearer abc" }', "line-up"),
        ('url = "http://x/"\nheaders = { Authorization = "Bearer abc ${HOME}" }', "line-up"),
        ('url = "http://x/"\nheaders = { Ocp-Apim-Subscription-Key = "abc" }', "line-up"),
        ('url = "http://x/"\nheaders = { X-Pass = "abc" }', "line-up"),
        ('url = "http://x/"\nbody = { query = "{text}", login = { api_key = "abc" } }', "login.api_key"),
        ('file = "mine.py"\nfunction = "search"\npassword = "abc"', "line-up"),
        ('url = "http://x/"\nmethod = "PUT"', "POST"),
        ('url = "http://x/"\nbdy = {}', "'body'"),
        ('place = "x"', '"file:mine.py:search"'),
    ],
)
def test_what_an_endpoint_has_wrong_is_refused_before_anything_runs(folder: Path, settings: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        _run(folder, f"[[contender]]\n[contender.retriever]\n{settings}\n")
    says(f"{refused.value} {refused.value.remedy}", said)
