"""Grades that people have in a table become one annotator's; what does not fit is named and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.testsets.task_folder import TaskFolder

from tests.commands.test_grading_formats import digests, made, native
from tests.commands.test_testsets import say


def test_grades_from_a_table_are_one_annotators(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    rows = [("q1", "d 1", "yes"), ("q1", "d4", "no"), ("q2", "d/2", "yes")]
    (tmp_path / "mine.csv").write_text("qid,doc_id,verdict\n" + "".join(",".join(row) + "\n" for row in rows))
    command = ["grade", "import", "task", "mine.csv", "--who", "ada"]
    before = digests(folder)
    assert "name it: --column grade=" in say(tmp_path, *command, code=2)
    assert "the grade 'yes' is no number" in say(tmp_path, *command, "--column", "grade=verdict", code=2)
    command += ["--column", "grade=verdict", "--grade", "no=0", "--grade"]
    assert "mine.csv: line 2: grade 9 is out of range" in say(tmp_path, *command, "yes=9", code=2)
    assert digests(folder) == before
    said = say(tmp_path, *command, "yes=3")
    assert "3 grades imported: task/annotations/ada.json\n3 grades in task/ground_truth.json\n" in said
    assert "one annotator's grades are used: ada" in said
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 0}, "q2": {"d/2": 3}}
    assert "ada.json: exists already" in say(tmp_path, *command, "yes=3", code=2)
    (tmp_path / "more.qrels").write_text("q1 0 d4 1\nq2 0 d9 1\n")
    said = say(tmp_path, "grade", "import", "task", "more.qrels", "--who", "bob", code=2)
    assert "more.qrels: line 2: the task has no document 'd9'\n  remedy: add it to the task, or leave" in said
    assert "built-in task, which is never written to" in say(
        tmp_path, "grade", "import", "wikipedia", "mine.csv", code=2
    )


def test_a_second_batch_is_added_and_a_replaced_one_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    head = "query,document,grade\n"
    (tmp_path / "one.csv").write_text(f"{head}q1,d 1,3\nq1,d4,0\n")
    (tmp_path / "two.csv").write_text(f"{head}q1,d 1,3\nq2,d/2,2\n")
    (tmp_path / "other.csv").write_text(f"{head}q2,d/2,2\nq1,d4,1\n")
    command = ["grade", "import", "task", "--who", "ada"]
    say(tmp_path, *command, "one.csv")
    assert "remedy: --add adds to it" in say(tmp_path, *command, "two.csv", code=2)
    said = say(tmp_path, *command, "two.csv", "--add")
    assert "1 grade added: task/annotations/ada.json\n3 grades in task/ground_truth.json\n" in said
    before = digests(folder)
    said = say(tmp_path, *command, "other.csv", "--add", code=2)
    assert "other.csv: line 3: ada gave query 'q1', document 'd4' a 0 before, here it is a 1" in said
    assert digests(folder) == before
    say(tmp_path, *command, "other.csv", "--add", "--force")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 1}, "q2": {"d/2": 2}}
    say(tmp_path, "grade", "import", "task", "--who", "bob", "one.csv")
    assert "2 grades in task/ground_truth.json" in say(tmp_path, *command, "one.csv", "--force")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 0}}


@pytest.mark.parametrize(
    ("grades", "given", "said"),
    [
        (["3", "high"], [], """line 3: the grade 'high' is no number\n  remedy: say what each is worth: \
--grade "high"=… --grade "3"=3\n"""),
        (["high", "low"], ["high=3"], """line 3: the grade 'low' is no number\n  remedy: say what each is worth: \
--grade "low"=… --grade "high"=3\n"""),
        (["1", "0"], ["1=3"], """line 3: no --grade for '0'\n  remedy: say what each is worth: \
--grade "0"=… --grade "1"=3\n"""),
        (["high", ""], ["high=3"], "line 3: grade is empty"),
    ],
)  # fmt: skip
def test_labels_beside_numbers(tmp_path: Path, grades: list[str], given: list[str], said: str) -> None:
    made(tmp_path, native)
    rows = zip(["q1,d 1", "q1,d4"], grades, strict=True)
    (tmp_path / "mixed.csv").write_text("query,document,grade\n" + "".join(f"{pair},{grade}\n" for pair, grade in rows))
    command = ["grade", "import", "task", "mixed.csv", *(f"--grade={label}" for label in given)]
    assert said in say(tmp_path, *command, code=2)


def test_a_number_beside_labels_is_itself_and_a_persons_grades_are_no_models(tmp_path: Path) -> None:
    folder = made(tmp_path, native)
    (tmp_path / "mixed.csv").write_text("query,document,grade\nq1,d 1,high\nq1,d4,2\n")
    say(tmp_path, "grade", "import", "task", "mixed.csv", "--grade", "high=3")
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 2}}
    corrected = say(tmp_path, "grade", "corrected", "task", "-m", "ndcg@10", code=2)
    assert "remedy: bakeoff grade task --judge llm\n" in corrected


def test_the_help_of_grade_names_all_its_commands(tmp_path: Path) -> None:
    said = " ".join(say(tmp_path, "grade", "--help").split())
    for command in ("import TASK FILE", "next TASK", "corrected TASK"):
        assert f"bakeoff grade {command}" in said
    assert "--column" in say(tmp_path, "grade", "import", "--help")
