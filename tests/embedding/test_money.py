"""What is asked, waited for, counted and paid: by hand, call by call."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest
from bakeoff.calls.budget import Budget, BudgetReached, estimate_tokens, price_of
from bakeoff.calls.key_index import keys_of
from bakeoff.calls.paid import Usage
from bakeoff.calls.retry import RateLimit, RetryPolicy, Unanswered, call
from bakeoff.core.progress import Advance
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder, batches, corpus_batches
from bakeoff.embedding.unit import NotingUnit, norms_of, unit
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Price, Provider, Role, Vectors
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError

from tests.errors import refuses

DEAR = Price(usd_per_million_tokens=2.0, seen="2026-11", source="test")


class Counting(Provider):
    """Seven tokens for each text, or no count at all; the first text of each call is cut."""

    name = default_model = "counting"

    def __init__(self, *, counts: bool = True) -> None:
        self.card = ModelCard(name="counting", batch_items=2, price=DEAR, document_prompt="say {text} now")
        self.counts, self.asked = counts, list[list[str]]()

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        self.asked.append(list(texts))
        vectors = np.array([[3.0 * len(text), 4.0 * len(text)] for text in texts], dtype=np.float32)
        return EmbeddingBatch(vectors, tokens=7 * len(texts) if self.counts else None, truncated=1)


class CountingHere(Counting):
    local = True


# Retries


def _failing(*errors: Exception) -> tuple[list[float], list[float], RetryPolicy, RateLimit, list[Exception]]:
    slept, paused = list[float](), list[float]()
    return slept, paused, RetryPolicy(sleep=slept.append), RateLimit(sleep=paused.append), list(errors)


def _call(policy: RetryPolicy, limit: RateLimit, errors: list[Exception]) -> int:
    def made() -> str:
        if errors:
            raise errors.pop(0)
        return "answer"

    planned = len(errors)
    answer, nanoseconds = call(made, policy, limit)
    assert answer == "answer"
    assert nanoseconds > 0
    return planned - len(errors)


def test_five_attempts_are_made_and_no_sixth() -> None:
    busy = [CallFailed("busy", status=503, retryable=True)] * 4
    slept, paused, policy, limit, errors = _failing(*busy)
    assert _call(policy, limit, errors) == 4
    assert len(slept) == 4
    assert all(wait <= 0.5 * 2**at for at, wait in enumerate(slept))  # half a second, then twice as long each time
    assert any(wait > 0 for wait in slept)
    assert paused == []  # only a 429 holds up the others
    _, _, policy, limit, errors = _failing(*busy, CallFailed("still busy", status=503, retryable=True))
    with refuses(CallFailed, "still busy"):
        _call(policy, limit, errors)


def test_a_wrong_answer_is_asked_again_at_once() -> None:
    slept, _, policy, limit, errors = _failing(Unanswered("garbled"), Unanswered("garbled"))
    assert _call(policy, limit, errors) == 2
    assert slept == [0.0, 0.0]


def test_a_minute_is_waited_for_but_no_more() -> None:
    slept, paused, policy, limit, errors = _failing(CallFailed("slow", status=429, retryable=True, retry_after=60.0))
    assert _call(policy, limit, errors) == 1
    assert slept == [60.0]
    assert paused == [pytest.approx(60.0, abs=5)]  # the clock was not really waited for
    _, _, policy, limit, errors = _failing(CallFailed("slow", status=429, retryable=True, retry_after=60.1))
    with pytest.raises(CallFailed):
        _call(policy, limit, errors)


def test_a_pause_is_never_made_shorter_by_another() -> None:
    slept: list[float] = []
    limit = RateLimit(sleep=slept.append)
    limit.wait()
    assert slept == []
    limit.pause(1000)
    limit.pause(10)
    limit.wait()
    assert 900 < slept[0] <= 1000


def test_less_than_a_second_is_waited_for_too() -> None:
    slept: list[float] = []
    limit = RateLimit(sleep=slept.append)
    limit.pause(0.9)
    limit.wait()
    assert len(slept) == 1
    assert 0 < slept[0] <= 0.9


# Budgets and prices


def test_a_budget_may_be_spent_to_the_last_cent_and_no_further() -> None:
    budget = Budget(limit=2.0)
    budget.reserve(1.5)
    assert budget.spent == 1.5
    budget.settle(1.5, 0.5)
    assert budget.spent == 0.5
    budget.reserve(1.5)
    assert budget.spent == 2.0
    with refuses(BudgetReached, "$2.00", "$2.0000"):
        budget.reserve(0.0001)
    assert budget.spent == 2.0


def test_a_call_that_fails_costs_nothing() -> None:
    class Failing(Counting):
        def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
            assert budget.spent > 0
            raise ValueError("failed")

    budget = Budget(limit=1.0)
    with refuses(ValueError, "failed"):
        Embedder(Failing(), budget=budget).embed(["a"], Role.DOCUMENT)
    assert budget.spent == 0.0


def test_usage_is_added_up_and_priced() -> None:
    assert not Usage().estimated
    one = Usage(5, 2, 1, 1, 3, 2, 1, 10.0, 6.0, usd=0.5)
    other = Usage(9, 9, 2, 3, 2, 1, 4, 500_000.0, 7.0, estimated=True, usd=0.25)
    assert one + other == other + one == Usage(14, 11, 3, 4, 5, 3, 5, 500_010.0, 13.0, True, 0.75)
    assert (one + Usage(usd=None)).usd is None  # of a part nobody knows the price
    assert price_of(500_000, ModelCard(name="m", price=DEAR)) == 1.0
    assert price_of(500_000, ModelCard(name="m")) == 0.0


def test_tokens_are_guessed_from_lengths() -> None:
    assert estimate_tokens(["x" * 8, "", "x" * 6]) == 2 + 1 + 1.5  # a text has one token at least
    assert estimate_tokens(["x" * 8, ""], "a: {text} b") == 3.25 + 1.25  # five characters around each


# Batches


def test_a_batch_is_full_by_items_or_by_tokens() -> None:
    card = ModelCard(name="m", batch_items=3, batch_tokens=4)
    assert list(batches(["a"] * 4, card)) == [["a"] * 3, ["a"]]
    assert list(batches(["x" * 8, "y" * 8, "z"], card)) == [["x" * 8, "y" * 8], ["z"]]  # two and two are just four
    assert list(batches(["x" * 9, "y" * 8], card)) == [["x" * 9], ["y" * 8]]
    assert list(batches(["x" * 99], card)) == [["x" * 99]]
    assert list(batches([], card)) == []
    assert list(batches(["a"] * 5, ModelCard(name="m", batch_items=3))) == [["a"] * 3, ["a"] * 2]


def test_a_corpus_is_cut_in_each_block_and_nothing_is_asked_twice() -> None:
    card = ModelCard(name="m", batch_items=2)
    texts = ["a", "b", "a", "c", "b", "d", "e", "f"]
    assert list(corpus_batches(texts, card, 0, 4)) == [["a", "b"], ["c"], ["d", "e"], ["f"]]
    known = {bytes(key) for key in keys_of(["b", "e"])}
    found = corpus_batches(texts, card, 0, 4, lambda keys: np.array([0 if bytes(key) in known else -1 for key in keys]))
    assert list(found) == [["a", "c"], ["d", "f"]]


# Unit vectors


def test_lengths_and_unit_vectors_of_more_rows_than_are_done_at_once() -> None:
    """Row n is n + 1 times (3, 4): its length is 5 (n + 1)."""
    vectors = np.outer(np.arange(1, 601), [3.0, 4.0]).astype(np.float32)
    assert norms_of(vectors) == pytest.approx(5.0 * np.arange(1, 601))
    assert unit(vectors, "m") == pytest.approx(np.tile([0.6, 0.8], (600, 1)))
    noted = list[tuple[float, float]]()
    noting = NotingUnit("m", lambda shortest, longest: noted.append((shortest, longest)))
    assert noting(vectors[1:]) == pytest.approx(np.tile([0.6, 0.8], (599, 1)))
    assert noted == [(10.0, 3000.0)]
    elsewhere = pickle.loads(pickle.dumps(noting))
    assert elsewhere(vectors[:2]) == pytest.approx(np.array([[0.6, 0.8]] * 2))
    assert len(noted) == 1
    with refuses(EmbeddingFailed):
        unit(np.array([[1.0, 1.0], [0.0, 0.0]], dtype=np.float32), "m")


# The embedder's books


def _usage(texts: int, requests: int, tokens: int) -> Usage:
    """Each request is answered, with one text cut; the dollars are compared apart."""
    return Usage(asked=texts, requests=requests, answered=requests, truncated=requests, tokens=tokens)


def _unpriced(embedder: Embedder, role: Role) -> Usage:
    """Tokens of this run are two dollars a million."""
    usage = embedder.usage[role]
    assert usage.usd == pytest.approx(usage.tokens * 2e-6)
    return replace(usage, usd=0.0)


def test_every_call_is_in_the_books(tmp_path: Path) -> None:
    provider = Counting()
    embedder = Embedder(provider, VectorCache(tmp_path), workers=1)
    embedder.embed(["a", "bb", "a", "ccc"], Role.DOCUMENT)
    assert _unpriced(embedder, Role.DOCUMENT) == _usage(3, 2, 21)
    assert embedder.lengths == (5.0, 15.0)
    embedder.embed(["bb", "dddd"], Role.DOCUMENT)  # bb is in the books already
    assert _unpriced(embedder, Role.DOCUMENT) == _usage(4, 3, 28)
    assert embedder.usage[Role.QUERY] == Usage()
    assert embedder.lengths == (5.0, 20.0)


def test_what_an_earlier_run_paid_is_in_the_books_once(tmp_path: Path) -> None:
    """a and bb were one batch of 14 tokens, of which bb had two thirds; a query is asked by two rows."""
    first = Embedder(Counting(), VectorCache(tmp_path), workers=1)
    first.embed(["a", "bb"], Role.DOCUMENT)
    first.embed_timed("qq", Role.QUERY)
    first.close()
    second = Embedder(Counting(), VectorCache(tmp_path), workers=1)
    for _ in range(2):
        second.embed(["bb"], Role.DOCUMENT)
        assert second.embed_timed("qq", Role.QUERY)[1] is None
    books = second.usage[Role.DOCUMENT]
    assert (books.asked, books.cached, books.requests) == (1, 1, 0)
    assert books.tokens == pytest.approx(14 * 2 / 3)
    assert second.usage[Role.QUERY] == Usage(asked=1, cached=1, tokens=7.0)


@pytest.mark.parametrize("in_blocks", [True, False])
def test_an_estimate_stays_one_in_the_next_run(tmp_path: Path, in_blocks: bool) -> None:
    """Eight characters of the prompt go around each text: (8 + 8) / 4 and (16 + 8) / 4 tokens."""
    for cached in (0, 2):
        embedder = Embedder(Counting(counts=False), VectorCache(tmp_path / "vectors"), workers=1)
        if in_blocks:
            embedder.embed_corpus([["x" * 8], ["x" * 16, "x" * 8]], 3, tmp_path / "scratch")
        else:
            embedder.embed(["x" * 8, "x" * 16], Role.DOCUMENT)
        books = embedder.usage[Role.DOCUMENT]
        assert (books.asked, books.cached, books.tokens, books.estimated) == (2, cached, 10.0, True)
        embedder.close()


def test_where_no_server_counts_tokens_are_a_guess() -> None:
    embedder = Embedder(Counting(counts=False), workers=1)
    embedder.embed(["x" * 8, "x" * 16], Role.DOCUMENT)
    assert _unpriced(embedder, Role.DOCUMENT) == replace(_usage(2, 1, 10), estimated=True)


def test_the_estimate_of_a_call_holds_its_prompt_and_the_count_replaces_it() -> None:
    """The prompt adds eight characters to each text: 16 / 4 tokens at two dollars a million."""
    one = 16 / 4 * 2e-6
    for counts, spent in ((True, 14 * 2e-6), (False, 2 * one)):
        budget = Budget(limit=2 * one + 1e-12)
        embedder = Embedder(Counting(counts=counts), budget=budget, workers=1)
        embedder.embed(["x" * 8, "y" * 8], Role.DOCUMENT)
        assert budget.spent == pytest.approx(spent)
    with pytest.raises(BudgetReached):
        Embedder(Counting(), budget=Budget(limit=2 * one - 1e-12), workers=1).embed(["x" * 8, "y" * 8], Role.DOCUMENT)


def test_a_kill_loses_what_is_paid_for_at_once() -> None:
    assert Embedder(Counting(), workers=3).at_once == 3
    assert Embedder(CountingHere(), workers=3).at_once == 0


def test_a_timed_query_is_paid_for_once(tmp_path: Path) -> None:
    hosted = Embedder(Counting(), VectorCache(tmp_path), workers=1)
    for _ in range(2):
        vector, first, _ = hosted.embed_timed("qq", Role.QUERY)
        assert vector == pytest.approx([0.6, 0.8])
    assert hosted.embed_timed("qq", Role.QUERY)[1] == first  # another row has the time of the one call
    assert _unpriced(hosted, Role.QUERY) == _usage(1, 1, 7)
    without = Embedder(Counting(), workers=1)
    _, nanoseconds, _ = without.embed_timed("qq", Role.QUERY)
    assert nanoseconds is not None
    assert nanoseconds > 0
    assert _unpriced(without, Role.QUERY) == _usage(1, 1, 7)
    local = Embedder(CountingHere(), VectorCache(tmp_path / "local"), workers=1)
    local.embed_timed("qq", Role.QUERY)
    assert local.usage[Role.QUERY] == Usage()
    local.embed(["qq"], Role.QUERY)
    assert not list((tmp_path / "local").glob("*/asking.lock"))  # what runs here costs nothing: no claims are made
    assert list(tmp_path.glob("*/asking.lock"))


@pytest.mark.parametrize("cached", [True, False])
def test_a_corpus_in_blocks_is_counted_once_and_its_progress_ends_at_its_end(tmp_path: Path, cached: bool) -> None:
    steps = list[int]()

    @contextmanager
    def shown(label: str, total: int) -> Iterator[Advance]:
        assert (label, total) == ("counting: document vectors", 7)
        yield steps.append

    provider = Counting()
    cache = VectorCache(tmp_path / "cache") if cached else None
    embedder = Embedder(provider, cache, workers=1, progress=shown)
    blocks = [["a", "bb", "a", "ccc"], ["bb", "dddd", "a"]]
    rows = embedder.embed_corpus(blocks, 7, tmp_path / "scratch")
    assert np.asarray(rows) == pytest.approx(np.tile([0.6, 0.8], (7, 1)))
    assert sorted(text for asked in provider.asked for text in asked) == ["a", "bb", "ccc", "dddd"]
    assert _unpriced(embedder, Role.DOCUMENT) == _usage(4, 3, 28)
    assert sum(steps) == 7
    assert embedder.lengths == (5.0, 20.0)


def test_what_workers_asked_for_is_not_taken_for_cached(tmp_path: Path) -> None:
    worker, runner = (Embedder(Counting(), VectorCache(tmp_path), workers=1) for _ in range(2))
    space, steps = worker.space(Role.DOCUMENT), list[int]()
    assert space is not None
    worker.embed_batches([["a", "bb"], ["ccc"]], Role.DOCUMENT, space, steps.append)
    worker.embed_batches([["a", "bb"], ["ccc", "dddd"]], Role.DOCUMENT, space, steps.append)
    assert sum(steps) == 7
    assert worker.usage[Role.DOCUMENT].cached == 3
    assert worker.usage[Role.DOCUMENT].requests == 3
    worker.close()
    runner.note_asked(["a", "bb"])
    runner.embed_corpus([["a", "bb", "ccc"]], 3, tmp_path / "scratch")
    assert (runner.usage[Role.DOCUMENT].asked, runner.usage[Role.DOCUMENT].cached) == (3, 1)


class Filed(Counting):
    """Vectors in files: the row of an id is its number."""

    local = by_id = True

    def rows_of(self, ids: Sequence[str], role: Role) -> npt.NDArray[np.int64]:
        return np.array([int(item) for item in ids], dtype=np.int64)

    def rows(self, numbers: npt.NDArray[np.int64], role: Role) -> Vectors:
        return np.stack((np.cos(numbers), np.sin(numbers)), axis=1).astype(np.float32) * 2


def test_vectors_in_files_are_read_from_there_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    steps = list[int]()

    @contextmanager
    def shown(label: str, total: int) -> Iterator[Advance]:
        assert total == 5
        yield steps.append

    embedder = Embedder(Filed(), progress=shown)
    rows = embedder.embed_corpus([["4", "0"], ["7"], ["2", "9"]], 5, tmp_path)
    numbers = np.array([4, 0, 7, 2, 9])
    assert np.asarray(rows) == pytest.approx(np.stack((np.cos(numbers), np.sin(numbers)), axis=1), abs=1e-6)
    assert steps == [2, 1, 2]
    assert embedder.usage[Role.DOCUMENT] == Usage(asked=5)
    assert embedder.lengths == pytest.approx((2.0, 2.0))
    assert not list(tmp_path.iterdir())


def test_where_there_is_no_room_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Counting()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with refuses(InputError, "0 MB"):
        Embedder(provider, VectorCache(tmp_path), workers=1).embed(["a", "bb"], Role.DOCUMENT)
    worker = Embedder(provider, VectorCache(tmp_path), workers=1)
    space = worker.space(Role.DOCUMENT)
    assert space is not None
    with refuses(InputError, "0 MB"):
        worker.embed_batches([["a"], ["bb"]], Role.DOCUMENT, space, lambda _: None)
    assert provider.asked == []
