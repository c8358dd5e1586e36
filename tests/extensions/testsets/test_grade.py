"""Grading by models: the real OpenAI SDK against a server that answers by script."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.extensions.testsets.ask import Unusable, make_asker
from bakeoff.extensions.testsets.grade import Judge, grade_all, read_grade
from bakeoff.tasks.ground_truth import GRADES
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import BakeoffError, InputError

from tests.errors import refuses
from tests.native_task import annotate, open_task, ungraded_task
from tests.wire import PROXIES, Fault, WireServer

QUICK = RetryPolicy(attempts=2, sleep=lambda seconds: None)
TRUTH = {("digging", "Copper"): 3, ("water", "Boats"): 2, ("water", "Trees"): 1}


def by_truth(model: str, prompt: str) -> str:
    grade = next((g for (query, title), g in TRUTH.items() if query in prompt and f"Document: {title}" in prompt), 0)
    return json.dumps({"reason": f"says {model}", "grade": grade})


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with WireServer() as server:
        server.answer = by_truth
        yield server


def judge(folder: Path, wire: WireServer, model: str = "m", repeat: int = 0, **options: Any) -> Judge:
    asker = make_asker(f"openai:{model}", {"base_url": wire.base("openai"), "key_env": "ANY_KEY", **options})
    asker.policy = QUICK
    return Judge(open_task(folder), asker, repeat)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANY_KEY", "a-key-for-tests")


def test_every_pair_gets_its_grade_and_the_reason_is_kept(tmp_path: Path, wire: WireServer) -> None:
    path = ungraded_task(tmp_path)
    one = judge(tmp_path, wire)
    grade_all([one], one.folder.all_pairs(), lambda judged: None)
    written = json.loads((path.parent / "annotations" / "openai-m.json").read_text())
    assert written["grades"] == {"q1": {"1": 3, "2": 0, "3": 0}, "q2": {"1": 0, "2": 2, "3": 1}}
    assert written["notes"]["q1"]["1"] == "says m"
    assert written["metadata"]["kind"] == "model"
    assert "key" not in json.dumps(written["metadata"])
    open_task(tmp_path).write_truth()
    assert load_task(str(path), Path()).judgments["q2"] == {"1": 0, "2": 2, "3": 1}


def test_the_prompt_defines_the_grades_and_hides_everything_else(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    annotate(tmp_path, "ada", {"q1": {"1": 2}})
    one = judge(tmp_path, wire)
    one.grade([("q1", "1")])
    (prompt,) = wire.chats()[0].texts
    for words in ("3 = ", "2 = related", "1 = tangential", "0 = none", "digging for metal", "copper mine"):
        assert words in prompt
    assert "ada" not in prompt
    assert "bm25" not in prompt


def test_a_second_run_asks_only_for_what_is_open(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    one = judge(tmp_path, wire)
    one.grade(one.folder.all_pairs()[:4])
    assert len(wire.chats()) == 4
    again = judge(tmp_path, wire)
    judged = again.grade(again.folder.all_pairs())
    assert len(wire.chats()) == 6
    assert sum(map(len, judged.annotation.grades.values())) == 6


def test_one_pair_without_a_grade_loses_no_other(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    wire.answer = lambda model, prompt: "I think so." if "Boats" in prompt else by_truth(model, prompt)
    one = judge(tmp_path, wire)
    reported: list[Any] = []
    with refuses(BakeoffError, "2"):
        grade_all([one], one.folder.all_pairs(), reported.append)
    assert set(reported[0].failed) == {("q1", "2"), ("q2", "2")}
    assert set(open_task(tmp_path).annotators()["openai-m"].pairs()) == set(one.folder.all_pairs()) - set(
        reported[0].failed
    )


def test_a_server_that_goes_away_loses_nothing_that_was_given(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    one = judge(tmp_path, wire)
    one.asker.workers = 1
    wire.faults.extend([None, None, None, Fault(status=401)])
    with pytest.raises(BakeoffError):
        grade_all([one], one.folder.all_pairs(), lambda judged: None)
    assert len(open_task(tmp_path).annotators()["openai-m"].pairs()) == 5


def test_an_interrupt_keeps_every_grade_that_arrived(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    arrived = []

    @contextlib.contextmanager
    def interrupted(label: str, total: int) -> Iterator[Any]:
        def advance(steps: int) -> None:
            arrived.append(steps)
            if len(arrived) == 3:
                raise KeyboardInterrupt

        yield advance

    one = judge(tmp_path, wire)
    one.progress = interrupted
    with pytest.raises(KeyboardInterrupt):
        one.grade(one.folder.all_pairs())
    assert len(open_task(tmp_path).annotators()["openai-m"].pairs()) == 3


def test_several_voices_give_a_majority(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    wire.answer = lambda model, prompt: json.dumps({"grade": {"a": 3, "b": 3, "c": 0}[model]})
    voices = [judge(tmp_path, wire, model) for model in "abc"]
    grade_all(voices, [("q1", "1")], lambda judged: None)
    truth = open_task(tmp_path).write_truth()
    assert truth.grades == {("q1", "1"): 3}


def test_repeats_are_voices_of_their_own(tmp_path: Path, wire: WireServer) -> None:
    path = ungraded_task(tmp_path)
    voices = [judge(tmp_path, wire, repeat=repeat, temperature=0.7) for repeat in range(3)]
    grade_all(voices, [("q1", "1")], lambda judged: None)
    assert [request.body["seed"] for request in wire.chats()] == [0, 1, 2]
    assert {file.name for file in (path.parent / "annotations").glob("*.json")} == {
        "openai-m.json", "openai-m.r2.json", "openai-m.r3.json",
    }  # fmt: skip


def test_a_persons_file_is_never_written_over(tmp_path: Path, wire: WireServer) -> None:
    ungraded_task(tmp_path)
    annotate(tmp_path, "openai-m", {"q1": {"1": 2}})
    with refuses(InputError, file="openai-m.json"):
        judge(tmp_path, wire).grade([("q1", "2")])


@pytest.mark.parametrize("text", ['{"grade": 7}', '{"grade": -1}', '{"grade": 2.5}', '{"grade": "2"}', "{}", "two"])
def test_what_is_no_grade(text: str) -> None:
    with pytest.raises(Unusable):
        read_grade(GRADES, text)
