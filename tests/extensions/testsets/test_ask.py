from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bakeoff.calls.budget import Budget, BudgetReached
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.hashing import text_key
from bakeoff.extensions.testsets.answers import AnswerCache, question_keys
from bakeoff.extensions.testsets.ask import LONGEST_ANSWER, Asker, Question, Unusable, read_object, without_thoughts
from bakeoff_providers.chat import CHATS
from bakeoff_providers.chat.base import Reply
from bakeoff_providers.errors import CallFailed, InputError, Unavailable
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.wire import PROXIES, Fault, WireServer

QUICK = RetryPolicy(attempts=3, sleep=lambda seconds: None)


class Graded(msgspec.Struct):
    grade: int


def read(text: str) -> int:
    return read_object(text, Graded).grade


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with WireServer() as server:
        server.answer = lambda model, prompt: f'{{"grade": {prompt[0]}}}'
        yield server


def asker(wire: WireServer, folder: Path | None = None, budget: Budget | None = None, **options: Any) -> Asker:
    offline = options.pop("offline", False)
    model = CHATS.create("openai", base_url=wire.base("openai"), timeout=5, key_env="FREE_KEY", **options)
    answers = AnswerCache(folder, model.identity()) if folder else None
    return Asker(model, answers, QUICK, budget, offline=offline)


def put(answers: AnswerCache, prompt: str, seed: int, reply: Reply) -> None:
    answers.put([prompt], [reply], None, question_keys(prompt, seed))


def kept(answers: AnswerCache, prompt: str, seed: int) -> Reply | None:
    places = answers.find(question_keys(prompt, seed))
    return answers.take(places)[0] if places[0] >= 0 else None


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREE_KEY", "a-key-for-tests")


def test_an_answer_is_paid_for_once(wire: WireServer, tmp_path: Path) -> None:
    first = asker(wire, tmp_path)
    assert first.ask(Question("2 is it", {}), read) == 2
    assert asker(wire, tmp_path).ask(Question("2 is it", {}), read) == 2
    assert len(wire.chats()) == 1
    assert asker(wire, tmp_path).ask(Question("2 is it", {}, seed=1), read) == 2  # another answer to the same
    assert asker(wire, tmp_path, temperature=1).ask(Question("2 is it", {}), read) == 2  # another model, in effect
    assert len(wire.chats()) == 3


def test_prose_is_asked_again_with_the_reason(wire: WireServer, tmp_path: Path) -> None:
    said = iter(["I would say two.", '{"grade": "two"}', '{"grade": 2}'])
    wire.answer = lambda model, prompt: next(said)
    one = asker(wire, tmp_path)
    assert one.ask(Question("a pair", {}), read) == 2
    prompts = [request.texts[0] for request in wire.chats()]
    assert prompts[0] == "a pair"
    says(prompts[1], "JSON")
    says(prompts[2], "JSON")
    assert (one.usage.requests, one.usage.unusable) == (3, 2)
    assert asker(wire, tmp_path).ask(Question("a pair", {}), read) == 2  # the usable answer is the one that is kept


def test_a_model_that_never_learns_is_an_error_and_nothing_is_kept(wire: WireServer, tmp_path: Path) -> None:
    wire.answer = lambda model, prompt: "prose"
    with refuses(CallFailed, "openai-gpt-4o-mini", "JSON"):
        asker(wire, tmp_path).ask(Question("a pair", {}), read)
    assert len(wire.chats()) == QUICK.attempts
    assert not list(tmp_path.rglob("*.answers"))


def test_a_server_that_stumbles_is_asked_again(wire: WireServer) -> None:
    wire.faults += [Fault(status=503), Fault("drop")]
    assert asker(wire).ask(Question("3", {}), read) == 3


def test_the_budget_stops_before_it_is_passed_and_what_was_paid_for_is_kept(wire: WireServer, tmp_path: Path) -> None:
    # a prompt of 4 characters is 1 token at $1 each; 150 tokens are set aside for an answer of 3 tokens at $0.01
    prices = {"price_in": 1e6, "price_out": 1e4}
    one = asker(wire, tmp_path, Budget(4.0), **prices)
    assert one.ask(Question("1abc", {}), read) == 1  # reserves 1 + 1.50, costs 1 + 0.03
    assert one.ask(Question("2abc", {}), read) == 2
    with pytest.raises(BudgetReached):
        one.ask(Question("3abc", {}), read)  # 2.06 are spent, 2.50 more would be 4.56
    assert one.usage.usd == pytest.approx(2.06)
    assert len(wire.chats()) == 2
    again = asker(wire, tmp_path, Budget(0.0), **prices)
    assert again.ask(Question("1abc", {}), read) == 1


