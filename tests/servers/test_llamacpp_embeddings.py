"""The openai adapter against llama.cpp's server, with MiniLM's weights as GGUF: a server that nobody here wrote."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import bakeoff
import numpy as np
import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.paths import default_lineup
from bakeoff.extensions.storelab.provider_load import draw_texts, load_provider, settings_of
from bakeoff.report.words import failure_words
from bakeoff.running.runner import NotRun, Settings
from bakeoff.systems.dense import Dense
from bakeoff_providers.base import EmbeddingBatch, Role, check_batch
from bakeoff_providers.errors import CallFailed, Unavailable
from bakeoff_providers.minilm import MiniLM
from bakeoff_providers.openai import OpenAI

from tests.servers import minilm_gguf
from tests.servers.llama_server import LlamaServer

pytestmark = pytest.mark.servers

TEXTS = [
    "river",
    "The cat sat on the mat.",
    "Ein Fluß trat über die Ufer.",
    "naïve façade, 3.5 % of €20 — 'quoted' (twice)",
    "old mining towns in Utah " * 20,
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return minilm_gguf.write(tmp_path_factory.mktemp("gguf") / "all-MiniLM-L6-v2.gguf")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[LlamaServer]:
    running = LlamaServer(model, "embedding")
    yield running
    running.kill()


def adapter(server: LlamaServer) -> OpenAI:
    return OpenAI(model="all-MiniLM-L6-v2", base_url=server.url)


def lineup(server: LlamaServer, **options: int) -> bakeoff.Lineup:
    """The built-in task, by the server and by our own minilm."""
    contenders = (
        Dense(
            "served",
            provider="openai",
            model="all-MiniLM-L6-v2",
            store="faiss",
            options={"base_url": server.url, **options},
        ),
        Dense("minilm", provider="minilm", store="faiss"),
    )
    return dataclasses.replace(bakeoff.Lineup.read(default_lineup()), contenders=contenders, rounds=1)


def test_vectors_are_those_of_minilm(server: LlamaServer) -> None:
    provider = adapter(server)
    provider.ready()
    batch = check_batch(provider.embed(TEXTS, Role.DOCUMENT), TEXTS, provider.card)
    own = MiniLM().embed(TEXTS, Role.DOCUMENT)
    cosines = (batch.vectors * own.vectors).sum(axis=1) / np.linalg.norm(batch.vectors, axis=1)
    assert cosines.min() >= 0.999
    assert batch.tokens == own.tokens


def test_a_whole_run_in_small_batches_ranks_as_minilm_does(server: LlamaServer, tmp_path: Path) -> None:
    outcome = bakeoff.run(lineup(server, batch_items=3), Settings(cache=tmp_path / "cache"))
    rows = {row.contender.label: row for row in outcome.contenders}
    served, own = rows["served"], rows["minilm"]
    assert not isinstance(served, NotRun), failure_words(served.failure)
    assert not isinstance(own, NotRun), failure_words(own.failure)
    for measure, values in own.scores.items():
        np.testing.assert_allclose(served.scores[measure], values, atol=1e-3)
    result = bakeoff.load(bakeoff.save(outcome, tmp_path / "results"))
    row = next(row for row in result.summary.rows if row.label == "served")
    assert row.latency is not None
    assert row.latency.embed.p50


def test_a_text_that_is_too_long_is_named_by_the_server(server: LlamaServer) -> None:
    with pytest.raises(CallFailed, match="too large to process") as caught:
        adapter(server).embed(["river " * 2000], Role.DOCUMENT)
    assert caught.value.status == 500  # which would be tried again if it were a failure of the server's
    assert not caught.value.retryable


def test_a_text_that_is_too_long_costs_one_request_and_the_row_says_what_to_do(
    server: LlamaServer, tmp_path: Path
) -> None:
    documents = {"short": "river", "long": "river " * 2000}
    task = bakeoff.Task.from_dicts(corpus=documents, queries={"q": "river"}, qrels={"q": {"short": 1}})
    waits: list[float] = []
    policy = RetryPolicy(attempts=5, sleep=waits.append)
    contenders = lineup(server).contenders
    long = dataclasses.replace(lineup(server), task=task, contenders=contenders)
    outcome = bakeoff.run(long, Settings(cache=tmp_path / "cache", policy=policy))
    served = next(row for row in outcome.contenders if row.contender.label == "served")
    assert isinstance(served, NotRun)
    assert "too large to process" in failure_words(served.failure)
    assert "chunking" in failure_words(served.failure)
    assert "max_chars" in failure_words(served.failure)
    assert waits == []  # nothing was tried again
    assert not isinstance(next(row for row in outcome.contenders if row.contender.label == "minilm"), NotRun)


def test_the_server_under_load(server: LlamaServer) -> None:
    settings = settings_of([1, 8], [1, 2], [10])
    load = load_provider(adapter(server), settings, requests=6, documents=10_000)
    assert [(level.requests, level.errors, level.stopped) for level in load.levels] == [(6, {}, None)] * 4
    assert len(load.knees) == len(load.projections) == 1
    tokens = load.levels[0].tokens / load.levels[0].texts
    assert tokens == pytest.approx(np.mean([MiniLM().count_tokens(draw_texts(1, 10, 1000 + n)[0]) for n in range(6)]))
    assert load.projections[0].usd is None


def test_a_wrong_address_on_the_server_says_what_to_check(server: LlamaServer) -> None:
    with pytest.raises(CallFailed) as caught:
        OpenAI(model="m", base_url=server.url.replace("/v1", "/v2")).embed(["river"], Role.QUERY)
    assert caught.value.status == 404
    assert "base_url" in str(caught.value)


def test_a_server_killed_in_the_middle_of_a_call_is_a_failure_that_may_pass(model: Path) -> None:
    server = LlamaServer(model, "embedding")
    provider = adapter(server)
    provider.embed(["river"], Role.QUERY)
    killer = threading.Timer(0.3, server.kill)
    killer.start()
    with pytest.raises(CallFailed) as caught:
        provider.embed(["old mining towns in Utah " * 60] * 256, Role.DOCUMENT)
    killer.join()
    assert caught.value.retryable
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
        adapter(server).ready()


def test_a_server_killed_in_the_middle_of_a_run_costs_its_row_and_what_it_answered_is_kept(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when two of nine batches of documents were answered, so that it is in the middle on any machine."""
    first, embed = LlamaServer(model, "embedding"), OpenAI.embed
    asked: list[str] = []
    answered: list[str] = []

    def counted(provider: OpenAI, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        if len(answered) >= 6:
            first.kill()
        asked.extend(texts)
        batch = embed(provider, texts, role)
        answered.extend(texts)
        return batch

    monkeypatch.setattr(OpenAI, "embed", counted)
    settings = Settings(cache=tmp_path / "cache", policy=RetryPolicy(attempts=2, sleep=lambda _seconds: None))
    broken = {row.contender.label: row for row in bakeoff.run(lineup(first, batch_items=3), settings).contenders}
    served, own = broken["served"], broken["minilm"]
    assert isinstance(served, NotRun)
    assert "connection failed" in failure_words(served.failure)
    assert not isinstance(own, NotRun), failure_words(own.failure)
    assert len(own.rankings) == 20
    kept = set(answered)
    asked.clear()
    again = LlamaServer(model, "embedding", first.port)
    outcome = bakeoff.run(lineup(again, batch_items=3), settings)
    again.kill()
    assert not outcome.not_run
    documents = {document.whole() for document in outcome.task.documents}
    assert 6 <= len(kept) < len(documents)
    assert set(asked) & documents == documents - kept
    plain = next(row for row in outcome.ran if row.contender.label == "minilm")
    for measure, values in own.scores.items():
        np.testing.assert_array_equal(plain.scores[measure], values)


def test_a_dead_server_costs_its_own_row_and_what_is_cached_needs_none(model: Path, tmp_path: Path) -> None:
    server = LlamaServer(model, "embedding")
    alive = bakeoff.run(lineup(server), Settings(cache=tmp_path / "cache"))
    server.kill()
    away = bakeoff.run(lineup(server), Settings(cache=tmp_path / "cache", offline=True))
    for before, after in zip(alive.contenders, away.contenders, strict=True):
        assert not isinstance(before, NotRun), failure_words(before.failure)
        assert not isinstance(after, NotRun), failure_words(after.failure)
        for measure, values in before.scores.items():
            np.testing.assert_array_equal(after.scores[measure], values)
    outcome = bakeoff.run(lineup(server), Settings(cache=tmp_path / "new"))
    dead = {row.contender.label: row for row in outcome.contenders}
    served = dead["served"]
    assert isinstance(served, NotRun)
    assert f":{server.port}" in failure_words(served.failure)
    assert not isinstance(dead["minilm"], NotRun)
