"""From a folder of documents to a run's matrix, by the commands that a user types, with no network."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.errors import says
from tests.terminal import ROOT, bakeoff
from tests.wiki import Page, Wiki
from tests.wire import PROXIES, WireServer

DOCUMENTS = {
    "billing/refunds.md": "# Refunds\n\nMoney comes back to the card within five days after a parcel is returned.",
    "billing/invoices.md": "# Invoices\n\nEvery order sends a bill by mail; companies may add their tax number.",
    "shipping/abroad.html": "<title>Abroad</title><p>Parcels to other countries take two weeks and pass customs.</p>",
    "shipping/pickup.txt": "Pickup\n\nShops keep a parcel for ten days; bring the code from the mail.",
    "shipping/pickup-copy.txt": "Pickup\n\nShops keep a parcel for ten days, bring the code from the mail",
    "draft.md": "",
}
LINEUP = """
task = "task/task.toml"
measures = ["p@1", "mrr", "ndcg@10"]
rounds = 1
[categories.money]
about = "paying and being paid"
templates = ["my cash is gone: {topic}", "{kind} worries"]
[categories.delivery]
about = "getting things to people"
templates = ["how do things reach me: {topic}"]
[[contender]]
ranker = "bm25"
[[contender]]
provider = "tfidf"
store = "faiss"
[[contender]]
provider = "fake"
store = "faiss"
"""


def judge(model: str, prompt: str) -> str:
    """Money answers money, and delivery delivery; the stricter of two models gives one grade less."""
    query = prompt.partition("Query: ")[2].partition("\n")[0]
    title = prompt.partition("Document: ")[2].partition("\n")[0]
    fits = ("billing" in query) == (title in ("Refunds", "Invoices"))
    return json.dumps({"reason": f"{title} read", "grade": (2 if model == "strict" else 3) if fits else 0})


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        server.answer = judge
        server.pulled += ["strict:latest"]
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, text in DOCUMENTS.items():
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "bakeoff.toml").write_text(LINEUP)
    return tmp_path


def say(home: Path, *arguments: str, code: int = 0, **environment: str) -> str:
    """What a command prints: its output, or its errors where it is to fail."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PROXIES:
            patch.delenv(name, raising=False)
        done = bakeoff(*arguments, cwd=home, **{"BAKEOFF_HOME": str(home / "cache"), **environment})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.slow
def test_from_a_folder_of_documents_to_a_matrix(home: Path, wire: WireServer) -> None:
    said = say(home, "corpus", "import", "docs")
    assert "4 documents imported: articles.json" in said
    says(said, "1", "draft.md")
    assert "shipping/pickup.txt = shipping/pickup-copy.txt" in said

    said = say(home, "queries", "generate", "articles.json", "--n", "1", "--lineup", "bakeoff.toml")
    assert "money" in said
    assert "delivery" in said
    assert "next: bakeoff grade task" in said
    says(say(home, "validate", "task"), "bakeoff grade task --lineup bakeoff.toml")

    models = ["--judge", "llm", "--model", "ollama:llama3.1", "--model", "ollama:strict"]
    said = say(home, "grade", "task", *models, "--dry-run", OLLAMA_HOST=wire.url)
    says(said, "8 answers")
    assert wire.requests == []
    said = say(home, "grade", "task", *models, OLLAMA_HOST=wire.url)
    assert "ollama-llama3.1: 8 pairs graded" in said
    assert "8 grades in" in said
    says(said, "4 pairs")
    assert len(wire.chats()) == 16

    said = say(home, "agreement", "task")
    says(said, "2 annotators", "8 pairs", "4 graded")
    decisions = [
        {"query_id": query, "page_id": page, "grade": 3, "why": "it answers"}
        for query, page in json.loads(_disagreements(home))
    ]
    (home / "decisions.json").write_text(json.dumps(decisions))
    said = say(home, "adjudicate", "task", "--from", "decisions.json")
    assert "4 decisions taken" in said
    assert "warning" not in said

    said = say(home, "validate")
    assert "bakeoff.toml: valid" in said
    says(said, "ndcg@10")
    said = say(home, "run")
    assert "4 documents, 2 queries" in said
    (result,) = (home / "results").iterdir()
    rows = {row["label"]: row for row in json.loads((result / "metrics_summary.json").read_text())["rows"]}
    assert rows["oracle"]["measures"]["ndcg@10"]["mean"] == 1
    assert {"bm25", "tfidf+faiss", "fake+faiss"} <= rows.keys()
    assert "bm25" in (result / "matrix.md").read_text()
    said = say(home, "grade", "next", "task", "--result", str(result))
    says(said)