def test_counts_below_zero_make_no_budget_larger(wire: WireServer, tmp_path: Path) -> None:
    wire.faults += [Fault("negative_tokens")] * 3
    one = asker(wire, tmp_path, Budget(4.0), price_in=1e6, price_out=1e4)
    assert [one.ask(Question(f"{n}abc", {}), read) for n in (1, 2)] == [1, 2]
    with pytest.raises(BudgetReached):
        one.ask(Question("3abc", {}), read)
    assert one.usage.usd == pytest.approx(2.06)  # by the length of the texts, as above


def test_a_text_that_can_not_be_written_down_fails_before_it_is_kept(wire: WireServer, tmp_path: Path) -> None:
    wire.faults.append(Fault("half"))
    one = asker(wire, tmp_path)
    answers = dict(one.ask_all({"a": Question("1", {}), "b": Question("2", {})}, read))
    failed = [answer for answer in answers.values() if isinstance(answer, CallFailed)]
    assert len(failed) == 1
    assert len(wire.chats()) == 2


def test_a_budget_without_a_price_is_refused(wire: WireServer) -> None:
    with refuses(InputError, "openai-gpt-4o-mini", "--max-cost") as caught:
        asker(wire, None, Budget(1.0))
    assert "price_in" in caught.value.remedy


def test_offline_answers_from_the_cache_alone(wire: WireServer, tmp_path: Path) -> None:
    asker(wire, tmp_path).ask(Question("1", {}), read)
    away = asker(wire, tmp_path, offline=True)
    assert away.ask(Question("1", {}), read) == 1
    with refuses(Unavailable, "--offline"):
        away.ask(Question("2", {}), read)


def test_a_dry_run_counts_what_the_cache_lacks(wire: WireServer, tmp_path: Path) -> None:
    one = asker(wire, tmp_path, price_in=10, price_out=0)
    one.ask(Question("1abc", {}), read)
    estimate = one.estimate({n: Question(f"{n}abc", {}) for n in range(3)})
    assert (estimate.asked, estimate.cached, estimate.requests, estimate.tokens) == (3, 1, 2, 2)
    assert estimate.usd == pytest.approx(2 * 10 / 1e6)
    assert len(wire.chats()) == 1


def test_many_are_asked_at_once_and_one_failure_stays_its_own(wire: WireServer, tmp_path: Path) -> None:
    wire.answer = lambda model, prompt: "prose" if prompt.startswith("7") else f'{{"grade": {prompt[0]}}}'
    answers = dict(asker(wire, tmp_path).ask_all({n: Question(f"{n}", {}) for n in range(10)}, read))
    assert isinstance(answers.pop(7), CallFailed)
    assert answers == {n: n for n in range(10) if n != 7}


def test_a_torn_line_costs_itself_only(wire: WireServer, tmp_path: Path) -> None:
    one = asker(wire, tmp_path)
    for n in range(3):
        one.ask(Question(f"{n}", {}), read)
    one.close()
    (file,) = tmp_path.rglob("*.answers")
    file.write_bytes(file.read_bytes()[:-9])  # killed while writing the last line
    again = asker(wire, tmp_path)
    assert [again.ask(Question(f"{n}", {}), read) for n in range(3)] == [0, 1, 2]
    assert len(wire.chats()) == 4


def test_reply_survives_the_disk(tmp_path: Path) -> None:
    reply = Reply('{"grade": 1, "reason": "ü\n"}', 5, None)
    answers = AnswerCache(tmp_path, {"model": "m"})
    put(answers, "p", 0, reply)
    assert kept(AnswerCache(tmp_path, {"model": "m"}), "p", 0) == reply
    assert kept(AnswerCache(tmp_path, {"model": "other"}), "p", 0) is None


def test_no_flipped_bit_changes_an_answer(tmp_path: Path) -> None:
    reply = Reply('{"grade": 1}', 5, 7)
    answers = AnswerCache(tmp_path, {"model": "m"})
    put(answers, "p", 0, reply)
    answers.close()
    (file,) = tmp_path.rglob("*.answers")
    content = file.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            file.write_bytes(damaged)
            again = AnswerCache(tmp_path, {"model": "m"})
            assert kept(again, "p", 0) in (None, reply)


