"""An endpoint under load: the real SDK against the wire server, whose limits are known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bakeoff.calls.budget import Budget
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.facts import fact
from bakeoff.core.figures import Percentiles
from bakeoff.extensions.storelab.provider_load import (
    ProviderLevel,
    Setting,
    draw_texts,
    estimate,
    knee,
    load_provider,
    provider_facts,
    settings_of,
)
from bakeoff.extensions.storelab.provider_table import provider_sheet
from bakeoff.extensions.storelab.tables import markdown
from bakeoff_providers import PROVIDERS
from bakeoff_providers.errors import InputError
from bakeoff_providers.openai import OpenAI

from tests.errors import refuses, says
from tests.facts import arguments, sentences
from tests.wire import PROXIES, Fault, WireServer

QUICK = RetryPolicy(attempts=60, first_wait=0.001, longest_wait=0.02)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with WireServer() as server:
        yield server


def _openai(wire: WireServer, **options: float) -> OpenAI:
    return OpenAI(model="mine", base_url=wire.base("openai"), **options)  # type: ignore[arg-type]


def test_texts_are_as_long_as_asked_for_and_never_the_same() -> None:
    texts = [text for seed in range(3) for text in draw_texts(4, 7, seed)]
    assert {len(text.split()) for text in texts} == {7}
    assert len(set(texts)) == 12
    assert len(draw_texts(1, 1, 5)[0].split()) == 1


def test_every_setting_sends_its_requests_and_what_a_corpus_takes_follows(wire: WireServer) -> None:
    wire.seconds_each = 0.01
    settings = settings_of([4, 1], [2, 1], [30])
    assert settings == [Setting(1, 1, 30), Setting(1, 2, 30), Setting(4, 1, 30), Setting(4, 2, 30)]
    load = load_provider(_openai(wire, price=2.0), settings, requests=6, documents=1000)
    sent = [len(request.texts) for request in wire.embeddings()]
    assert sent == [1, *[1] * 12, *[4] * 12]  # one that is not counted, then each setting's six
    assert len({text for request in wire.embeddings() for text in request.texts}) == 1 + 12 + 48
    assert wire.peak == 2
    for level in load.levels:
        assert (level.requests, level.texts, level.too_many) == (6, 6 * level.setting.batch, 0)
        assert level.seconds >= 6 * 0.01 / level.setting.clients
        assert level.texts_per_second == pytest.approx(level.texts / level.seconds)
        assert level.latency.p50 is not None
        assert level.latency.p50 >= 10
    (projection,) = load.projections
    best = max(load.levels, key=lambda level: level.texts_per_second)
    tokens = sum(-(-len(text) // 4) for request in wire.embeddings()[1:] for text in request.texts)
    assert sum(level.tokens for level in load.levels) == tokens  # as the server counted them
    assert projection.hours == pytest.approx(1000 / best.texts_per_second / 3600)
    assert projection.usd == pytest.approx(projection.tokens * 2 / 1e6)
    assert load.spent_usd == pytest.approx((tokens + -(-len(wire.embeddings()[0].texts[0]) // 4)) * 2 / 1e6)
    assert "| 30 | 4 | 2 | 6 |" in markdown(provider_sheet(load))


def test_a_rate_limit_shows_as_429s_that_are_counted_and_sent_again(wire: WireServer) -> None:
    wire.seconds_each, wire.most_at_once = 0.01, 1
    load = load_provider(_openai(wire), settings_of([1], [1, 4], [5]), requests=12, policy=QUICK)
    alone, crowded = load.levels
    assert alone.too_many == 0
    assert crowded.too_many > 0
    assert crowded.too_many == crowded.retries
    assert (crowded.requests, crowded.stopped, crowded.errors) == (12, None, {})
    assert len(wire.embeddings()) == 1 + 12 + 12 + crowded.too_many
    (limited,) = arguments(load.facts, "storelab.rate_limited")
    assert (limited["requests"], limited["clients"]) == (crowded.too_many, 4)
    assert str(crowded.too_many) in sentences(load.facts)[-1]
    assert load.spent_usd is None
    assert load.projections[0].usd is None


def test_what_fails_for_good_ends_its_setting_only(wire: WireServer) -> None:
    wire.faults.extend([None, None, Fault(status=400, message="no"), *[None] * 5])
    load = load_provider(_openai(wire), settings_of([1, 2], [1], [5]), requests=3)
    stopped, whole = load.levels
    assert (stopped.requests, stopped.errors) == (1, {"400": 1})
    assert "HTTP 400" in (stopped.stopped or "")
    assert (whole.requests, whole.stopped) == (3, None)
    assert [projection.setting.batch for projection in load.projections] == [2]


def test_the_cost_is_known_before_and_the_budget_holds(wire: WireServer) -> None:
    provider = _openai(wire, price=1000.0)
    settings = settings_of([2], [1], [10, 20])
    expected = estimate(provider, settings, 4)
    characters = sum(len(text) for words in (10, 20) for text in draw_texts(2, words, 0))
    assert expected.requests == 8
    assert expected.tokens == pytest.approx(4 * characters / 4)
    assert expected.usd == pytest.approx(expected.tokens * 1000 / 1e6)
    assert wire.embeddings() == []
    load = load_provider(provider, settings, requests=4, budget=Budget(0.1))
    sent = sum(-(-len(text) // 4) for request in wire.embeddings() for text in request.texts)
    assert sent * 1000 / 1e6 <= 0.1
    assert len(load.levels) == 1
    assert load.facts[-1] == fact("storelab.settings_not_tried", settings=1)
    says(sentences(load.facts)[-1])


def _level(batch: int, clients: int, texts_per_second: float, p50: float, p95: float | None = None) -> ProviderLevel:
    return ProviderLevel(
        setting=Setting(batch, clients, 20), requests=20, texts=20 * batch, tokens=1.0, seconds=1.0,
        texts_per_second=texts_per_second, tokens_per_second=1.0, latency=Percentiles(20, p50, p95),
    )  # fmt: skip


def test_the_knee_by_hand() -> None:
    """In the fastest batches (16): 100/20, 190/21, 240/40 texts per second and ms; single texts do not count."""
    levels = [_level(1, 1, 50, 1), _level(16, 1, 100, 20), _level(16, 2, 190, 21), _level(16, 4, 240, 40)]
    best = knee(levels, 20)
    assert best is not None
    assert best.setting == Setting(16, 2, 20)
    assert knee(levels, 300) is None
    (found,) = provider_facts(levels, [best], 4)
    assert found == fact("storelab.provider_knee", batch=16, clients=2, words=20, texts_per_second=190)
    says(sentences([found]))
    with_p95 = [_level(16, 1, 100, 20, 20), _level(16, 2, 190, 21, 80)]
    best = knee(with_p95, 20)
    assert best is not None
    assert best.setting.clients == 1


def test_what_embeds_no_text_is_refused() -> None:
    with refuses(InputError, place="--provider"):
        load_provider(PROVIDERS.create("tfidf"), settings_of([1], [1], [5]))
