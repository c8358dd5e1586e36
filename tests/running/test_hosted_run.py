"""Whole runs of every hosted provider: its real SDK, against the wire-compatible server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.paths import root
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.save import save
from bakeoff.results.summary import summarise
from bakeoff.running.plan import plan
from bakeoff.running.runner import Outcome, Settings, run
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role

from tests.errors import says
from tests.facts import ids
from tests.native_task import native_files, write_lineup
from tests.services import HOSTED, KEYS
from tests.wire import PROXIES, Fault, WireServer

KEY = "sk-secret-0123456789"


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, KEY)
    with WireServer() as server:
        yield server


@pytest.fixture(params=HOSTED)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _lineup(folder: Path, wire: WireServer, provider: str, extra: str = "") -> Lineup:
    path = folder / "lineup.toml"
    path.write_text(
        f'task = "wikipedia"\nrounds = 2\n[[contender]]\nprovider = "{provider}"\n'
        f'model = "{HOSTED[provider].default_model}"\nstore = "faiss"\n'
        f'options = {{ base_url = "{wire.base(provider)}" }}\n{extra}'
    )
    return Lineup.read(path)


def _short_lineup(folder: Path, wire: WireServer, provider: str) -> Lineup:
    """Three documents and as many queries: every query is a request."""
    contender = (
        f'[[contender]]\nprovider = "{provider}"\nmodel = "{HOSTED[provider].default_model}"\nstore = "faiss"\n'
        f'options = {{ base_url = "{wire.base(provider)}" }}\n'
    )
    return Lineup.read(write_lineup(folder, native_files(), contenders=contender))


def _settings(folder: Path, **changes: Any) -> Settings:
    policy = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.01)
    return replace(Settings(cache=folder / "vectors", policy=policy), **changes)


def _ran(outcome: Outcome) -> Outcome:
    assert outcome.not_run == []
    return outcome


def test_the_row_fills_itself_and_costs_what_was_reported(tmp_path: Path, wire: WireServer, provider: str) -> None:
    lineup = _lineup(tmp_path, wire, provider)
    (told,) = plan(lineup, _settings(tmp_path))
    assert wire.requests == []
    summary = summarise(_ran(run(lineup, _settings(tmp_path))))
    assert len(wire.embeddings()) == told.requests
    again = 3 + 2 * 20 - 19 if provider == "ollama" else 0  # what is free is asked to warm up, and in both rounds
    assert told.texts == 45
    assert sum(len(request.texts) for request in wire.embeddings()) == 45 + again
    row = summary.rows[0]
    assert row.latency is not None
    assert row.latency.embed.n == (40 if again else 19)  # a paid model's twentieth query was the cold call
    assert row.latency.cold_embed_ms is not None
    assert row.cost is not None
    card = PROVIDERS.create(provider, model=HOSTED[provider].default_model).card
    assert card.price is not None
    assert row.cost.usd == pytest.approx(row.cost.tokens * card.price.usd_per_million_tokens / 1e6)
    assert row.cost.tokens > 45


def test_the_second_run_asks_nothing_with_or_without_a_key(
    tmp_path: Path, wire: WireServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineup = _lineup(tmp_path, wire, provider)
    first = _ran(run(lineup, _settings(tmp_path)))
    wire.requests.clear()
    second = _ran(run(lineup, _settings(tmp_path)))
    assert len(wire.embeddings()) == (4 + 2 * 20 if provider == "ollama" else 0)  # what is free is timed again
    wire.requests.clear()
    assert second.scores == first.scores
    for name in KEYS:
        monkeypatch.delenv(name)
    third = _ran(run(lineup, _settings(tmp_path, offline=True)))
    assert wire.requests == []
    assert third.scores == first.scores
    row = summarise(third).rows[0]
    assert row.latency is not None
    assert row.latency.kept is not None
    assert row.latency.total.p50 is not None


def test_offline_with_an_empty_cache_says_what_is_missing(tmp_path: Path, wire: WireServer, provider: str) -> None:
    outcome = run(_lineup(tmp_path, wire, provider), _settings(tmp_path, offline=True))
    says(failure_words(outcome.not_run[0].failure), "--offline", "25 texts")
    assert wire.requests == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429, headers={"Retry-After": "0"}),
        Fault(status=500),
        Fault(status=503),
        Fault(status=529),
        Fault("drop"),
        Fault("truncated"),
    ],
    ids=["429", "500", "503", "529", "drop", "truncated"],
)
def test_a_passing_fault_costs_exactly_one_more_request(
    tmp_path: Path, wire: WireServer, provider: str, fault: Fault
) -> None:
    lineup = _short_lineup(tmp_path, wire, provider)
    (told,) = plan(lineup, _settings(tmp_path))
    wire.faults.append(fault)
    outcome = _ran(run(lineup, _settings(tmp_path)))
    assert len(wire.embeddings()) == told.requests + 1
    search = outcome.ran[0].search
    assert search is not None
    assert search.embedding is not None
    assert search.embedding.usage[Role.DOCUMENT].retries == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_lasting_fault_ends_the_row_after_one_request(
    tmp_path: Path, wire: WireServer, provider: str, status: int
) -> None:
    wire.faults.append(Fault(status=status, message=f"no, {KEY} will not do"))
    outcome = run(_lineup(tmp_path, wire, provider), _settings(tmp_path))
    assert len(wire.embeddings()) == 1
    reason = failure_words(outcome.not_run[0].failure)
    assert reason
    assert KEY not in reason


@pytest.mark.parametrize("kind", ["wrong_shape", "too_few", "nan", "zero", "dimension"])
def test_an_unusable_answer_is_refused(tmp_path: Path, wire: WireServer, provider: str, kind: str) -> None:
    wire.faults.append(Fault(kind))  # type: ignore[arg-type]
    outcome = run(_lineup(tmp_path, wire, provider), _settings(tmp_path))
    assert failure_words(outcome.not_run[0].failure)
    assert len(wire.embeddings()) == 1


def test_a_busy_server_is_given_up_after_the_policys_attempts(tmp_path: Path, wire: WireServer, provider: str) -> None:
    wire.faults.extend([Fault(status=503)] * 10)
    outcome = run(_lineup(tmp_path, wire, provider), _settings(tmp_path))
    assert failure_words(outcome.not_run[0].failure)
    assert len(wire.embeddings()) == 4


def test_no_key_reaches_a_result_or_the_cache(tmp_path: Path, wire: WireServer, provider: str) -> None:
    save(run(_lineup(tmp_path, wire, provider), _settings(tmp_path)), tmp_path / "results")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 5
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_the_budget_stops_the_run_and_it_can_be_taken_up_again(tmp_path: Path, wire: WireServer) -> None:
    lineup = _lineup(tmp_path, wire, "openai")
    stopped = run(lineup, _settings(tmp_path, max_cost=0.00001))
    says(failure_words(stopped.not_run[0].failure))
    paid = sum(len(request.texts) for request in wire.embeddings())
    _ran(run(lineup, _settings(tmp_path, max_cost=1.0)))
    assert sum(len(request.texts) for request in wire.embeddings()) == 45
    assert paid < 45


def test_variants_come_from_one_paid_pass(tmp_path: Path, wire: WireServer) -> None:
    extra = 'dimensions = [1024, 512, 256]\nprecision = ["float32", "int8", "binary"]\n'
    outcome = _ran(run(_lineup(tmp_path, wire, "voyage", extra), _settings(tmp_path)))
    assert len(outcome.contenders) == 9
    assert sum(len(request.texts) for request in wire.embeddings()) == 45
    rows = {row.label: row for row in summarise(outcome).rows}
    assert rows["voyage-4@256-binary+faiss"].vector_bytes == 32
    assert rows["voyage-4@512-int8+faiss"].dimensions == 512


def test_items_that_ask_are_paid_for_once_as_documents(tmp_path: Path, wire: WireServer) -> None:
    path = tmp_path / "items.toml"
    corpus = root() / "corpora" / "wikipedia" / "articles.json"
    path.write_text(
        f'rounds = 2\ntask = {{ kind = "reference", corpus = "{corpus}", reference = {{ provider = "fake" }} }}\n'
        f'[[contender]]\nprovider = "openai"\nstore = "faiss"\noptions = {{ base_url = "{wire.base("openai")}" }}\n'
    )
    lineup = Lineup.read(path)
    reference, told = plan(lineup, _settings(tmp_path, cache=None))
    assert (reference.rows, told.texts) == (("fake",), 54)
    summary = summarise(_ran(run(lineup, _settings(tmp_path, cache=None))))
    assert sum(len(request.texts) for request in wire.embeddings()) == 54
    latency = summary.rows[0].latency
    assert latency is not None
    assert (latency.embed.n, latency.search.n, latency.total.n) == (0, 108, 108)
    assert "untimed_embedding" not in ids(latency.doubts)
