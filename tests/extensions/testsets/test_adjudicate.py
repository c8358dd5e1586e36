from __future__ import annotations

import json
from pathlib import Path

import pytest
from bakeoff.extensions.testsets.agreement import Adjudication
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.native_task import annotate, open_task, ungraded_task


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = ungraded_task(tmp_path)
    annotate(tmp_path, "ada", {"q1": {"1": 3, "2": 0, "3": 1}, "q2": {"2": 3}})
    annotate(tmp_path, "bob", {"q1": {"1": 3, "2": 2, "3": 0}, "q2": {"2": 2}})
    return path


def test_the_widest_apart_are_asked_first_and_each_decision_is_kept_at_once(path: Path, tmp_path: Path) -> None:
    work = Adjudication(open_task(tmp_path))
    assert [(pair.query, pair.document) for pair in work.open()] == [("q1", "2"), ("q1", "3"), ("q2", "2")]
    work.decide("q1", "2", 1, "barely")
    kept = json.loads((path.parent / "annotations" / "adjudication.json").read_text())
    assert kept == [{"query_id": "q1", "page_id": "2", "grades": {"ada": 0, "bob": 2}, "grade": 1, "why": "barely"}]
    again = Adjudication(open_task(tmp_path))
    assert [(pair.query, pair.document) for pair in again.open()] == [("q1", "3"), ("q2", "2")]


def test_the_truth_takes_the_decisions(path: Path, tmp_path: Path) -> None:
    decided = Adjudication(open_task(tmp_path)).ask(lambda pair: (1, "so") if pair.query == "q1" else None)
    assert decided == 2
    truth = open_task(tmp_path).write_truth()
    assert truth.open == [("q2", "2")]
    assert load_task(str(path), Path()).judgments == {"q1": {"1": 3, "2": 1, "3": 1}, "q2": {"2": 2}}


def test_a_changed_grade_opens_a_pair_again(path: Path, tmp_path: Path) -> None:
    Adjudication(open_task(tmp_path)).decide("q1", "2", 1)
    annotate(tmp_path, "ada", {"q1": {"2": 3}})
    assert ("q1", "2") in {(pair.query, pair.document) for pair in Adjudication(open_task(tmp_path)).open()}


def test_a_model_that_differs_from_people_is_no_disagreement(path: Path, tmp_path: Path) -> None:
    annotate(tmp_path, "judge", {"q1": {"1": 0}}, kind="model")
    assert ("q1", "1") not in {(pair.query, pair.document) for pair in Adjudication(open_task(tmp_path)).open()}


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ({"query_id": "q1", "page_id": 2, "grade": 7}, "entry 2"),
        ({"query_id": "q1", "page_id": 9, "grade": 1}, "'9'"),
        ({"query_id": "q1", "page": 9, "grade": 1}, "page"),
    ],
)
def test_a_file_of_decisions_is_taken_whole_or_not_at_all(
    path: Path, tmp_path: Path, decision: dict[str, object], said: str
) -> None:
    good = {"query_id": "q1", "page_id": 3, "grade": 1, "why": "x"}
    (tmp_path / "d.json").write_text(json.dumps([good, decision]))
    with refuses(InputError, said, place="$[1]", file="d.json"):
        Adjudication(open_task(tmp_path)).decide_from(tmp_path / "d.json")
    assert not (path.parent / "annotations" / "adjudication.json").exists()
    (tmp_path / "d.json").write_text(json.dumps([good]))
    assert Adjudication(open_task(tmp_path)).decide_from(tmp_path / "d.json") == 1


def test_nobody_decides_on_what_nobody_graded(path: Path, tmp_path: Path) -> None:
    with refuses(InputError, "2", "3"):
        Adjudication(open_task(tmp_path)).decide("q2", "3", 1)