def _disagreements(home: Path) -> str:
    given = [json.loads(path.read_text())["grades"] for path in sorted((home / "task" / "annotations").glob("ollama*"))]
    first, second = ({(q, d): g for q, row in grades.items() for d, g in row.items()} for grades in given)
    return json.dumps([pair for pair in first if first[pair] != second[pair]])


def test_people_the_pool_next_and_the_audit(home: Path, wire: WireServer) -> None:
    say(home, "corpus", "import", "docs")
    say(home, "queries", "generate", "articles.json", "--n", "1", "--lineup", "bakeoff.toml")
    said = say(home, "grade", "task", "--all-below", "1", "--depth", "1", "--dry-run")
    says(said, "bm25", "tfidf+faiss", "fake+faiss")
    assert not (home / "task" / "annotations").exists()
    said = say(home, "grade", "next", "task", "--n", "3")
    assert len(re.findall(r"^(?:money|delivery)_001 .+ a [123] ", said, re.MULTILINE)) == 3
    say(home, "grade", "task", "--judge", "llm", OLLAMA_HOST=wire.url)
    page = home / "task" / "annotations" / "ollama-llama3.1.json"
    copy: Any = json.loads(page.read_text())
    copy["metadata"] = {"kind": "person"}
    (page.parent / "ada.json").write_text(json.dumps(copy))
    said = say(home, "audit", "task", "ollama-llama3.1", "--samples", "50")
    assert "8 pairs, 100.0% equal, κ 1.0000" in said
    says(said, "0 of 50 samples")
    says(say(home, "audit", "task", "ollama-llama3", code=2), "'ollama-llama3.1'")


def test_a_model_that_answers_prose_ends_with_1_and_keeps_the_rest(home: Path, wire: WireServer) -> None:
    say(home, "corpus", "import", "docs")
    say(home, "queries", "generate", "articles.json", "--n", "1", "--lineup", "bakeoff.toml")
    wire.answer = lambda model, prompt: "Sure." if "Abroad" in prompt else judge(model, prompt)
    command = ["grade", "task", "--judge", "llm", "--model", "openai:m", "--set", f"base_url={wire.base('openai')}"]
    said = say(home, *command, code=1)
    says(said, "2 pairs")
    assert said.count("shipping/abroad.html: openai-m: ") == 2
    wire.answer, asked = judge, len(wire.chats())
    assert "openai-m: 8 pairs graded" in say(home, *command)
    assert len(wire.chats()) == asked + 2


def test_a_budget_that_is_reached_keeps_what_was_paid_for(home: Path, wire: WireServer) -> None:
    say(home, "corpus", "import", "docs")
    say(home, "queries", "generate", "articles.json", "--n", "1", "--lineup", "bakeoff.toml")
    model = ["--judge", "llm", "--model", "openai:m", "--set", f"base_url={wire.base('openai')}"]
    prices = ["--set", "price_in=1000000", "--set", "price_out=0"]  # a dollar a token: about 300 a prompt
    says(say(home, "grade", "task", *model, "--max-cost", "1", code=2), "openai-m", "--max-cost")
    says(say(home, "grade", "task", *model, *prices, "--max-cost", "700", code=1), "$700.00")
    kept = len(wire.chats())
    assert 1 <= kept < 8
    say(home, "grade", "task", *model, *prices)
    assert len(wire.chats()) == 8


def test_every_file_that_is_skipped_is_named_on_the_screen_or_in_the_file_that_it_names(home: Path) -> None:
    pictures = [f"picture-{number:02}.png" for number in range(12)]
    for name in pictures:
        (home / "docs" / name).write_bytes(b"\x89PNG")
    said = say(home, "corpus", "import", "docs", "--out", "all.json")
    assert [name in said for name in pictures] == [True] * 10 + [False] * 2
    says(said, "all.json")
    left_out = json.loads((home / "all.json").read_text())["metadata"]["left_out"]
    assert left_out["empty"] == ["draft.md"]
    assert left_out["duplicates"] == ["shipping/pickup.txt = shipping/pickup-copy.txt"]
    assert [skipped.partition(": ")[0] for skipped in left_out["skipped"]] == pictures
    queries = "text\n" + "".join(f"question {number}\n" for number in range(12)) * 2
    (home / "asked.csv").write_text(queries)
    said = say(home, "queries", "import", "asked.csv", "--articles", "all.json", "--out", "asked")
    says(said, "asked/queries.json")
    metadata = json.loads((home / "asked" / "queries.json").read_text())["metadata"]
    assert metadata["left_out"]["duplicates"][-1] == "line 25 = line 13: question 11"


