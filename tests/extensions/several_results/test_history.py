"""Several results over time, and the site that shows them."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from bakeoff.core.files import write_json
from bakeoff.extensions.several_results import history
from bakeoff.extensions.several_results.history import HOST, Entry, Site, changes, entries, points, sentences
from bakeoff.results.schema import SUMMARY, Summary, read_summary
from msgspec.structs import replace

from tests.reporting import SCRIPT, wikipedia_result
from tests.terminal import bakeoff


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three results: the second has another model under a known name, the third another task."""
    folder = tmp_path_factory.mktemp("history")
    first = wikipedia_result(folder, "fake", "bm25")
    for number, day in enumerate(("2026-03-01", "2026-03-02", "2026-03-05")):
        copy = folder / f"{day.replace('-', '')}-101500-wikipedia"
        shutil.copytree(first, copy)
        summary = replace(read_summary(copy), started=f"{day}T10:15:00+00:00")
        if number:
            renamed = [
                replace(row, model=f"hash2 {SCRIPT}") if row.label == "fake+faiss" else row for row in summary.rows
            ]
            summary = replace(summary, rows=renamed)
        if number == 2:
            summary = replace(summary, task=replace(summary.task, fingerprint="other", documents=30))
        write_json(copy / SUMMARY, summary)
    shutil.rmtree(first)
    return folder


def summaries(results: Path) -> list[Summary]:
    return [entry.summary for entry in history.ordered(entries(results))]


def test_changes_of_model_and_task_are_told(results: Path) -> None:
    first, second, third = summaries(results)
    assert changes(first, first) == []
    (model,) = changes(first, second)
    assert model.startswith("model of fake+faiss changed (hash, 256 dimensions → hash2 ")
    assert changes(second, third) == ["task changed (25 → 30 documents, 20 → 20 queries)"]


def test_a_line_ends_where_the_figures_cannot_be_compared(results: Path) -> None:
    found = [p for p in points(history.ordered(entries(results))) if p["measure"] == "ndcg@10"]
    segments = {
        label: [point["segment"] for point in found if point["model"] == label] for label in ("fake+faiss", "bm25")
    }
    assert segments["bm25"] == ["bm25 0", "bm25 0", "bm25 1"]
    assert segments["fake+faiss"] == ["fake+faiss 0", "fake+faiss 1", "fake+faiss 2"]
    assert [point["changed"] for point in found if point["model"] == "fake+faiss"] == [False, True, False]


def test_sentences_say_what_cannot_be_compared(results: Path) -> None:
    told = sentences(history.ordered(entries(results)))
    assert told[0] == "3 results, from 2026-03-01 to 2026-03-05."
    assert "2 different tasks" in told[-1]


def test_results_of_one_day_are_told_apart_by_the_hour(results: Path) -> None:
    first = summaries(results)[0]

    def told(*times: str) -> list[str]:
        dated = [replace(first, started=f"2026-03-01T{time}+00:00") for time in times]
        return sentences([Entry(name=each.started, link="", summary=each) for each in dated])

    assert told("10:15:00", "10:15:30", "12:00:00")[0] == "3 results, of 2026-03-01, from 10:15:00 to 12:00:00."
    assert told("10:15:00", "12:00:00")[-1] == "Since 10:15:00, the last result on the same task, it did not move."
    assert told("10:15:00")[0] == "1 result, of 2026-03-01, 10:15:00."


def test_a_folder_of_results_has_a_history_even_of_one(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "20260301-101500-wikipedia", tmp_path / "results" / "one")
    page = tmp_path / "results" / "one" / "evaluation_report.html"
    page.write_text("as it was")
    done = bakeoff("report", "results", "--no-pictures", cwd=tmp_path)
    assert done.stdout == "Written to history.html\n", done.stderr
    assert page.read_text() == "as it was"
    assert "1 result, of 2026-03-01, 10:15:00." in (tmp_path / "history.html").read_text()


def test_a_second_result_on_the_same_task_says_how_it_moved(results: Path) -> None:
    first, second, _ = summaries(results)
    best = next(row for row in second.rows if row.label == second.verdict.leader)
    moved = msgspec.structs.replace(best.measures["ndcg@10"], mean=best.measures["ndcg@10"].mean + 0.05)
    best.measures["ndcg@10"] = moved
    pair = [Entry(name=name, link="", summary=each) for name, each in (("a", first), ("b", second))]
    assert "Since 2026-03-01, the last result on the same task, it moved by +0.050." in sentences(pair)