def test_answers_of_earlier_versions_are_read(tmp_path: Path) -> None:
    answers = AnswerCache(tmp_path, {"model": "m"})
    key = text_key("0\0p").hex()
    (answers.folder / "7-abc.jsonl").write_text(f'{{"key": "{key}", "text": "yes", "prompt_tokens": 3}}\n')
    assert kept(AnswerCache(tmp_path, {"model": "m"}), "p", 0) == Reply("yes", 3, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"grade": 2}',
        '```json\n{"grade": 2}\n```',
        'Sure! {"grade": 2, "reason": "x"}',
        '<think>{"grade": 0}</think>{"grade": 2}',
    ],
)
def test_an_object_is_found_where_models_put_it(text: str) -> None:
    assert read(text) == 2


@given(st.text())
def test_any_text_is_a_grade_or_unusable(text: str) -> None:
    try:
        grade = read(text)
    except Unusable:
        return
    assert json.dumps(grade)


ASKING = """
import sys
from pathlib import Path
import msgspec
from bakeoff.extensions.testsets.ask import Question, make_asker, read_object

class Graded(msgspec.Struct):
    grade: int

options = {"base_url": sys.argv[2], "key_env": "FREE_KEY", "timeout": 30}
asker = make_asker("openai", options, answers=Path(sys.argv[1]))
questions = {number: Question(f"{number % 3} is it, of {number % 30}", {}) for number in range(40)}
grades = dict(asker.ask_all(questions, lambda text: read_object(text, Graded).grade))
assert grades == {number: number % 3 for number in range(40)}, grades
asker.close()
print(asker.usage.requests, asker.usage.cached)
"""


def test_two_processes_at_once_pay_for_each_answer_once(wire: WireServer, tmp_path: Path) -> None:
    wire.seconds_each = 0.05
    command = [sys.executable, "-c", ASKING, str(tmp_path), wire.base("openai")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(wire.chats()) == 30  # 40 questions, of which ten come twice
    assert sum(int(requests) for requests, _ in said) == 30
    assert [int(requests) + int(cached) for requests, cached in said] == [40, 40]


def test_an_answer_that_nobody_brings_is_asked_for_by_who_waits(wire: WireServer, tmp_path: Path) -> None:
    waiting = asker(wire, tmp_path)
    assert waiting.answers is not None
    claims, keys = waiting.answers.claims, question_keys("2 is it", 0)
    assert claims.take(keys) == [True]  # by a thread that will answer nothing
    with ThreadPoolExecutor() as pool:
        later = pool.submit(waiting.ask, Question("2 is it", {}), read)
        time.sleep(0.2)
        assert wire.chats() == []
        claims.release(keys)
        assert later.result(timeout=10) == 2
    assert len(wire.chats()) == 1


def test_what_another_one_has_answered_is_seen(tmp_path: Path) -> None:
    one, two = (AnswerCache(tmp_path, {"model": "m"}) for _ in range(2))
    for number in range(3):
        put(one, "p", number, Reply(f"r{number}"))
        two.refresh()
        assert kept(two, "p", number) == Reply(f"r{number}")
    (file,) = tmp_path.rglob("*.answers")
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))  # killed before the end of the line
    assert kept(AnswerCache(tmp_path, {"model": "m"}), "p", 2) == Reply("r2")


def test_thoughts_are_left_out_in_one_look() -> None:
    assert without_thoughts("a<think>b<think>c</think>d</think>e<think>f") == "ad</think>e<think>f"
    begin = time.process_time()
    with pytest.raises(Unusable):
        read_object("<think>" * 100_000, dict)
    assert time.process_time() - begin < 2  # minutes before
    with refuses(Unusable, "characters"):
        read_object("{" + " " * LONGEST_ANSWER, dict)


def test_an_answer_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full takes a part of what it is given."""
    answers = AnswerCache(tmp_path, {"model": "m"})
    put(answers, "a", 0, Reply("first", 1, 1))
    pwrite, room = os.pwrite, [10, 10_000]

    def short(file: int, data: memoryview, offset: int) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(file, data[: room.pop(0)], offset)

    monkeypatch.setattr("os.pwrite", short)
    put(answers, "b", 0, Reply("in two parts", 1, 1))
    room[:] = [10]
    with refuses(OSError):
        put(answers, "c", 0, Reply("torn", 1, 1))
    room[:] = [10_000]
    put(answers, "d", 0, Reply("after it", 1, 1))
    again = AnswerCache(tmp_path, {"model": "m"})
    replies = [kept(again, prompt, 0) for prompt in "abcd"]
    assert [reply and reply.text for reply in replies] == ["first", "in two parts", None, "after it"]
    (file,) = again.folder.glob("*.answers")
    assert file.read_bytes().count(b"\n") == 3
