"""Grades that people have in a table become one annotator's; what does not fit is named and nothing is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from bakeoff.extensions.testsets.task_folder import TaskFolder

from tests.cli.test_grading_formats import digests, made, native
from tests.cli.test_testsets import say
from tests.errors import says


def test_grades_from_a_table_are_one_annotators(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    rows = [("q1", "d 1", "yes"), ("q1", "d4", "no"), ("q2", "d/2", "yes")]
    (tmp_path / "mine.csv").write_text("qid,doc_id,verdict\n" + "".join(",".join(row) + "\n" for row in rows))
    command = ["grade", "import", "task", "mine.csv", "--who", "ada"]
    before = digests(folder)
    says(say(tmp_path, *command, code=2), "--column grade")
    says(say(tmp_path, *command, "--column", "grade=verdict", code=2), "'yes'")
    command += ["--column", "grade=verdict", "--grade", "no=0", "--grade"]
    says(say(tmp_path, *command, "yes=9", code=2), "mine.csv")
    assert digests(folder) == before
    said = say(tmp_path, *command, "yes=3")
    assert "3 grades imported: task/annotations/ada.json\n3 grades in task/ground_truth.json\n" in said
    says(said, "ada")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 0}, "q2": {"d/2": 3}}
    says(say(tmp_path, *command, "yes=3", code=2), "ada.json")
    (tmp_path / "more.qrels").write_text("q1 0 d4 1\nq2 0 d9 1\n")
    said = say(tmp_path, "grade", "import", "task", "more.qrels", "--who", "bob", code=2)
    says(said, "more.qrels", "'d9'")
    says(say(tmp_path, "grade", "import", "wikipedia", "mine.csv", code=2), "built-in")


def test_a_second_batch_is_added_and_a_replaced_one_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    head = "query,document,grade\n"
    (tmp_path / "one.csv").write_text(f"{head}q1,d 1,3\nq1,d4,0\n")
    (tmp_path / "two.csv").write_text(f"{head}q1,d 1,3\nq2,d/2,2\n")
    (tmp_path / "other.csv").write_text(f"{head}q2,d/2,2\nq1,d4,1\n")
    command = ["grade", "import", "task", "--who", "ada"]
    say(tmp_path, *command, "one.csv")
    says(say(tmp_path, *command, "two.csv", code=2), "--add")
    said = say(tmp_path, *command, "two.csv", "--add")
    assert "1 grade added: task/annotations/ada.json\n3 grades in task/ground_truth.json\n" in said
    before = digests(folder)
    said = say(tmp_path, *command, "other.csv", "--add", code=2)
    says(said, "other.csv", "'q1'", "'d4'")
    assert digests(folder) == before
    say(tmp_path, *command, "other.csv", "--add", "--force")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 1}, "q2": {"d/2": 2}}
    say(tmp_path, "grade", "import", "task", "--who", "bob", "one.csv")
    assert "2 grades in task/ground_truth.json" in say(tmp_path, *command, "one.csv", "--force")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 0}}


@pytest.mark.parametrize(
    ("grades", "given", "said"),
    [
        (["3", "high"], [], """--grade "high"=… --grade "3"=3"""),
        (["high", "low"], ["high=3"], """--grade "low"=… --grade "high"=3"""),
        (["1", "0"], ["1=3"], """--grade "0"=… --grade "1"=3"""),
        (["", ""], [], "mixed.csv"),
    ],
)  # fmt: skip
def test_labels_beside_numbers(tmp_path: Path, grades: list[str], given: list[str], said: str) -> None:
    made(tmp_path, native)
    rows = zip(["q1,d 1", "q1,d4"], grades, strict=True)
    (tmp_path / "mixed.csv").write_text("query,document,grade\n" + "".join(f"{pair},{grade}\n" for pair, grade in rows))
    command = ["grade", "import", "task", "mixed.csv", *(f"--grade={label}" for label in given)]
    says(say(tmp_path, *command, code=2), said)


def test_one_slip_among_numbers_is_a_cell_to_correct_and_hides_no_other_row(tmp_path: Path) -> None:
    made(tmp_path, native)
    rows = ["q1,d 1,3", "q1,d4,x", "q1,d/2,9", "q2,nowhere,1", "q2,d/2,0"]
    (tmp_path / "typed.csv").write_text("\n".join(["query,document,grade", *rows, ""]))
    said = say(tmp_path, "grade", "import", "task", "typed.csv", code=2)
    says(said, "typed.csv", "'x'")
    assert "  line 4: " in said
    assert "  line 5: " in said
    says(said)
    assert "--grade" not in said


def test_a_number_beside_labels_is_itself_and_a_persons_grades_are_no_models(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    (tmp_path / "mixed.csv").write_text("query,document,grade\nq1,d 1,high\nq1,d4,2\n")
    say(tmp_path, "grade", "import", "task", "mixed.csv", "--grade", "high=3")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 2}}
    corrected = say(tmp_path, "grade", "corrected", "task", "-m", "ndcg@10", code=2)
    assert "remedy: bakeoff grade task --judge llm\n" in corrected


def test_the_help_of_grade_names_all_its_commands(tmp_path: Path) -> None:
    said = " ".join(say(tmp_path, "grade", "--help").split())
    says(said, "bakeoff grade pairs", "[OPTIONS]")
    for command in ("export", "import", "next", "corrected"):
        says(said, f"`bakeoff grade {command} TASK")
    assert "--column" in say(tmp_path, "grade", "import", "--help")


def test_pairs_go_out_as_a_table_and_come_back_with_grades(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    said = say(tmp_path, "grade", "export", "task")
    says(said, "8 pairs", "pairs.csv", "3 direct", "2 related", "1 tangential")
    assert "next: bakeoff grade import task pairs.csv --who NAME\n" in said
    says(say(tmp_path, "grade", "export", "task", code=2), "pairs.csv")
    says(say(tmp_path, "grade", "export", "task", "--out", "pairs.xlsx", code=2))
    with (tmp_path / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert rows[0] == {
        "grade": "", "query_text": "digging for copper", "title": "Copper", "text": "a copper mine in the hills",
        "query": "q1", "document": "d 1",
    }  # fmt: skip
    says(say(tmp_path, "grade", "import", "task", "pairs.csv", code=2), "pairs.csv")
    for row, grade in zip(rows, ["3", "", "0", "1.0"], strict=False):  # a spreadsheet may write 1 so
        row["grade"] = grade
    with (tmp_path / "graded.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")  # as spreadsheets of some countries save
        writer.writeheader()
        writer.writerows(rows)
    said = say(tmp_path, "grade", "import", "task", "graded.csv", "--who", "ada")
    says(said, "3 grades", "task/annotations/ada.json", "5 rows")
    assert said.endswith("next: bakeoff grade export task --ungraded --out rest.csv\n      bakeoff validate task\n")
    said = " ".join(say(tmp_path, "validate", "task").split())
    assert "bakeoff grade task --lineup bakeoff.toml --ungraded," in said
    assert "bakeoff grade export task --lineup bakeoff.toml --ungraded --out rest.csv " in said
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "003": 0, "d4": 1}}
    says(say(tmp_path, "grade", "export", "task", "--ungraded", "--out", "rest.csv"), "5", "5 pairs", "rest.csv")


def test_an_exported_pool_is_the_one_that_is_graded(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    (tmp_path / "words.toml").write_text('task = "task"\n[[contender]]\nranker = "bm25"\n')
    command = ["grade", "export", "task", "--lineup", "words.toml", "--all-below", "1", "--depth", "1"]
    says(say(tmp_path, *command), "2 pairs", "bm25")
    pool = json.loads((folder / "annotations" / "pool.json").read_text())["pairs"]
    with (tmp_path / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [(row["query"], row["document"]) for row in csv.DictReader(file)]
    assert rows == [(query, document) for query, documents in pool.items() for document in documents]
    assert len(rows) == 2


def test_no_spreadsheet_runs_a_text_and_ids_come_back_as_they_are(tmp_path: Path) -> None:
    """`=x` beside `'=x`: the sign before a formula must not make one id of two."""
    folder = tmp_path / "task"
    folder.mkdir()
    ids = ["=x", "'=x", "-1", "@home", "plain", "+\tx"]
    articles = [{"page_id": key, "title": "=1+1", "summary": f"+cmd {key}\n\nand more " + "x" * 600} for key in ids]
    (folder / "articles.json").write_text(json.dumps({"articles": articles}))
    (folder / "queries.json").write_text(json.dumps({"queries": [{"query_id": "@q", "query_text": "-what"}]}))
    (folder / "task.toml").write_text('format = "native"\narticles = "articles.json"\nqueries = "queries.json"\n')
    say(tmp_path, "grade", "export", "task")
    with (tmp_path / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t"))]
    assert [row["document"] for row in rows] == ["'=x", "''=x", "'-1", "'@home", "plain", "'+\tx"]
    assert rows[0]["title"] == "'=1+1"
    assert rows[0]["text"].startswith("'+cmd =x and more xxx")
    assert rows[0]["text"].endswith("x…")
    assert len(rows[0]["text"]) == 501
    grades = [3, 0, 1, 2, 3, 0]
    for row, grade in zip(rows, grades, strict=True):
        row["grade"] = str(grade)
    with (tmp_path / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    say(tmp_path, "grade", "import", "task", "pairs.csv", "--who", "ada")
    assert TaskFolder.open(str(folder)).task.judgments == {"@q": dict(zip(ids, grades, strict=True))}
    (tmp_path / "own.csv").write_text("query,document,grade\n@q,'=x,2\n'@q,'-1,3\n")
    say(tmp_path, "grade", "import", "task", "own.csv", "--who", "ada", "--force")
    assert TaskFolder.open(str(folder)).task.judgments == {"@q": {"'=x": 2, "-1": 3}}


def test_all_wrong_rows_are_named_at_once(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    before = digests(folder)
    (tmp_path / "two.csv").write_text("query,document,grade\nq1,d9,1\nq1,d4,1\nq7,d4,0\nq2,d4,8\n")
    said = say(tmp_path, "grade", "import", "task", "two.csv", code=2)
    says(said, "two.csv", "'d9'", "'q7'", "5", "8")
    (tmp_path / "many.csv").write_text("query,document,grade\n" + "".join(f"q1,e{at},1\n" for at in range(13)))
    said = say(tmp_path, "grade", "import", "task", "many.csv", code=2)
    says(said, "11", "'e9'", "3")
    assert digests(folder) == before
