"""`bakeoff init`: the line-up that it writes validates and runs; what it can't use, it names, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.tasks.load import load_task

from tests.cli.test_testsets import say
from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import says

FLAGS = ["init", "--documents", "data/documents.csv", "--queries", "queries.jsonl", "--judgments", "judgments.csv"]
GRADES = ["--grade", "Exact=3", "--grade", "Partial=1", "--grade", "Irrelevant=0"]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "data" / "documents.csv").write_text(
        "sku,name,description,price\n17,Desk lamp,A small lamp for reading,20\n19,Oak desk,A desk of solid oak,300\n"
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"qid": "q1", "query": "light for reading"}\n{"qid": "q2", "query": "desk"}\n'
    )
    (tmp_path / "judgments.csv").write_text(
        "qid,sku,label\nq1,17,Exact\nq1,19,Irrelevant\nq2,19,Exact\nq2,17,Partial\n"
    )
    return tmp_path


def test_what_it_writes_validates_and_runs(shop: Path) -> None:
    code, out, err = bakeoff(shop, *FLAGS, *GRADES)
    assert code == 0, err
    says(out, "bakeoff.toml", "2 documents", "2 queries", "4 judgments")
    assert " bakeoff validate\n" in out
    lineup = Lineup.read(shop / "bakeoff.toml")
    task = load_task(lineup.task, shop)
    assert task.rel == 2  # as `queries import` writes it for the same scale, 0 to 3
    assert task.judgments == {"q1": {"17": 3, "19": 0}, "q2": {"19": 3, "17": 1}}
    assert {document.id: document.title for document in task.documents} == {"17": "Desk lamp", "19": "Oak desk"}
    assert [contender.label for contender in lineup.contenders] == ["bm25", "minilm+faiss"]
    assert run(lineup.narrow(["bm25"])).scores["bm25"]["mrr"] == [1, 1]
    code, out, err = bakeoff(shop, "validate")
    assert code == 0, err
    assert "bakeoff.toml: valid" in out


def test_weights_that_are_not_here_are_the_first_step(shop: Path) -> None:
    code, out, err = bakeoff(shop, *FLAGS, *GRADES)  # the folder has a home of its own, without any
    assert code == 0, err
    assert out.endswith("next: bakeoff models pull minilm\n      bakeoff validate\n      bakeoff run\n")


PACKAGES = "package,summary,description,section\nzstd,Compression tool,It makes files smaller,utils\n"


def unwrapped(said: str) -> str:
    """Sentences whole, whatever the width of the terminal that the tests run in."""
    return " ".join(said.split())


def test_columns_are_taken_as_by_an_import_and_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "pkgs.csv").write_text(PACKAGES)
    (tmp_path / "asked.csv").write_text("qid,question\nq1,smaller files\n")
    (tmp_path / "grades.csv").write_text("question_id,package,score\nq1,zstd,3\n")
    command = ["init", "--documents", "pkgs.csv", "--queries", "asked.csv"]
    said = say(tmp_path, *command, code=2)
    says(said, "--column documents.id", "`bakeoff corpus import`")
    command += ["--column", "documents.id=package"]
    said = unwrapped(say(tmp_path, *command))
    assert "documents: id = package, title = summary, text = description; metadata: section" in said
    says(said, "id = qid", "text = question")
    command += ["--force", "--judgments", "grades.csv", "--column", "judgments.query=question_id"]
    assert "--column judgments.document=package\n" in say(tmp_path, *command, code=2)
    said = unwrapped(say(tmp_path, *command, "--column", "judgments.document=package"))
    says(said, "query = question_id", "document = package", "grade = score")
    [document] = load_task(Lineup.read(tmp_path / "bakeoff.toml").task, tmp_path).documents
    assert (document.id, document.title, document.text) == ("zstd", "Compression tool", "It makes files smaller")
    said = unwrapped(say(tmp_path, "corpus", "import", "pkgs.csv", "--column", "id=package"))
    assert "taken: id = package, title = summary, text = description; metadata: section" in said
    twice = ["--column", "text=summary", "--column", "text=description"]
    says(say(tmp_path, "corpus", "import", "pkgs.csv", "--force", *twice, code=2), "--column")


def test_a_lineup_that_is_there_stays_unless_forced(shop: Path) -> None:
    (shop / "bakeoff.toml").write_text("mine")
    code, _, err = bakeoff(shop, *FLAGS, *GRADES)
    assert code == 2
    assert "--force" in err
    assert (shop / "bakeoff.toml").read_text() == "mine"
    assert bakeoff(shop, *FLAGS, *GRADES, "--force")[0] == 0
    assert "[[contender]]" in (shop / "bakeoff.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (FLAGS, "'Exact'"),
        ([*FLAGS, *GRADES, "--column", "documents.text=body"], "'body'"),
        ([*FLAGS, *GRADES, "--column", "document.text=body"], "'document.text'"),
        ([*FLAGS, *GRADES, "--column", "documents.id=name", "--column", "judgments.document=qid"], "judgments.csv"),
        (["init", "--column", "documents.id=sku", "--column", "documents.id=name"], "documents.id"),
        (["init"], "--documents FILE --queries FILE [--judgments FILE]"),
        (FLAGS[:3], "--documents FILE --queries FILE [--judgments FILE]"),
        (["init", "--documents", "data", *FLAGS[3:]], "bakeoff corpus import data"),
        (["init", "--documents", "none.csv", *FLAGS[3:]], "none.csv"),
        (["init", "empty"], "bakeoff corpus import empty"),
        (["init", "nowhere"], "nowhere"),
        (["init", "data", *FLAGS[1:]], "bakeoff init TASK"),
        (["init", "mteb:SciFakt"], "'SciFakt'"),
        (["init", "wikipedia", "--grade", "Exact=3"], "--grade"),
    ],
)
def test_what_it_can_not_use_is_named_and_nothing_is_written(shop: Path, arguments: list[str], said: str) -> None:
    before = sorted(shop.rglob("*"))
    code, _, err = bakeoff(shop, *arguments)
    assert code == 2, err
    says(err, said)
    assert sorted(shop.rglob("*")) == before


def _beir(folder: Path, grades: list[int]) -> None:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "1", "title": "", "text": "copper"}\n{"_id": "2", "text": "lakes"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "metal"}\n')
    rows = "".join(f"q\t{number}\t{grade}\n" for number, grade in enumerate(grades, start=1))
    (folder / "qrels" / "dev.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")


@pytest.mark.parametrize(
    ("grades", "rel"), [([1, 0], 1), ([2, 1], 1), ([3, 1], 2)], ids=["yes or no", "three grades", "0 to 3"]
)
def test_what_counts_as_relevant_goes_by_the_scale(tmp_path: Path, grades: list[int], rel: int) -> None:
    _beir(tmp_path / "data", grades)
    assert "1 query, 2 judgments" in say(tmp_path, "init", "data")
    assert "rounds = 20 " in (tmp_path / "bakeoff.toml").read_text()  # one query needs 60 for a p95: not that many
    lineup = Lineup.read(tmp_path / "bakeoff.toml")
    task = load_task(lineup.task, tmp_path)
    assert (task.name, task.rel) == ("data", rel)


def test_a_task_that_was_imported_needs_no_judgments_and_the_line_up_says_how_to_grade(tmp_path: Path) -> None:
    (tmp_path / "goods.csv").write_text("sku,name,description\n17,Lamp,for reading\n19,Desk,of oak\n")
    (tmp_path / "asked.csv").write_text("query\nlight\n")
    say(tmp_path, "corpus", "import", "goods.csv")
    said = say(tmp_path, "queries", "import", "asked.csv")
    assert said.endswith("next: bakeoff init task\n      bakeoff grade task --lineup bakeoff.toml\n")
    says(say(tmp_path, "init", ".", code=2))
    said = say(tmp_path, "init", "task")
    says(
        said,
        "bakeoff.toml",
        "2 documents",
        "1 query",
        "bakeoff models pull minilm",
        "bakeoff grade task --lineup bakeoff.toml",
        "bakeoff run",
    )
    command = "bakeoff grade task --lineup bakeoff.toml\n"
    says(say(tmp_path, "validate"), f"{command}")
    says(say(tmp_path, "run", code=2), f"{command}")
    text = (tmp_path / "bakeoff.toml").read_text()
    assert '#     bakeoff grade task --lineup bakeoff.toml\n\ntask = "task"\n' in text
    lineup = Lineup.read(tmp_path / "bakeoff.toml")
    task = load_task(lineup.task, tmp_path)
    assert (lineup.name, task.name, task.rel) == ("goods", "goods", 2)


def test_grades_that_two_line_ups_share_are_said_to_be(shop: Path) -> None:
    command = [*FLAGS[:5], "--out"]
    assert "ground_truth.json" not in say(shop, *command, "one.toml")
    says(say(shop, "run", "one.toml", code=2), "bakeoff grade one", "--lineup one.toml")
    (shop / "ground_truth.json").write_text('{"grades": {"q1": {"17": 3}}}')
    said = unwrapped(say(shop, *command, "two.toml"))
    says(said, "ground_truth.json")
    said = unwrapped(say(shop, "validate", "two.toml"))
    assert "ground_truth.json" in said


def test_files_of_every_kind_without_judgments(shop: Path) -> None:
    for name in ("documents.csv", "queries.jsonl"):
        (shop / "all").mkdir(exist_ok=True)
        source = shop / "data" / name if name.startswith("d") else shop / name
        (shop / "all" / name).write_bytes(source.read_bytes())
    said = say(shop, "init", "all", "--out", "all.toml")
    says(said, "all.toml")
    assert said.endswith("\n      bakeoff grade all.toml --lineup all.toml\n      bakeoff run all.toml\n")
    assert load_task(Lineup.read(shop / "all.toml").task, shop).rel == 2
    (shop / "articles.json").write_text('{"articles": [{"page_id": 1, "title": "", "summary": "oak"}]}')
    (shop / "queries.json").write_text('{"queries": [{"query_id": "q", "query_text": "wood"}]}')
    own = ["init", "--documents", "articles.json", "--out", "own.toml", "--queries"]
    assert "bakeoff queries import queries.jsonl --articles" in say(shop, *own, "queries.jsonl", code=2)
    say(shop, *own, "queries.json")
    (shop / "truth.json").write_text('{"grades": {"q": {"1": 3}}}')
    assert "1 judgment\n" in say(shop, *own, "queries.json", "--judgments", "truth.json", "--force")
    assert load_task(Lineup.read(shop / "own.toml").task, shop).judgments == {"q": {"1": 3}}
    say(shop, "init", "wikipedia", "--out", "built-in.toml")
    assert Lineup.read(shop / "built-in.toml").task == "wikipedia"
    says(say(shop, "init", "own.toml", "--out", "other.toml", code=2), "line-up")
