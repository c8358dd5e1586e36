"""Indexes that exist, made by their own libraries: read as they are, and never written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from bakeoff.core.facts import fact
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.report.words import failure_words
from bakeoff.running.plan import plan
from bakeoff.running.runner import Outcome, Settings, run
from bakeoff.search.stores.existing import EXISTING, ExistingIndex
from bakeoff.search.stores.faiss import ExistingFaiss
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError
from bakeoff_providers.fake import Fake

from tests.errors import refuses, says
from tests.native_task import native_files, write_lineup

# Chunks of the task's documents, the documents that they belong to; document 3 is not there, and one more is.
ENTRIES = [
    ("a", "1", "Copper copper mine"), ("b", "1", "an old shaft"), ("c", "2", "Boats"), ("d", "2", "sailing lake"),
    ("e", "99", "something else"),
]  # fmt: skip
D = 32
Made = dict[str, str]  # the settings of a store entry


def _vectors() -> Any:
    return Fake(dimensions=D).embed([text for _, _, text in ENTRIES], Role.DOCUMENT).vectors


def _chroma(folder: Path, url: str) -> Made:
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma_db"))
    collection = client.create_collection("docs", configuration={"hnsw": {"space": "cosine"}})
    collection.add(
        ids=[key for key, _, _ in ENTRIES],
        embeddings=_vectors(),
        metadatas=[{"page_id": int(document)} for _, document, _ in ENTRIES],
    )
    client.create_collection("other")
    client.close()
    return {"existing": "chroma_db", "collection": "docs", "id": "metadata.page_id"}


def _chroma_server(folder: Path, url: str) -> Made:
    import chromadb

    name = f"docs_{folder.name}"[:60]
    client = chromadb.HttpClient(host="127.0.0.1", port=int(url.rpartition(":")[2]))
    collection = client.create_collection(name, configuration={"hnsw": {"space": "cosine"}})
    collection.add(ids=[f"{document}#{key}" for key, document, _ in ENTRIES], embeddings=_vectors())
    return {"existing": url, "collection": name, "split": "#"}


def _pgvector(folder: Path, url: str) -> Made:
    import psycopg
    from pgvector.psycopg import register_vector

    table = f"docs_{folder.name}".replace("-", "_")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create extension if not exists vector")
        register_vector(connection)
        connection.execute(f"create table {table} (key text, about jsonb, embedding vector({D}))")
        for (key, document, _), vector in zip(ENTRIES, _vectors(), strict=True):
            row = (key, json.dumps({"page": {"id": document}}), vector)
            connection.execute(f"insert into {table} values (%s, %s, %s)", row)
    return {"existing": url, "collection": table, "id": "about.page.id"}


def _qdrant(folder: Path, url: str) -> Made:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    client.create_collection("docs", vectors_config=models.VectorParams(size=D, distance=models.Distance.COSINE))
    points = [
        models.PointStruct(id=number, vector=vector.tolist(), payload={"page": {"id": document}})
        for number, ((_, document, _), vector) in enumerate(zip(ENTRIES, _vectors(), strict=True))
    ]
    client.upsert("docs", points)
    client.close()
    return {"existing": "qdrant", "id": "payload.page.id"}


def _lancedb(folder: Path, url: str) -> Made:
    import lancedb
    import pyarrow

    vectors = _vectors()
    table = pyarrow.table(
        {
            "key": [f"{document}#{key}" for key, document, _ in ENTRIES],
            "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), D),
        }
    )
    lancedb.connect(str(folder / "lance")).create_table("docs", table)
    return {"existing": "lance", "collection": "docs", "id": "key", "split": "#", "metric": "cosine"}


def _sqlite_vec(folder: Path, url: str) -> Made:
    import apsw
    import sqlite_vec

    connection = apsw.Connection(str(folder / "docs.sqlite"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute(f"create virtual table docs using vec0(embedding float[{D}] distance_metric=cosine)")
    connection.execute("create table pages (page text)")
    for number, ((_, document, _), vector) in enumerate(zip(ENTRIES, _vectors(), strict=True)):
        connection.execute("insert into docs (rowid, embedding) values (?, ?)", (number, vector.tobytes()))
        connection.execute("insert into pages (rowid, page) values (?, ?)", (number, document))
    connection.close()
    return {"existing": "docs.sqlite", "id": "pages.page"}


def _faiss(folder: Path, url: str) -> Made:
    import faiss

    index = faiss.IndexFlatIP(D)
    index.add(_vectors())
    faiss.write_index(index, str(folder / "docs.faiss"))
    (folder / "ids.txt").write_text("\n".join(f"{document}#{key}" for key, document, _ in ENTRIES))
    return {"existing": "docs.faiss", "id": "ids.txt", "split": "#"}


MAKERS: dict[str, tuple[Callable[[Path, str], Made], str]] = {  # by what they are called in tests, with their server
    "chroma": (_chroma, ""), "chroma-server": (_chroma_server, "chroma"), "pgvector": (_pgvector, "postgres"),
    "qdrant": (_qdrant, ""), "lancedb": (_lancedb, ""), "sqlite_vec": (_sqlite_vec, ""), "faiss": (_faiss, ""),
}  # fmt: skip


@pytest.fixture(params=MAKERS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Made]:
    maker, server = MAKERS[request.param]
    return request.param.partition("-")[0], maker(tmp_path, request.getfixturevalue(server) if server else "")


def _content(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.endswith((".lock", ".toml", ".json")) and file.stat().st_size
    }


def _open(store: str, settings: Made, folder: Path) -> ExistingIndex:
    path = settings["existing"] if "://" in settings["existing"] else str(folder / settings["existing"])
    return EXISTING.create(store, **{**settings, "existing": path})


def _lineup(folder: Path, store: str, settings: Made, options: str = f"dimensions = {D}") -> Lineup:
    entry = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    file = write_lineup(
        folder,
        native_files(),
        head='measures = ["mrr"]\nrounds = 1',
        contenders=f'[[contender]]\nprovider = "fake"\noptions = {{ {options} }}\n'
        f'store = {{ name = "{store}", {entry} }}\n[[contender]]\nranker = "bm25"\n',
    )
    return Lineup.read(file)


def test_an_index_that_exists_is_a_row(made: tuple[str, Made], tmp_path: Path) -> None:
    store, settings = made
    before = _content(tmp_path)
    lineup = _lineup(tmp_path, store, settings)
    outcome = run(lineup)
    assert outcome.not_run == []
    row = next(row for row in outcome.ran if row.contender.row_type == "existing")
    vectors = _vectors()
    for query in outcome.task.queries:  # exact search by hand, over chunks, is the truth
        asked = Fake(dimensions=D).embed([query.text], Role.QUERY).vectors[0]
        best: dict[str, float] = {}
        for (_, document, _), score in zip(ENTRIES, (vectors @ asked).tolist(), strict=True):
            best[document] = max(score, best.get(document, -2))
        del best["99"]
        order = sorted(best, key=lambda document: (-round(best[document], 5), document))
        assert list(row.rankings[query.id].ids) == order
    assert row.search is not None
    assert row.search.build.dimensions == D
    assert row.search.short == 0
    assert len(row.search.timing.search_ns) == 3
    assert row.search.build.notes == (
        fact("index_lacks", count=1, documents=3, named=["3"]),
        fact("index_has_more", documents=1),
    )
    assert row.search.embedding is not None
    assert row.search.embedding.usage[Role.DOCUMENT].asked == 0
    assert _content(tmp_path) == before
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(tmp_path / "again.toml").contenders == lineup.contenders


def test_an_index_that_answers_fewer_entries_than_it_has_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ExistingFaiss.search
    monkeypatch.setattr(ExistingFaiss, "search", lambda index, vector, k: whole(index, vector, min(k, 1)))
    outcome = run(_lineup(tmp_path, "faiss", _faiss(tmp_path, "")))
    row = next(row for row in outcome.ran if row.contender.row_type == "existing")
    assert row.search is not None
    assert row.search.short == 3  # of three queries


def test_all_entries_can_be_read_in_blocks(made: tuple[str, Made], tmp_path: Path) -> None:
    store, settings = made
    index = _open(store, settings, tmp_path)
    blocks = list(index.blocks(2))
    assert [len(names) for names, _ in blocks] == [2, 2, 1]
    entries = [entry for names, rows in blocks for entry in zip(names, rows, strict=True)]
    pairs = {(name, vector.round(5).tobytes()) for name, vector in entries}
    expected = zip(ENTRIES, _vectors(), strict=True)
    assert pairs == {(document, vector.round(5).tobytes()) for (_, document, _), vector in expected}
    assert index.documents() == {"1", "2", "99"}
    assert (index.entries, index.dimensions) == (5, D)
    index.close()


def test_another_dimension_costs_the_row(made: tuple[str, Made], tmp_path: Path) -> None:
    store, settings = made
    (lost,) = run(_lineup(tmp_path, store, settings, "dimensions = 16")).not_run
    says(failure_words(lost.failure), "32 dimensions", "16")


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    settings = _chroma(tmp_path, "")
    for change, said in (
        ({"collection": "dosc"}, "'dosc'"),
        ({"collection": ""}, "2"),
        ({"existing": "nowhere"}, "nowhere"),
        ({"id": "metadata.page"}, "'metadata.page'"),
        ({"id": "id"}, "a, b, c, d, e, …"),
    ):
        (lost,) = run(_lineup(tmp_path, "chroma", {**settings, **change})).not_run
        says(failure_words(lost.failure), said)
    (planned, *_) = plan(_lineup(tmp_path, "chroma", settings), Settings())
    assert planned.texts == 3  # the queries


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('store = { name = "chroma", collection = "docs" }', "contender 1, store"),
        ('store = { name = "usearch", existing = "x" }', "'usearch'"),
        ('store = { name = "chroma", existing = "x" }\ndimensions = 16', "contender 1, store"),
    ],
)
def test_what_the_line_up_has_wrong_is_refused(tmp_path: Path, entry: str, said: str) -> None:
    with refuses(InputError, said, file="own.toml"):
        Lineup.read(write_lineup(tmp_path, native_files(), contenders=f'[[contender]]\nprovider = "fake"\n{entry}\n'))


def test_postgres_is_asked_in_transactions_that_cannot_write(postgres: str, tmp_path: Path) -> None:
    import psycopg

    index = _open("pgvector", _pgvector(tmp_path, postgres), tmp_path)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        index._connection.execute("create table never (x int)")  # type: ignore[attr-defined]
    index.close()


@contextmanager
def _guard(behind: str, token: str) -> Iterator[tuple[str, list[str]]]:
    """A proxy that lets only requests with the token pass, and notes what passed."""
    passed: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("x-chroma-token") != token or self.headers["authorization"] != f"Bearer {token}":
                return self._answer(401, b'{"error": "AuthError", "message": "no token"}')
            passed.append(f"{self.command} {self.path}")
            sent = httpx.request(
                self.command, behind + self.path, content=body, headers={"content-type": "application/json"}
            )
            return self._answer(sent.status_code, sent.content)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _pass

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", passed
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_chroma_server_gets_its_token_from_the_environment_and_only_questions(
    chroma: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _chroma_server(tmp_path, chroma)
    with _guard(chroma, "secret-0123456789") as (url, passed):
        lineup = _lineup(tmp_path, "chroma", {**settings, "existing": url})
        (lost,) = run(lineup).not_run
        says(failure_words(lost.failure), "ChromaAuthError")
        assert passed == []
        monkeypatch.setenv("CHROMA_API_KEY", "secret-0123456789")
        assert run(lineup).not_run == []
        assert passed
        assert all(line.startswith("GET ") or line.endswith(("/query", "/get")) for line in passed)


def test_a_password_in_an_address_is_refused(tmp_path: Path) -> None:
    with refuses(InputError, place="contender[0], store.existing", file="own.toml"):
        _lineup(tmp_path, "chroma", {"existing": "http://me:secret@127.0.0.1:8000"})


def test_a_provider_that_learns_from_documents_is_refused(tmp_path: Path) -> None:
    _faiss(tmp_path, "")
    file = write_lineup(
        tmp_path,
        native_files(),
        contenders='[[contender]]\nprovider = "tfidf"\n'
        'store = { name = "faiss", existing = "docs.faiss", id = "ids.txt" }\n',
    )
    outcome: Outcome = run(Lineup.read(file))
    says(failure_words(outcome.not_run[0].failure))