def test_pages_and_pdfs_without_their_library_are_skipped_with_what_to_install(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("lxml", "lxml.etree", "pypdf"):
        monkeypatch.setitem(sys.modules, library, None)  # as where it is not installed
    (home / "docs" / "terms.pdf").write_bytes(b"%PDF-1.4")
    said = say(home, "corpus", "import", "docs")
    assert "3 documents imported: articles.json" in said
    reason = "install bakeoff[documents]"
    assert f"skipped: 2\n  shipping/abroad.html: {reason}\n  terms.pdf: {reason}\n" in said


def test_titles_of_a_wiki(tmp_path: Path) -> None:
    (tmp_path / "titles.txt").write_text("Loa, Utah\nNowhere\n")
    with Wiki({"Loa, Utah": Page(11, "Loa is a town.")}) as wiki:
        said = say(tmp_path, "corpus", "import", "titles.txt", "--api", wiki.api, "--out", "pool.json")
    assert "1 document imported: pool.json" in said
    says(said, "Nowhere")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["corpus", "import", "nowhere"], "nowhere"),
        (["corpus", "import", "docs", "--chunks", "slices"], "--chunks"),
        (["corpus", "import", "docs", "--column", "text"], "--column"),
        (["queries", "generate", "nowhere.json"], "nowhere.json"),
        (["queries", "generate", "good.json", "--maker", "templats"], "'templates'"),
        (["queries", "generate", "good.json", "--as-of", "yesterday"], "'yesterday'"),
        (["queries", "generate", "good.json", "--add"], "task/queries.json"),
        (["queries", "generate", "good.json", "--maker", "llm", "--model", "olama"], "'ollama'"),
        (["queries", "generate", "good.json", "--maker", "llm", "--set", "temprature=1"], "'temprature'"),
        (["grade", "wikpedia"], "time-bound"),
        (["grade", "wikpedia"], "'wikipedia'"),
        (["grade", "wikipedia", "--judge", "nobody"], "'nobody'"),
        (["grade", "wikipedia", "--judge", "llm", "--repeats", "3"], "0"),
        (["agreement", "wikipedia", "--who", "annotator_c"], "'annotator_b'"),
        (["audit", "wikipedia", "nobody"], "'nobody'"),
        (["validate", "wikpedia"], "'wikpedia'"),
        (
            ["annotate", "wikipedia", "--who", "annotator_a", "--no-open"],
            "annotator_a.json",
        ),
    ],
)
def test_bad_input_ends_with_2_and_leaves_no_file(home: Path, arguments: list[str], said: str) -> None:
    (home / "good.json").write_text('{"articles": [{"page_id": 1, "title": "T", "summary": "S", "categories": ["c"]}]}')
    before = set(home.rglob("*"))
    says(say(home, *arguments, code=2), said)
    assert {path for path in home.rglob("*") if "cache" not in path.parts} == before


def test_queries_that_are_there_are_never_written_over(home: Path) -> None:
    say(home, "corpus", "import", "docs")
    say(home, "queries", "generate", "articles.json", "--n", "1", "--lineup", "bakeoff.toml")
    before = (home / "task" / "queries.json").read_text()
    again = ["queries", "generate", "articles.json", "--n", "1", "--lineup", "bakeoff.toml"]
    says(say(home, *again, code=2), "--add", "--out")
    say(home, *again, "--add", "--seed", "7", "--max-similarity", "0.95", "--max-overlap", "1")
    after = json.loads((home / "task" / "queries.json").read_text())["queries"]
    assert after[:2] == json.loads(before)["queries"]
    assert len(after) > 2


def test_a_line_up_and_a_task_are_told_apart(home: Path) -> None:
    (home / "bakeoff.toml").write_text(LINEUP.replace("task/task.toml", "wikipedia"))
    for target in ("wikipedia", str(ROOT / "queries" / "wikipedia" / "task.toml"), "bakeoff.toml"):
        told = say(home, "validate", target)
        assert ("  bm25: ready" in told) is (target == "bakeoff.toml")
        assert "task wikipedia: 25 documents, 20 queries, 500 judgments" in told
        assert told.count("100.0%") >= 2
        assert "0.2 ndcg@10" in " ".join(told.split())
    assert "oracle" not in say(home, "validate", "wikipedia", "--no-health")
