from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from bakeoff.calls.budget import Budget, BudgetReached, estimate_tokens
from bakeoff.calls.retry import RetryPolicy
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder, batches
from bakeoff.embedding.unit import unit
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Price, Provider, Role
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, Unavailable
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

PRICE = Price(usd_per_million_tokens=1.0, seen="2026-11", source="test")


class Scripted(Provider):
    """A provider whose next answers are written down: what it is asked, and how it fails, is known."""

    name = "scripted"
    default_model = "scripted"

    def __init__(self, *failures: Exception, **card: Any) -> None:
        defaults: dict[str, Any] = {"name": "scripted", "dimensions": 3, "batch_items": 2, "price": PRICE}
        self.card = ModelCard(**defaults | card)
        self.failures = list(failures)
        self.asked: list[tuple[str, ...]] = []
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        with self._lock:
            self.asked.append(tuple(texts))
            if self.failures:
                raise self.failures.pop(0)
        vectors = np.array([[len(text), 1.0, 2.0] for text in texts], dtype=np.float32)
        return EmbeddingBatch(vectors, tokens=10 * len(texts))


class Free(Scripted):
    local = True


def _embedder(provider: Provider, cache: Path | None = None, **options: Any) -> tuple[Embedder, list[float]]:
    slept: list[float] = []
    policy = RetryPolicy(attempts=3, first_wait=0.01, longest_wait=5.0, sleep=slept.append)
    return Embedder(provider, VectorCache(cache) if cache else None, policy, workers=1, **options), slept


def test_vectors_come_back_in_order_with_length_one_and_duplicates_asked_once() -> None:
    provider = Scripted()
    embedder, _ = _embedder(provider)
    vectors = embedder.embed(["aa", "b", "aa", "cccc"], Role.DOCUMENT)
    expected = np.array([[2, 1, 2], [1, 1, 2], [2, 1, 2], [4, 1, 2]], dtype=np.float64)
    expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    assert provider.asked == [("aa", "b"), ("cccc",)]


def test_the_second_time_nothing_is_asked_and_the_first_price_is_remembered(tmp_path: Path) -> None:
    first, _ = _embedder(Scripted(), tmp_path)
    vectors = first.embed(["aa", "b", "cc"], Role.DOCUMENT)
    first.close()
    provider = Scripted()
    second, _ = _embedder(provider, tmp_path)
    np.testing.assert_array_equal(second.embed(["aa", "b", "cc"], Role.DOCUMENT), vectors)
    assert provider.asked == []
    usage = second.usage[Role.DOCUMENT]
    assert (usage.cached, usage.requests) == (3, 0)
    assert usage.tokens == pytest.approx(30)
    assert usage.usd == 0.0  # it was paid for by the first
    assert first.usage[Role.DOCUMENT].usd == pytest.approx(30e-6)


def test_what_another_run_has_paid_for_meanwhile_is_not_paid_for_again(tmp_path: Path) -> None:
    """The first vector of the first shard as much as any other."""
    (first, _), (second, _) = _embedder(Scripted(), tmp_path), _embedder(Scripted(), tmp_path)
    assert first.missing(["a", "b", "c"], Role.DOCUMENT) == ["a", "b", "c"]
    second.embed(["a", "b"], Role.DOCUMENT)
    first.embed(["a", "b", "c"], Role.DOCUMENT)
    assert isinstance(first.provider, Scripted)
    assert first.provider.asked == [("c",)]


def test_a_query_is_not_the_document_of_the_same_text(tmp_path: Path) -> None:
    provider = Scripted()
    embedder, _ = _embedder(provider, tmp_path)
    embedder.embed(["a"], Role.DOCUMENT)
    embedder.embed(["a"], Role.QUERY)
    assert provider.asked == [("a",), ("a",)]


def test_passing_failures_are_retried_and_counted() -> None:
    provider = Scripted(CallFailed("busy", status=503, retryable=True), CallFailed("cut", retryable=True))
    embedder, slept = _embedder(provider)
    embedder.embed(["a"], Role.DOCUMENT)
    assert len(provider.asked) == 3
    assert embedder.usage[Role.DOCUMENT].retries == 2
    assert embedder.usage[Role.DOCUMENT].requests == 3
    assert len(slept) == 2


def test_the_server_is_given_the_time_it_asks_for() -> None:
    provider = Scripted(CallFailed("slow down", status=429, retryable=True, retry_after=3.0))
    embedder, slept = _embedder(provider)
    embedder.embed(["a"], Role.DOCUMENT)
    assert slept[0] >= 3.0


@pytest.mark.parametrize(
    ("failure", "requests"),
    [
        (CallFailed("bad key", status=401), 1),
        (CallFailed("come back tomorrow", status=429, retryable=True, retry_after=86_400), 1),
        (EmbeddingFailed("one vector too few"), 1),
        (CallFailed("busy", status=503, retryable=True), 3),
    ],
)
def test_what_will_not_pass_is_not_tried_more_often_than_the_policy_says(failure: Exception, requests: int) -> None:
    provider = Scripted(*[failure] * 5)
    embedder, _ = _embedder(provider)
    with pytest.raises(type(failure)):
        embedder.embed(["a"], Role.DOCUMENT)
    assert len(provider.asked) == requests


