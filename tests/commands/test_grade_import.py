"""Grades that people have in a table become one annotator's; what does not fit is named and nothing is written."""

from __future__ import annotations

from pathlib import Path

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
    assert "grade 9 is out of range" in say(tmp_path, *command, "yes=9", code=2)
    assert digests(folder) == before
    said = say(tmp_path, *command, "yes=3")
    assert "3 grades imported: task/annotations/ada.json\n3 grades in task/ground_truth.json\n" in said
    assert "one annotator's grades are used: ada" in said
    assert TaskFolder.open(str(folder)).task.judgments == {"q1": {"d 1": 3, "d4": 0}, "q2": {"d/2": 3}}
    assert "ada.json: exists already" in say(tmp_path, *command, "yes=3", code=2)
    (tmp_path / "more.qrels").write_text("q1 0 d4 1\nq2 0 d9 1\n")
    said = say(tmp_path, "grade", "import", "task", "more.qrels", "--who", "bob", code=2)
    assert "more.qrels: line 2: the task has no document 'd9'" in said
    assert "built-in task, which is never written to" in say(
        tmp_path, "grade", "import", "wikipedia", "mine.csv", code=2
    )


def test_the_help_of_grade_names_all_its_commands(tmp_path: Path) -> None:
    said = " ".join(say(tmp_path, "grade", "--help").split())
    for command in ("import TASK FILE", "next TASK", "corrected TASK"):
        assert f"bakeoff grade {command}" in said
    assert "--column" in say(tmp_path, "grade", "import", "--help")
