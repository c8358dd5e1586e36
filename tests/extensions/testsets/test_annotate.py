"""The page's server as a browser (or somebody else's page) meets it: over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.task import Document
from bakeoff.extensions.testsets.annotate import GivenGrade, GradingSession, Server, _where
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
from tests.native_task import annotate, open_task, ungraded_task


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    ungraded_task(tmp_path)
    folder = open_task(tmp_path)
    one = Server(GradingSession(folder, "ada", folder.pool()))
    threading.Thread(target=one.serve, daemon=True).start()
    yield one
    one.stop()
    one.close()


def ask(
    server: Server, path: str, body: Any = None, token: str | None = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    address = f"/{server.token if token is None else token}/{path}"
    if body is None:
        connection.request("GET", address, headers=headers)
    else:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", address, sent, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(content) if is_json else content.decode(), dict(answer.headers)


def grade(query: str, document: str, value: int | None, note: str = "") -> dict[str, Any]:
    return {"query": query, "document": document, "grade": value, "note": note}


def saved(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "task" / "annotations" / "ada.json").read_text())


def test_a_grade_is_on_disk_when_it_is_answered(server: Server, tmp_path: Path) -> None:
    status, first, _ = ask(server, "pair")
    assert (status, first["at"], first["total"], first["done"], first["who"]) == (200, 0, 6, 0, "ada")
    status, answer, _ = ask(server, "grade", grade("q1", first["document"]["id"], 3, " clear "))
    assert (status, answer) == (200, {"done": 1, "next": 1})
    assert saved(tmp_path)["grades"] == {"q1": {first["document"]["id"]: 3}}
    assert saved(tmp_path)["notes"] == {"q1": {first["document"]["id"]: "clear"}}
    assert ask(server, "pair?at=0")[1]["grade"] == 3


def test_a_grade_that_cannot_be_written_is_not_kept(server: Server, tmp_path: Path) -> None:
    ask(server, "grade", grade("q1", "1", 3, "first"))
    file = tmp_path / "task" / "annotations" / "ada.json"
    aside = file.rename(file.with_suffix(".aside"))
    file.mkdir()  # where the disk is full or taken, writing fails
    status, answer, _ = ask(server, "grade", grade("q1", "2", 2, "second"))
    assert (status, list(answer)) == (400, ["error"])
    file.rmdir()
    aside.rename(file)
    assert (server.session.done, server.session.annotation.notes) == (1, {"q1": {"1": "first"}})
    ask(server, "grade", grade("q2", "1", 1))
    assert saved(tmp_path)["grades"] == {"q1": {"1": 3}, "q2": {"1": 1}}


def test_a_pair_says_where_its_document_is_and_how_far_the_query_is(server: Server) -> None:
    shown = [ask(server, f"pair?at={at}")[1] for at in range(6)]
    assert [(pair["query"]["id"], pair["place"], pair["of"]) for pair in shown] == [
        (query, place, 3) for query in ("q1", "q2") for place in (1, 2, 3)
    ]
    assert [pair["document"]["where"] for pair in shown] == [pair["document"]["id"] for pair in shown]
    document = Document("7", "text", metadata={"path": "guide/a.md", "url": "https://example.org/a"})
    assert _where(document) == "https://example.org/a"


def test_grades_can_be_changed_and_notes_taken_back(server: Server, tmp_path: Path) -> None:
    for value, note in ((3, "x"), (1, "")):
        ask(server, "grade", grade("q1", "1", value, note))
    assert saved(tmp_path)["grades"] == {"q1": {"1": 1}}
    assert saved(tmp_path)["notes"] == {}
    ask(server, "grade", grade("q2", "1", None, "revisit"))
    assert saved(tmp_path)["grades"] == {"q1": {"1": 1}}
    assert saved(tmp_path)["notes"] == {"q2": {"1": "revisit"}}


def test_what_is_skipped_comes_again_at_the_end(server: Server) -> None:
    pairs = [ask(server, f"pair?at={n}")[1] for n in range(6)]
    for n in (0, 2, 3, 4, 5):
        answer = ask(server, "grade", grade(pairs[n]["query"]["id"], pairs[n]["document"]["id"], 0))[1]
    assert answer == {"done": 5, "next": 1}
    last = ask(server, "grade", grade(pairs[1]["query"]["id"], pairs[1]["document"]["id"], 0))[1]
    assert last == {"done": 6, "next": None}
    assert ask(server, "pair")[1]["at"] is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (grade("q1", "1", 7), "7"),
        (grade("q1", "9", 1), "q1"),
        ({"query": "q1", "document": "1", "grade": "3"}, "Expected `int | null`"),
        ({"query": "q1", "document": "1", "grade": True}, "Expected `int | null`"),
        ({"query": "q1"}, "`document`"),
        (b"no json", "malformed"),
    ],
)
def test_bad_grades_are_refused_and_cost_nothing(server: Server, tmp_path: Path, body: Any, said: str) -> None:
    ask(server, "grade", grade("q1", "1", 2))
    status, answer, _ = ask(server, "grade", body)
    assert status == 400
    says(answer["error"], said)
    assert saved(tmp_path)["grades"] == {"q1": {"1": 2}}


def test_only_the_address_with_the_token_opens_it(server: Server) -> None:
    for token in ("", "wrong", server.token[:-1]):
        for body in (None, grade("q1", "1", 3)):
            assert ask(server, "pair" if body is None else "grade", body, token=token)[0] == 403
    assert ask(server, "pair", Host=f"evil.example:{server.port}")[0] == 403
    assert ask(server, "grade", grade("q1", "1", 3), **{"Content-Type": "text/plain"})[0] == 404
    assert ask(server, "grade", b"x" * 200_000)[0] == 413
    assert ask(server, "other")[0] == 404
    assert server.session.done == 0


def test_it_listens_on_this_machine_alone(server: Server) -> None:
    assert server._http.server_address[0] == "127.0.0.1"
    assert server.address.startswith("http://127.0.0.1:")


def test_the_page_runs_nothing_from_elsewhere_and_escapes_the_guidelines(tmp_path: Path) -> None:
    path = ungraded_task(tmp_path)
    (path.parent / "GUIDELINES.md").write_text("Grade <script>alert(1)</script> & read.")
    folder = open_task(tmp_path)
    one = Server(GradingSession(folder, "ada", folder.pool()))
    threading.Thread(target=one.serve, daemon=True).start()
    try:
        status, page, headers = ask(one, "")
    finally:
        one.stop()
        one.close()
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; read." in page
    assert "{{" not in page


def test_it_is_blind_to_contenders_and_to_others(tmp_path: Path) -> None:
    path = ungraded_task(tmp_path)
    annotate(tmp_path, "bob", {"q1": {"1": 2}})
    pool = {"metadata": {"contenders": ["bm25", "minilm+faiss"]}, "pairs": {"q1": ["1", "2"], "q2": ["3"]}}
    (path.parent / "annotations" / "pool.json").write_text(json.dumps(pool))
    folder = open_task(tmp_path)
    session = GradingSession(folder, "ada", folder.pool())
    assert set(session.pairs) == {("q1", "1"), ("q1", "2"), ("q2", "3")}
    shown = json.dumps([session.describe_pair(at) for at in range(3)]) + Server(session).page("n")
    for secret in ("bob", "bm25", "minilm", "faiss"):
        assert secret not in shown


def test_everyone_has_an_order_of_their_own_within_a_query(tmp_path: Path) -> None:
    ungraded_task(tmp_path)
    folder = open_task(tmp_path)
    orders = {who: GradingSession(folder, who, folder.pool()).pairs for who in ("ada", "bob", "cem", "dot")}
    assert all([query for query, _ in order] == ["q1"] * 3 + ["q2"] * 3 for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) > 1
    assert GradingSession(folder, "ada", folder.pool()[::-1]).pairs == orders["ada"]


def test_nobody_grades_twice_at_once_or_in_a_models_name(tmp_path: Path) -> None:
    ungraded_task(tmp_path)
    annotate(tmp_path, "judge", {"q1": {"1": 2}}, kind="model")
    folder = open_task(tmp_path)
    first, second = (GradingSession(folder, "ada", folder.pool()) for _ in range(2))
    with first.alone(), refuses(InputError, file="ada.json"), second.alone():
        pass
    with second.alone():
        pass
    with refuses(InputError, file="judge.json"):
        GradingSession(folder, "judge", folder.pool())


def test_many_grades_at_once_are_all_kept(tmp_path: Path) -> None:
    ungraded_task(tmp_path)
    folder = open_task(tmp_path)
    session = GradingSession(folder, "ada", folder.pool())
    workers = [
        threading.Thread(target=session.give, args=(GivenGrade(query=q, document=d, grade=1),))
        for q, d in session.pairs
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert GradingSession(open_task(tmp_path), "ada", folder.pool()).done == 6


def test_a_port_that_is_taken_is_said(server: Server) -> None:
    with refuses(InputError, str(server.port), "Address already in use"):
        Server(server.session, server.port)


def with_scale(tmp_path: Path, scale: object) -> None:
    path = tmp_path / "task" / "ground_truth.json"
    truth = json.loads(path.read_text())
    path.write_text(json.dumps(truth | {"metadata": {"scale": scale}}))


def test_the_page_offers_the_grades_of_the_task(tmp_path: Path) -> None:
    ungraded_task(tmp_path)
    with_scale(tmp_path, {"0": "no <b>", "1": "yes"})
    folder = open_task(tmp_path)
    one = Server(GradingSession(folder, "ada", folder.pool()))
    try:
        page = one.page("n")
    finally:
        one.close()
    assert re.findall(r'data-grade="(\d+)"', page) == ["0", "1"]
    assert "no &lt;b&gt;" in page
    with refuses(InputError, "2", place="$.grades.q1.1") as refused:
        GradingSession(folder, "ada", folder.pool()).give(GivenGrade("q1", "1", 2))
    assert refused.value.remedy == "use 0 or 1"


@pytest.mark.parametrize("scale", [{"10": "ten"}, {"a": "b"}, [], "0-3"])
def test_a_scale_that_is_none_is_refused(tmp_path: Path, scale: object) -> None:
    ungraded_task(tmp_path)
    with_scale(tmp_path, scale)
    with refuses(InputError, "0", "9", place="$.metadata.scale", file="ground_truth.json"):
        _ = open_task(tmp_path).scale


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_length_that_is_no_number_is_a_bad_request(server: Server, method: str) -> None:
    address = f"{method} /{server.token}/pair HTTP/1.0\r\nHost: localhost:{server.port}\r\nContent-Length: ²\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(address.encode("latin-1"))
        assert connection.makefile("rb").readline().split()[1] == b"400"


def test_what_can_not_be_taken_apart_is_a_bad_request(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(f"GET http://[x/ HTTP/1.0\r\nHost: localhost:{server.port}\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"400"


def test_a_browser_leaves_the_port_80_out(server: Server) -> None:
    assert ask(server, "pair", Host="127.0.0.1")[0] == 200


def test_an_answer_that_fails_is_said_to_the_browser(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "page", lambda *_: 1 / 0)
    assert ask(server, "")[0] == 500
    assert ask(server, "pair")[0] == 200


def test_guidelines_that_are_no_utf8_are_said_before_the_page_is_up(tmp_path: Path) -> None:
    ungraded_task(tmp_path)
    folder = open_task(tmp_path)
    (folder.kind.base / "GUIDELINES.md").write_bytes(b"caf\xe9")
    with refuses(InputError, "UTF-8", file="GUIDELINES.md"):
        Server(GradingSession(folder, "ada", folder.pool()))