def test_what_arrived_before_a_failure_is_in_the_cache(tmp_path: Path) -> None:
    provider = Scripted()
    embedder, _ = _embedder(provider, tmp_path)
    embedder.embed(["a", "b"], Role.DOCUMENT)
    provider.failures = [CallFailed("bad key", status=401)]
    with pytest.raises(CallFailed):
        embedder.embed(["a", "b", "c"], Role.DOCUMENT)
    again, _ = _embedder(Scripted(), tmp_path)
    assert again.missing(["a", "b", "c"], Role.DOCUMENT) == ["c"]


def test_the_budget_is_never_passed(tmp_path: Path) -> None:
    provider = Scripted()
    text = "x" * 40  # 10 tokens by estimate, 10 as reported: 1e-5 dollars
    texts = [text + str(number) for number in range(6)]
    embedder, _ = _embedder(provider, tmp_path, budget=Budget(limit=4.5e-5))
    with refuses(BudgetReached, "$0.00"):
        embedder.embed(texts, Role.DOCUMENT)
    assert len(provider.asked) == 2  # two batches of two are 4e-5; the third would make 6e-5
    assert embedder.budget is not None
    assert embedder.budget.spent == pytest.approx(4e-5)
    again, _ = _embedder(Scripted(), tmp_path)
    assert again.missing(texts, Role.DOCUMENT) == texts[4:]


def test_offline_takes_from_the_cache_or_says_what_is_missing(tmp_path: Path) -> None:
    first, _ = _embedder(Scripted(), tmp_path)
    first.embed(["a"], Role.DOCUMENT)
    offline, _ = _embedder(Scripted(), tmp_path, offline=True)
    assert offline.embed(["a"], Role.DOCUMENT).shape == (1, 3)
    with refuses(Unavailable, "1"):
        offline.embed(["a", "b"], Role.DOCUMENT)


def test_hosted_queries_are_timed_once_and_local_ones_every_time(tmp_path: Path) -> None:
    hosted, local = Scripted(), Free()
    for provider, calls in ((hosted, 1), (local, 3)):
        embedder, _ = _embedder(provider, tmp_path / provider.__class__.__name__)
        times = [embedder.embed_timed("q", Role.QUERY)[1] for _ in range(3)]
        assert len(provider.asked) == calls
        assert None not in times
        assert calls > 1 or len(set(times)) == 1  # the time of the one call


def test_batches_of_a_hosted_provider_are_under_way_together() -> None:
    class Meeting(Scripted):
        both = threading.Barrier(2, timeout=5)

        def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
            self.both.wait()  # each call ends when the other one has begun
            return super().embed(texts, role)

    provider = Meeting(batch_items=1)
    Embedder(provider, workers=2).embed(["a", "b"], Role.DOCUMENT)
    assert sorted(provider.asked) == [("a",), ("b",)]


def test_batches_of_a_local_provider_follow_each_other_in_the_thread_that_asks() -> None:
    class Here(Free):
        threads: ClassVar[list[int]] = []

        def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
            self.threads.append(threading.get_ident())
            return super().embed(texts, role)

    provider = Here(batch_items=1)
    Embedder(provider, workers=2).embed(["a", "b", "c"], Role.DOCUMENT)
    assert provider.asked == [("a",), ("b",), ("c",)]
    assert provider.threads == [threading.get_ident()] * 3


def test_waits_are_not_timed_in() -> None:
    import time

    provider = Scripted(CallFailed("busy", status=503, retryable=True))
    policy = RetryPolicy(attempts=2, first_wait=0.2, sleep=lambda _seconds: time.sleep(0.2))
    _, nanoseconds, _ = Embedder(provider, None, policy).embed_timed("q", Role.QUERY)
    assert nanoseconds is not None
    assert nanoseconds < 0.2e9  # the call itself does nothing; only the wait could take this long


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (np.ones((1, 3)), "1"),
        (np.ones((2, 4)), "4 dimensions, expected 3"),
        (np.array([[1, 1, 1], [1, np.nan, 1]]), "2"),
        (np.array([[0, 0, 0], [1, 1, 1]]), "1"),
    ],
)
def test_every_answer_is_checked(vectors: np.ndarray[Any, Any], said: str) -> None:
    class Wrong(Scripted):
        def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
            return EmbeddingBatch(vectors.astype(np.float32))

    embedder, _ = _embedder(Wrong())
    with refuses(EmbeddingFailed, said):
        embedder.embed(["a", "b"], Role.DOCUMENT)


@given(st.lists(st.text(max_size=50), max_size=40), st.integers(1, 7), st.integers(1, 40))
def test_batches_keep_order_and_limits(texts: list[str], items: int, tokens: int) -> None:
    made = list(batches(texts, ModelCard(name="m", batch_items=items, batch_tokens=tokens)))
    assert [text for batch in made for text in batch] == texts
    assert all(1 <= len(batch) <= items for batch in made)
    assert all(len(batch) == 1 or estimate_tokens(batch) <= tokens for batch in made)


def test_unit_refuses_a_zero_vector() -> None:
    with refuses(EmbeddingFailed):
        unit(np.zeros((1, 3), dtype=np.float32), "m")
