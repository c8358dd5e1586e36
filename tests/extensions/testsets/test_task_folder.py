from __future__ import annotations

import json
from pathlib import Path

import pytest
from bakeoff.core.files import read_json
from bakeoff.core.paths import task_file
from bakeoff.extensions.testsets.annotations import AdjudicatedPair, Annotation, decisive, majority, settle
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.tasks.ground_truth import GroundTruth
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_testsets import say
from tests.errors import refuses, says
from tests.facts import arguments
from tests.native_task import annotate, open_task, ungraded_task


@pytest.mark.parametrize(
    ("grades", "expected", "clear"),
    [
        ([2], 2, True),
        ([2, 2, 0], 2, True),
        ([0, 3], 0, False),  # as far from the middle, so the lower
        ([0, 0, 3, 3, 2], 3, False),  # two each; the middle is 2, and 3 is nearer to it
        ([1, 2, 3], 2, False),
    ],
)
def test_the_majority_by_hand(grades: list[int], expected: int, clear: bool) -> None:
    assert majority(grades) == expected
    assert decisive(grades) is clear


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_a_majority_is_a_grade_that_was_given_and_most_often(grades: list[int]) -> None:
    won = majority(grades)
    assert grades.count(won) == max(grades.count(grade) for grade in grades)
    assert majority(sorted(grades)) == won


def test_people_outrank_models_and_decisions_outrank_people() -> None:
    people = Annotation(grades={"q": {"1": 3, "2": 3}})
    models = [Annotation(metadata={"kind": "model"}, grades={"q": {"1": 0, "2": 0, "3": 1}}) for _ in range(2)]
    decided = [AdjudicatedPair(query_id="q", document_id=2, grades={"a": 3}, grade=1)]
    truth = settle({"a": people, "m": models[0], "n": models[1]}, decided)
    assert truth.grades == {("q", "1"): 3, ("q", "2"): 1, ("q", "3"): 1}
    assert truth.open == []


def test_what_has_no_majority_is_left_open() -> None:
    truth = settle({"a": Annotation(grades={"q": {"1": 3}}), "b": Annotation(grades={"q": {"1": 2}})}, [])
    assert truth.grades == {("q", "1"): 2}
    assert truth.open == [("q", "1")]


@pytest.mark.parametrize("name", ["wikipedia", "wikipedia-paraphrased"])
def test_the_shipped_truth_is_what_its_annotations_come_to(name: str) -> None:
    folder = TaskFolder.open(name)
    truth = settle(folder.annotators(), folder.read_adjudications())
    shipped = read_json(task_file(name).parent / "ground_truth.json", GroundTruth).grades
    assert truth.grades == {(q, d): grade for q, row in shipped.items() for d, grade in row.items()}
    assert truth.open == []


def test_a_new_task_loads_and_a_written_truth_reaches_all_files(tmp_path: Path) -> None:
    path = ungraded_task(tmp_path)
    assert load_task(str(path), Path()).judgments == {}
    annotate(tmp_path, "ada", {"q1": {"1": 3, "2": 0}, "q2": {"2": 1}})
    open_task(tmp_path).write_truth()
    task = load_task(str(path), Path())
    assert task.judgments == {"q1": {"1": 3, "2": 0}, "q2": {"2": 1}}
    assert "3" not in (path.parent / "queries.json").read_text()  # grades live in one place


def test_grades_from_elsewhere_stay(tmp_path: Path) -> None:
    path = ungraded_task(tmp_path)
    (path.parent / "ground_truth.json").write_text(json.dumps({"grades": {"q2": {"3": 2}}}))
    annotate(tmp_path, "ada", {"q1": {"1": 3}})
    open_task(tmp_path).write_truth()
    assert load_task(str(path), Path()).judgments == {"q1": {"1": 3}, "q2": {"3": 2}}


def test_an_older_task_that_repeats_its_grades_is_read_and_then_keeps_them_in_one_place(tmp_path: Path) -> None:
    path = ungraded_task(tmp_path)
    queries, truth = path.parent / "queries.json", path.parent / "ground_truth.json"
    older = json.loads(queries.read_text())
    older["queries"][0] |= {"expected_results": [1], "relevance_annotations": {"1": 3}}
    queries.write_text(json.dumps(older))
    truth.write_text(json.dumps({"grades": {"q1": {"1": 3}}}))
    assert load_task(str(path), Path()).judgments == {"q1": {"1": 3}}
    annotate(tmp_path, "ada", {"q1": {"1": 2}})
    open_task(tmp_path).write_truth()
    assert load_task(str(path), Path()).judgments == {"q1": {"1": 2}}
    assert "relevance_annotations" not in queries.read_text()
    assert "expected_results" not in queries.read_text()


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ({"q1": {"1": 7}}, "grades.q1.1"),
        ({"q1": {"9": 1}}, "'9'"),
        ({"q9": {"1": 1}}, "'q9'"),
        ({"q1": {"1": "3"}}, "Expected `int`"),
    ],
)
def test_annotations_are_checked_with_their_place(tmp_path: Path, grades: dict[str, dict[str, int]], said: str) -> None:
    ungraded_task(tmp_path)
    annotate(tmp_path, "ada", grades)
    with refuses(InputError, said, file="ada.json") as caught:
        open_task(tmp_path).annotators()
    assert str(caught.value.file).endswith("ada.json")


@pytest.mark.parametrize("who", ["../../etc", "pool", "adjudication", "", "..."])
def test_a_name_never_leaves_the_folder(tmp_path: Path, who: str) -> None:
    ungraded_task(tmp_path)
    folder = open_task(tmp_path)
    try:
        path = folder.file_of(who)
    except InputError:
        return
    assert path.parent == folder.annotations
    assert path.name not in ("pool.json", "adjudication.json")


def test_one_grade_and_one_pair_are_said_as_one(tmp_path: Path) -> None:
    ungraded_task(tmp_path)
    annotate(tmp_path, "ada", {"q1": {"1": 3}})
    assert arguments([open_task(tmp_path).standing()], "testsets.unsettled_grades")[0]["grades"] == 1
    annotate(tmp_path, "ada", {"q1": {"1": 3, "2": 0}})
    assert arguments([open_task(tmp_path).standing()], "testsets.unsettled_grades")[0]["grades"] == 2
    annotate(tmp_path, "bob", {"q1": {"1": 0, "2": 0}})
    said = say(tmp_path, "adjudicate", "task", "--majority", COLUMNS="200")
    assert "2 grades in task/ground_truth.json\n" in said
    says(said, "1 pair")