def test_one_page_for_several_results(results: Path, tmp_path: Path) -> None:
    done = bakeoff("report", str(results), "--out", str(tmp_path / "all.html"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "all.html").read_text()
    assert "task changed (25 → 30 documents" in made
    assert SCRIPT not in made
    assert "&lt;script&gt;" in made
    assert (tmp_path / "charts" / "history.png").read_bytes().startswith(b"\x89PNG")
    there = os.path.relpath(results / "20260305-101500-wikipedia" / "evaluation_report.html", tmp_path)
    assert f'href="{there}"' in made


def test_a_result_is_reported_again_from_its_files(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    shutil.copytree(results / "20260301-101500-wikipedia", folder)
    before = (folder / "matrix.md").read_text()
    for name in ("evaluation_report.html", "matrix.md", "matrix.tex", "matrix.csv", "matrix.json"):
        (folder / name).unlink()
    done = bakeoff("report", str(folder), "--no-pictures", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Written to" in done.stdout
    assert (folder / "matrix.md").read_text().splitlines()[:-1] == before.splitlines()[:-1]  # but for the date
    assert {path.name for path in folder.glob("matrix.*")} == {"matrix.md", "matrix.tex", "matrix.csv", "matrix.json"}
    assert "NDCG@10" in (folder / "evaluation_report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "empty"], "holds no result"),
        (["report", "none"], "none: no such folder"),
        (["report", "broken"], "is not valid JSON"),
        (["serve", "none"], "is not a folder"),
        (["show", "empty", "--p95", "5"], "is not a result"),
    ],
)
def test_bad_input_is_told_and_leaves_nothing(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "r").mkdir(parents=True)
    (tmp_path / "broken" / "r" / SUMMARY).write_text("{")
    before = set(tmp_path.rglob("*"))
    done = bakeoff(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert set(tmp_path.rglob("*")) == before


def test_show_tells_the_choice_within_limits(results: Path, tmp_path: Path) -> None:
    done = bakeoff("show", str(results / "20260301-101500-wikipedia"), "--index", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Within these limits: " in done.stdout


@pytest.fixture
def site(results: Path) -> Iterator[Site]:
    (results / ".draft.part").mkdir(exist_ok=True)
    (results / ".draft.part" / SUMMARY).write_text("{}")
    with Site(results, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(site: Site, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(HOST, site.server_address[1], timeout=30)
    connection.putrequest(method, path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.getheader("Content-Type") or "", answer.read().decode()
    connection.close()
    return found


def test_the_site_shows_the_folder_and_nothing_else(site: Site) -> None:
    assert site.server_address[0] == "127.0.0.1"
    status, kind, front = ask(site, "/")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert 'href="20260305-101500-wikipedia/evaluation_report.html"' in front
    status, _, page = ask(site, "/20260305-101500-wikipedia/evaluation_report.html")
    assert status == 200
    assert '<table class="matrix">' in page
    assert ask(site, f"/20260305-101500-wikipedia/{SUMMARY}")[1] == "application/json; charset=utf-8"
    for outside in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", f"/.draft.part/{SUMMARY}",
                    "/none", "/%00", "/20260305-101500-wikipedia"):  # fmt: skip
        assert ask(site, outside)[0] == 404, outside
    assert ask(site, "/", method="POST")[0] == 501
    assert ask(site, "/", method="HEAD")[2] == ""


def test_another_name_for_this_machine_is_refused(site: Site) -> None:
    assert ask(site, "/", host="evil.example")[0] == 403
    assert ask(site, "/", host=f"localhost:{site.server_address[1]}")[0] == 200


def test_a_new_result_appears_without_a_restart(site: Site, results: Path) -> None:
    assert "20260401" not in ask(site, "/")[2]
    shutil.copytree(results / "20260305-101500-wikipedia", results / "20260401-101500-wikipedia")
    try:
        assert "20260401" in ask(site, "/")[2]
    finally:
        shutil.rmtree(results / "20260401-101500-wikipedia")


@pytest.mark.parametrize("content", ["{", "[]", '{"name": 5}', "\x00"])
def test_a_broken_result_does_not_empty_the_front_page(site: Site, results: Path, content: str) -> None:
    broken = results / "20260402-101500-wikipedia"
    broken.mkdir()
    (broken / SUMMARY).write_text(content)
    try:
        status, _, front = ask(site, "/")
        assert status == 200
        assert 'href="20260305-101500-wikipedia/evaluation_report.html"' in front
        assert f"{broken.name} can&#39;t be read: " in front
    finally:
        shutil.rmtree(broken)


def test_a_result_that_can_not_be_shown_is_named_with_its_reason(
    site: Site, results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It can be read, but its best contender is none of its rows."""
    odd = results / "20260403-101500-wikipedia"
    shutil.copytree(results / "20260305-101500-wikipedia", odd)
    summary = json.loads((odd / SUMMARY).read_text(encoding="utf-8"))
    summary["verdict"]["leader"] = "nobody"
    (odd / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")
    try:
        status, _, front = ask(site, "/")
        assert status == 200
        assert 'href="20260305-101500-wikipedia/evaluation_report.html"' in front
        assert f"{odd.name} can&#39;t be shown: " in front
        assert f"{odd.name} can't be shown" in caplog.text
    finally:
        shutil.rmtree(odd)


def test_a_length_that_is_no_number_is_a_bad_request(site: Site) -> None:
    with socket.create_connection((HOST, site.server_address[1]), timeout=30) as connection:
        connection.sendall("GET / HTTP/1.0\r\nHost: localhost\r\nContent-Length: ²\r\n\r\n".encode("latin-1"))
        assert connection.makefile("rb").readline().split()[1] == b"400"
