"""What embedding, reranking and chat promise of a paid call: one price per attempt, every answer paid for, kept once.

All three follow one script at a dollar a token: a call is four tokens by estimate and three as counted.
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
import xxhash
from bakeoff.calls.budget import Budget, BudgetReached
from bakeoff.calls.key_index import keys_of
from bakeoff.calls.locks import Claims
from bakeoff.calls.paid import Usage
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder
from bakeoff.extensions.testsets.answers import AnswerCache
from bakeoff.extensions.testsets.ask import Asker, Question, Unusable
from bakeoff.search.answer import Answer, Searcher
from bakeoff.search.rerankers import Reranked, Reranker
from bakeoff.systems.reranked import RerankedSearcher
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Price, Provider, Role, cache_key
from bakeoff_providers.chat.base import ChatModel, Reply
from bakeoff_providers.errors import AnswerUnusable, BakeoffError, CallFailed, EmbeddingFailed, StoreError, Unavailable
from bakeoff_providers.options import Transport

from tests.errors import refuses

GUESS, COUNTED = 4.0, 3.0  # dollars
DOLLAR = 1e6  # a million tokens
BUSY = CallFailed("busy", status=503, retryable=True)
BROKE_OFF = AnswerUnusable("the answer broke off", retryable=True)
UNUSABLE = "an answer that arrives and can't be used"


@dataclass
class Script:
    """What the server does next, and what the budget held while it was asked and while nobody was."""

    steps: list[Exception | str] = field(default_factory=list)
    budget: Budget | None = None
    held: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)

    def usable(self) -> bool:
        if self.budget:
            self.held.append(self.budget.spent)
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, Exception):
            raise step
        return step != UNUSABLE

    def sleep(self, _seconds: float) -> None:
        assert self.budget is not None
        self.between.append(self.budget.spent)

    @property
    def policy(self) -> RetryPolicy:
        return RetryPolicy(attempts=4, sleep=self.sleep)


Scripted = Annotated[Script, "what the server does; the answers that are kept are the same", Transport]


class Paid(Provider):
    name = default_model = "paid"
    revision = "1"
    card = ModelCard(
        name="paid", dimensions=2, price=Price(usd_per_million_tokens=DOLLAR, seen="2026-11", source="test")
    )

    def __init__(self, script: Scripted) -> None:
        self.script = script

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        vectors = np.array([[3.0, 4.0]] * len(texts), dtype=np.float32)
        return EmbeddingBatch(vectors if self.script.usable() else vectors[:0], tokens=3)


class PaidReranker(Reranker):
    name = default_model = model = "paid"
    revision = "1"
    usd_per_million = DOLLAR

    def __init__(self, script: Scripted) -> None:
        self.script = script

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        return Reranked([0.5 if self.script.usable() else float("nan")] * len(documents), tokens=3)


class PaidChat(ChatModel):
    name = default_model = "paid"
    own_url = "http://127.0.0.1"

    def __init__(self, script: Scripted) -> None:
        super().__init__(price_in=DOLLAR, price_out=0.0)
        self.script = script

    def ask(self, prompt: str, schema: Any, seed: int) -> Reply:
        return Reply("yes" if self.script.usable() else "no", 3, 1)

    def _connect(self, key: str) -> Any:
        raise NotImplementedError

    def _call(self, sdk: Any, prompt: str, schema: Any, seed: int) -> Reply:
        raise NotImplementedError


class First(Searcher):
    def ask(self, query: Query) -> Answer:
        return Answer(Ranking(("d",), (1.0,)), 1)


class Buyer(NamedTuple):
    buy: Callable[[], object]
    usage: Callable[[], Usage]


TEXT = "x" * 16  # four tokens by estimate
QUERY, DOCUMENT = "q" * 8, "d" * 8  # two and two


def embedding(script: Script, cache: Path | None = None, *, offline: bool = False) -> Buyer:
    kept = VectorCache(cache) if cache else None
    embedder = Embedder(Paid(script), kept, script.policy, script.budget, offline=offline, workers=1)
    return Buyer(lambda: embedder.embed([TEXT], Role.DOCUMENT).tolist(), lambda: embedder.usage[Role.DOCUMENT])


def reranking(script: Script, cache: Path | None = None, *, offline: bool = False) -> Buyer:
    reranker = PaidReranker(script)
    space = VectorCache(cache).space(cache_key(reranker) or {}) if cache else None
    searcher = RerankedSearcher(
        First(), reranker, 5, {"d": DOCUMENT}, script.policy, space, script.budget, offline=offline
    )
    return Buyer(lambda: searcher.ask(Query(id="q", text=QUERY)).ranking.scores, lambda: searcher.usage)


def chatting(script: Script, cache: Path | None = None, *, offline: bool = False) -> Buyer:
    def read(text: str) -> str:
        if text != "yes":
            raise Unusable("say yes")
        return text

    model = PaidChat(script)
    answers = AnswerCache(cache, model.identity()) if cache else None
    asker = Asker(model, answers, script.policy, script.budget, offline=offline)
    return Buyer(lambda: asker.ask(Question(TEXT, {}), read), lambda: asker.usage)


ALL = pytest.mark.parametrize("make", [embedding, reranking, chatting])


@ALL
def test_each_attempt_reserves_its_own_price_and_a_failure_costs_nothing(make: Callable[..., Buyer]) -> None:
    script = Script([BUSY, BUSY], Budget(GUESS))
    buyer = make(script)
    buyer.buy()
    assert script.held == [GUESS] * 3  # the third would not fit beside another
    assert script.between == [0.0] * 2
    assert script.budget is not None
    assert script.budget.spent == buyer.usage().usd == buyer.usage().tokens == COUNTED
    usage = buyer.usage()
    assert (usage.requests, usage.retries, usage.answered, usage.unusable) == (3, 2, 1, 0)
    assert (usage.asked, usage.cached) == (1, 0)


@ALL
def test_requests_that_fail_to_the_end_are_counted_and_free(make: Callable[..., Buyer]) -> None:
    script = Script([BUSY] * 4, Budget(GUESS))
    buyer = make(script)
    with refuses(CallFailed, "busy"):
        buyer.buy()
    usage = buyer.usage()
    assert (usage.requests, usage.retries, usage.answered, usage.usd, usage.tokens) == (4, 3, 0, 0.0, 0.0)
    assert script.budget is not None
    assert script.budget.spent == 0.0


@ALL
def test_an_answer_that_broke_off_is_paid_for_and_asked_for_again(make: Callable[..., Buyer]) -> None:
    """Nobody can count what did not come whole: it costs what was guessed."""
    script = Script([BROKE_OFF], Budget(2 * GUESS))
    buyer = make(script)
    buyer.buy()
    usage = buyer.usage()
    assert (usage.requests, usage.answered, usage.unusable) == (2, 2, 1)
    assert script.budget is not None
    assert script.budget.spent == usage.usd == GUESS + COUNTED
    poor = Script([BROKE_OFF] * 4, Budget(3 * GUESS - 1))
    buyer = make(poor)
    with pytest.raises(BudgetReached):
        buyer.buy()  # two were paid for, and a third might pass the limit
    assert poor.budget is not None
    assert (buyer.usage().requests, poor.budget.spent) == (2, 2 * GUESS)


@pytest.mark.parametrize(
    ("make", "error", "attempts"),
    [(embedding, EmbeddingFailed, 1), (reranking, StoreError, 1), (chatting, CallFailed, 4)],
)
def test_an_answer_that_cannot_be_used_is_paid_for(
    make: Callable[..., Buyer], error: type[BakeoffError], attempts: int, tmp_path: Path
) -> None:
    """Only a chat model may do better when it is asked again."""
    script = Script([UNUSABLE] * attempts, Budget(100.0))
    buyer = make(script, tmp_path)
    with pytest.raises(error):
        buyer.buy()
    usage = buyer.usage()
    assert (usage.requests, usage.answered, usage.unusable) == (attempts, attempts, attempts)
    assert script.budget is not None
    assert script.budget.spent == usage.usd
    assert usage.tokens >= attempts * COUNTED
    assert make(Script(budget=Budget(100.0)), tmp_path).buy()  # nothing of it was kept
    assert make(Script(), tmp_path, offline=True).buy()  # the usable one was
    with pytest.raises(Unavailable):
        make(Script(), tmp_path / "empty", offline=True).buy()


# Caches of earlier versions, byte by byte


def _folder(cache: Path, identity: dict[str, Any]) -> Path:
    name = hashlib.sha256(json.dumps(dict(sorted(identity.items())), separators=(",", ":")).encode()).hexdigest()[:32]
    (cache / name).mkdir(parents=True)
    (cache / name / "identity.json").write_text(json.dumps(identity))
    return cache / name


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _write_row(cache: Path, identity: dict[str, Any], text: str, row: list[float], tokens: float) -> None:
    folder, check = _folder(cache, identity), xxhash.xxh3_64_intdigest
    said = json.dumps({"identity": identity, "dimensions": len(row)}).encode()
    rows, body = struct.pack(f"<{len(row)}f", *row), _key(text) + struct.pack("<f", tokens)
    head = struct.pack("<4sIQQQ", b"BKR1", 1, 0, check(rows), check(body))
    (folder / "77-0a1b2c3d.f32").write_bytes(rows)
    (folder / "77-0a1b2c3d.manifest").write_bytes(
        struct.pack("<4sIQ", b"BKS1", len(said), check(said)) + said + head + struct.pack("<Q", check(head)) + body
    )


def _vectors(cache: Path) -> None:
    identity = {"provider": "paid", "model": "paid", "dimensions": 2, "role": "document", "prompt": "", "revision": "1"}
    _write_row(cache, identity, TEXT, [0.0, 2.0], 7.0)


def _scores(cache: Path) -> None:
    _write_row(cache, {"reranker": "paid", "model": "paid", "revision": "1"}, f"{QUERY}\0{DOCUMENT}", [0.25], 7.0)


def _answers(cache: Path) -> None:
    folder = _folder(cache, {"chat": "paid", "model": "paid", "temperature": 0.0, "max_tokens": None})
    line = json.dumps({"key": _key(f"0\0{TEXT}").hex(), "text": "yes", "prompt_tokens": 7, "answer_tokens": 1}).encode()
    (folder / "77-0a1b2c3d.answers").write_bytes(xxhash.xxh3_64_hexdigest(line).encode() + b" " + line + b"\n")


@pytest.mark.parametrize(
    ("make", "write", "value", "tokens"),
    [(embedding, _vectors, [[0.0, 1.0]], 7.0), (reranking, _scores, (0.25,), 7.0), (chatting, _answers, "yes", 0.0)],
)
@pytest.mark.parametrize("offline", [True, False])
def test_a_cache_of_an_earlier_version_answers_and_nothing_is_asked(
    make: Callable[..., Buyer],
    write: Callable[[Path], None],
    value: object,
    tokens: float,
    offline: bool,
    tmp_path: Path,
) -> None:
    write(tmp_path)
    script = Script([AssertionError("was asked")], Budget(0.0))
    buyer = make(script, tmp_path, offline=offline)
    assert buyer.buy() == value
    assert buyer.usage() == Usage(asked=1, cached=1, tokens=tokens)
    assert len(script.steps) == 1


# Claims


def test_a_thread_waits_for_another_as_for_a_process(tmp_path: Path) -> None:
    claims, keys = Claims(tmp_path / "asking.lock"), keys_of(["a", "b"])
    assert claims.take(keys) == [True, True]
    assert claims.take(keys) == [False, False]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(claims.wait, keys)
        claims.release(keys[:1])
        assert claims.take(keys) == [True, False]
        claims.release(keys)
        waiting.result(timeout=10)
    assert claims.take(keys) == [True, True]
    claims.close()


def test_those_who_wait_for_the_same_do_not_wait_for_each_other(tmp_path: Path) -> None:
    claims, keys = Claims(tmp_path / "asking.lock"), keys_of(map(str, range(50)))
    begin = threading.Barrier(4)

    def wait(order: int) -> None:
        begin.wait()
        claims.wait(keys[::order])

    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(wait, order) for order in (1, -1, 1, -1)]
        for one in waiting:
            one.result(timeout=20)
    assert all(claims.take(keys))  # nobody holds one any more
    claims.close()
