"""Pool, grade, annotate, adjudicate, agree, audit and run: the same commands on a task of every format."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from bakeoff.extensions.testsets.annotate import GradingSession, Server
from bakeoff.extensions.testsets.task_folder import TaskFolder

from tests.cli.test_testsets import say
from tests.errors import says
from tests.wire import PROXIES, WireServer

TEXTS = {
    "d 1": ("Copper", "a copper mine in the hills"),
    "d/2": ("Boats", "sailing on a lake"),
    "003": ("Trees", "a forest trail"),
    "d4": ("Trains", "a railway across the hills"),
}
QUERIES = {"q1": "digging for copper", "q2": "a day on the lake"}
RIGHT = {("q1", "d 1"): 3, ("q2", "d/2"): 3, ("q2", "003"): 1}
LINEUP = """task = "task/task.toml"
measures = ["p@1", "ndcg@10"]
rounds = 1
[[contender]]
ranker = "bm25"
[[contender]]
provider = "fake"
store = "faiss"
"""


def judge(model: str, prompt: str) -> str:
    """As RIGHT says, but the stricter of two models gives at most 2."""
    query = prompt.partition("Query: ")[2].partition("\n")[0]
    text = prompt.partition("Document: ")[2]
    name = next(name for name, text in QUERIES.items() if text == query)
    document = next(item for item, (title, _) in TEXTS.items() if text.strip().startswith(title))
    grade = RIGHT.get((name, document), 0)
    return json.dumps({"reason": "read", "grade": min(grade, 2) if model == "strict" else grade})


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        server.answer = judge
        server.pulled += ["strict:latest"]
        yield server


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def native(folder: Path) -> str:
    articles = [{"page_id": key, "title": title, "summary": text} for key, (title, text) in TEXTS.items()]
    (folder / "articles.json").write_text(json.dumps({"articles": articles}))
    asked = [{"query_id": key, "query_text": text} for key, text in QUERIES.items()]
    (folder / "queries.json").write_text(json.dumps({"queries": asked}))
    return 'format = "native"\narticles = "articles.json"\nqueries = "queries.json"\n'


def beir(folder: Path) -> str:
    corpus = [{"_id": key, "title": title, "text": text} for key, (title, text) in TEXTS.items()]
    (folder / "corpus.jsonl").write_text(lines(corpus))
    (folder / "queries.jsonl").write_text(lines([{"_id": key, "text": text} for key, text in QUERIES.items()]))
    return 'format = "beir"\n'


def tables(folder: Path) -> str:
    rows = "".join(f"{key},{title},{text}\n" for key, (title, text) in TEXTS.items())
    (folder / "documents.csv").write_text("sku,name,about\n" + rows)
    (folder / "queries.jsonl").write_text(lines([{"id": key, "text": text} for key, text in QUERIES.items()]))
    columns = 'columns.documents = { id = "sku", title = "name", text = "about" }\n'
    return f'format = "tables"\ndocuments = "documents.csv"\nqueries = "queries.jsonl"\n{columns}'


def ir_datasets(folder: Path) -> str:
    library = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import TsvDocs, TsvQueries
    from ir_datasets.util import LocalDownload

    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "docs.tsv").write_text("".join(f"{key}\t{' '.join(text)}\n" for key, text in TEXTS.items()))
    (elsewhere / "queries.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in QUERIES.items()))
    docs = TsvDocs(LocalDownload(elsewhere / "docs.tsv"), namespace="own", lang="en")
    queries = TsvQueries(LocalDownload(elsewhere / "queries.tsv"), lang="en")
    library.registry._registered.pop("bakeoff-test/ungraded", None)
    library.registry.register("bakeoff-test/ungraded", library.Dataset(docs, queries))
    return 'format = "ir_datasets"\ndataset = "bakeoff-test/ungraded"\n'


def hub(folder: Path, dataset: str = "own") -> str:
    """As MTEB lays its sets out, which always judge something: here one pair of each query."""
    rows: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": key, "title": title, "text": text} for key, (title, text) in TEXTS.items()],
        "queries": [{"_id": key, "text": text} for key, text in QUERIES.items()],
        "test": [{"query-id": query, "corpus-id": document, "score": 3} for query, document in list(RIGHT)[:2]],
    }
    for name, content in rows.items():
        (folder / dataset / name).mkdir(parents=True)
        (folder / dataset / name / "rows.jsonl").write_text(lines(content))
    config = "- config_name: {}\n  data_files:\n  - split: {}\n    path: {}/rows.jsonl\n"
    parts = [config.format("default" if name == "test" else name, name, name) for name in rows]
    (folder / dataset / "README.md").write_text(f"---\nconfigs:\n{''.join(parts)}---\n")
    return f'format = "hub"\ndataset = "{dataset}"\n'


def mteb(folder: Path) -> str:
    hub(folder, "mteb/scifact")
    return 'format = "mteb"\ntask = "SciFact"\n'


@pytest.fixture
def no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data sets are folders here, read by the real library."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "data sets")
    datasets.disable_progress_bars()


def made(home: Path, make: Callable[[Path], str]) -> Path:
    folder = home / "task"
    folder.mkdir()
    (folder / "task.toml").write_text("rel = 2\n" + make(folder))
    (home / "bakeoff.toml").write_text(LINEUP)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def grade_by_page(address: str) -> int:
    """What a browser does: asks for the open pair, sends a grade, until none is open. Everyone agrees with RIGHT."""
    parts = urlsplit(address)
    graded = 0
    while True:
        shown = _asked(parts.netloc, f"{parts.path}pair")
        if shown["at"] is None:
            return graded
        query, document = shown["query"], shown["document"]
        assert query["text"] == QUERIES[query["id"]]
        given = RIGHT.get((query["id"], document["id"]), 0)
        body = {"query": query["id"], "document": document["id"], "grade": given}
        _asked(parts.netloc, f"{parts.path}grade", body)
        graded += 1


def _asked(host: str, path: str, body: dict[str, Any] | None = None) -> Any:
    connection = http.client.HTTPConnection(host, timeout=10)
    if body is None:
        connection.request("GET", path)
    else:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    assert answer.status == 200, content
    connection.close()
    return content


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("make", [native, beir, tables, ir_datasets, hub, mteb], ids=lambda make: make.__name__)
def test_from_an_ungraded_task_to_a_matrix(tmp_path: Path, wire: WireServer, make: Callable[[Path], str]) -> None:
    folder = made(tmp_path, make)
    sources = digests(folder)
    if make not in (hub, mteb):
        says(say(tmp_path, "run", code=2), "'task'")
    models = ["--judge", "llm", "--model", "ollama:llama3.1", "--model", "ollama:strict"]
    pooling = ["--all-below", "1", "--depth", "1"]

    # What fails writes nothing.
    says(say(tmp_path, "grade", "task", *models, *pooling, "--offline", code=1), "--offline")
    assert digests(folder) == sources

    said = say(tmp_path, "grade", "task", *models, *pooling, OLLAMA_HOST=wire.url)
    pool = json.loads((folder / "annotations" / "pool.json").read_text())["pairs"]
    pairs = [(query, document) for query, documents in pool.items() for document in documents]
    assert {("q1", "d 1"), ("q2", "d/2")} <= set(pairs)
    says(said, f"{len(pairs)}", "bm25", "fake+faiss")
    assert f"ollama-strict: {len(pairs)} pairs graded" in said
    assert f"{len(pairs)} grades in" in said
    says(said, "2 pairs")
    truth = json.loads((folder / "ground_truth.json").read_text())["grades"]
    assert (truth["q1"]["d 1"], truth["q2"]["d/2"]) == (2, 2)  # of 2 and 3 the lower

    opened = TaskFolder.open(str(folder))
    server = Server(GradingSession(opened, "ada", opened.pool()))
    threading.Thread(target=server.serve, daemon=True).start()
    assert grade_by_page(server.address) == len(pairs)
    server.stop()
    server.close()

    said = say(tmp_path, "agreement", "task")
    says(said, "3 annotators", f"{len(pairs)}", "2 graded")
    said = say(tmp_path, "audit", "task", "ollama-strict", "--samples", "20", "--measure", "ndcg@10")
    assert f"ollama-strict against ada: {len(pairs)} pairs" in said

    decisions = [{"query_id": "q1", "page_id": "d 1", "grade": 3, "why": "it is one"}]
    wrong = [*decisions, {"query_id": "q2", "page_id": "nowhere", "grade": 1}]
    before = digests(folder)
    (tmp_path / "decisions.json").write_text(json.dumps(wrong))
    says(say(tmp_path, "adjudicate", "task", "--from", "decisions.json", code=2), "'nowhere'")
    assert digests(folder) == before
    (tmp_path / "decisions.json").write_text(json.dumps(decisions))
    said = say(tmp_path, "adjudicate", "task", "--from", "decisions.json")
    assert "1 decision taken" in said
    truth = json.loads((folder / "ground_truth.json").read_text())["grades"]
    assert {(q, d): g for q, row in truth.items() for d, g in row.items() if g} == {
        pair: grade for pair, grade in RIGHT.items() if pair in pairs
    }

    say(tmp_path, "run", "--no-charts")
    (result,) = (tmp_path / "results").iterdir()
    rows = {row["label"]: row for row in json.loads((result / "metrics_summary.json").read_text())["rows"]}
    assert rows["bm25"]["measures"]["p@1"]["mean"] == 1  # the words are in the right documents
    now = digests(folder)
    assert {name: now[name] for name in sources} == sources  # what the task came with is as it was
    assert {name.partition("/")[0] for name in now.keys() - sources.keys()} == {"annotations", "ground_truth.json"}


def graded_until_ctrl_c(folder: Path, *command: str) -> tuple[int, str]:
    """How many pairs the page of a command had, all graded by ada, and everything that the command printed."""
    environment = {name: value for name, value in os.environ.items() if name not in PROXIES}
    with subprocess.Popen(
        [sys.executable, "-m", "bakeoff", *command, "--who", "ada", "--no-open"], cwd=folder,
        env={**environment, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        lines, address = "", None
        while address is None:
            line = process.stdout.readline()
            assert line, "ended without a page"
            lines, address = lines + line, re.search(r"http://\S+", line)
        graded = grade_by_page(address[0])
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    return graded, lines + rest


def test_the_annotate_command_serves_a_beir_folder_until_ctrl_c(tmp_path: Path) -> None:
    folder = made(tmp_path, beir)
    graded, said = graded_until_ctrl_c(tmp_path, "annotate", "task")
    assert graded == 8
    assert "8 of 8 graded" in said
    says(said, "ada")
    truth = json.loads((folder / "ground_truth.json").read_text())["grades"]
    assert truth["q2"] == {"d 1": 0, "d/2": 3, "003": 1, "d4": 0}
    (folder / "ground_truth.json").unlink()  # as after a crash
    said = say(tmp_path, "grade", "task", "--who", "ada")  # ends at once: there is no page
    says(said, "8 of 8 pairs", "bakeoff annotate task --who ada")
    assert json.loads((folder / "ground_truth.json").read_text())["grades"] == truth
    said = graded_until_ctrl_c(tmp_path, "annotate", "task")[1]
    assert "8 of 8 pairs graded by ada. Open http://127.0.0.1:" in said


def test_grade_next_serves_a_page_with_just_the_pairs_that_it_names(tmp_path: Path) -> None:
    folder = made(tmp_path, beir)
    graded, said = graded_until_ctrl_c(tmp_path, "grade", "next", "task", "--n", "3", "--page")
    assert graded == 3
    grades = json.loads((folder / "annotations" / "ada.json").read_text())["grades"]
    given = {(query, document) for query, row in grades.items() for document in row}
    named = {
        pair for pair in ((q, d) for q in QUERIES for d in TEXTS) if re.search(rf"^{pair[0]} +{pair[1]} ", said, re.M)
    }
    assert given == named
    assert len(named) == 3


def test_one_annotators_grades_are_used_and_said_to_be(tmp_path: Path) -> None:
    folder = made(tmp_path, tables)
    grades = {query: {document: RIGHT.get((query, document), 0) for document in TEXTS} for query in QUERIES}
    (folder / "annotations").mkdir()
    (folder / "annotations" / "ada.json").write_text(json.dumps({"grades": grades}))
    said = say(tmp_path, "validate", "task")
    says(said, "8 grades", "bakeoff adjudicate task")
    says(say(tmp_path, "adjudicate", "task"), "ada")
    says(say(tmp_path, "agreement", "task"), "ada")
    said = say(tmp_path, "validate", "task")
    says(said, "100.0%")
    says(said, "ada")


def test_grades_given_here_count_over_those_of_the_files(tmp_path: Path, wire: WireServer) -> None:
    folder = made(tmp_path, beir)
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td 1\t1\nq2\td/2\t1\nq2\td4\t1\n")
    sources = digests(folder)
    prompts: list[str] = []

    def yes_or_no(model: str, prompt: str) -> str:
        prompts.append(prompt)
        return '{"reason": "no", "grade": 0}'

    wire.answer = yes_or_no
    said = say(tmp_path, "grade", "task", "--judge", "llm", "--ungraded", OLLAMA_HOST=wire.url)
    says(say(tmp_path, "grade", "task", "--ungraded"))  # no page with 0 of 0 pairs
    says(said, "5")
    assert "1 = relevant\n0 = " in prompts[0]  # the scale of the qrels
    say(tmp_path, "grade", "task", "--judge", "llm", OLLAMA_HOST=wire.url)
    opened = TaskFolder.open(str(folder))
    assert opened.task.judgments["q1"] == {"d 1": 0, "d/2": 0, "003": 0, "d4": 0}
    assert opened.task.graded_by_model == 8
    now = digests(folder)
    assert {name: now[name] for name in sources} == sources


def test_a_task_that_a_line_up_describes_is_graded_beside_it(tmp_path: Path, wire: WireServer) -> None:
    described = tables(tmp_path)
    head, contenders = LINEUP.replace('task = "task/task.toml"\n', "").split("[[contender]]", 1)
    (tmp_path / "shop.toml").write_text(f"{head}[task]\n{described}[[contender]]{contenders}")
    say(tmp_path, "grade", "shop.toml", "--judge", "llm", OLLAMA_HOST=wire.url)
    assert json.loads((tmp_path / "ground_truth.json").read_text())["grades"]["q1"]["d 1"] == 3
    assert "8 judgments" in say(tmp_path, "validate", "shop.toml", "--no-health")


def test_a_scale_of_the_tables_own_labels(tmp_path: Path) -> None:
    folder = made(tmp_path, tables)
    (folder / "judgments.jsonl").write_text(lines([{"query": "q1", "document": "d 1", "grade": "Exact"}]))
    with (folder / "task.toml").open("a") as file:
        file.write('judgments = "judgments.jsonl"\ngrades = { Exact = 4, Partial = 1, Irrelevant = 0 }\n')
    opened = TaskFolder.open(str(folder))
    assert opened.scale == {4: "Exact", 1: "Partial", 0: "Irrelevant"}


def test_what_can_not_be_graded_is_named(tmp_path: Path) -> None:
    says(say(tmp_path, "grade", "films", code=2), "'ordered'")
    folder = made(tmp_path, beir)
    (folder / "ground_truth.json").write_text('{"grades": {"q9": {"d4": 1}}}')
    said = say(tmp_path, "validate", "task", code=2)
    says(said, "ground_truth.json", "'q9'")
    (tmp_path / "several.toml").write_text('[[tasks]]\ntask = "wikipedia"\n[[tasks]]\ntask = "films"\n')
    says(say(tmp_path, "agreement", "several.toml", code=2), "several.toml")


def test_too_many_pairs_are_pooled_before_people_grade_them(tmp_path: Path) -> None:
    folder = made(tmp_path, beir)
    rows = [{"_id": str(number), "title": "", "text": f"text {number}"} for number in range(600)]
    (folder / "corpus.jsonl").write_text(lines(rows))
    said = say(tmp_path, "annotate", "task", "--no-open", code=2)
    says(said, "1200 pairs")
    assert "bakeoff grade task" in said
    assert not (folder / "annotations").exists()
