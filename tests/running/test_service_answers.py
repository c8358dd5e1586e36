"""What a service sends beside its data: the model's name is noted, another name or an error is a warning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.facts import fact
from bakeoff.embedding.preflight import service_warnings
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.schema import Row
from bakeoff.results.summary import summarise
from bakeoff.running.runner import Settings, run
from bakeoff_providers.openai import OpenAI

from tests.native_task import native_files, write_lineup
from tests.services import KEYS
from tests.wire import PROXIES, WireServer

KEY = "sk-none-of-yours-0123"
SENDS_NAMES = {"openai": "text-embedding-3-small", "voyage": "voyage-4", "ollama": "nomic-embed-text"}


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, KEY)
    with WireServer() as server:
        yield server


def _row(folder: Path, wire: WireServer, provider: str = "openai", cache: Path | None = None) -> Row:
    address = f'options = {{ base_url = "{wire.base(provider.removeprefix("rerank "))}" }}'
    contender = f'provider = "{provider}"\nstore = "faiss"\n{address}\n'
    if provider.startswith("rerank "):
        contender = f'ranker = "bm25"\nrerank = {{ provider = "{provider.removeprefix("rerank ")}", {address} }}\n'
    lineup = write_lineup(folder, native_files(), task='name = "own"', contenders=f"[[contender]]\n{contender}")
    summary = summarise(run(Lineup.read(lineup), Settings(cache=cache)), "")
    assert [row.not_run for row in summary.rows if row.not_run] == []
    return summary.ran[-1]


def _remarks(row: Row) -> list[Any]:
    return [warning for warning in row.warnings if warning.id in ("other_model", "sent_errors")]


@pytest.mark.parametrize("provider", SENDS_NAMES)
def test_the_models_name_in_an_answer_is_noted(provider: str, tmp_path: Path, wire: WireServer) -> None:
    row = _row(tmp_path, wire, provider)
    assert row.answered_as == [SENDS_NAMES[provider]]
    assert _remarks(row) == []


@pytest.mark.parametrize("provider", [*SENDS_NAMES, "gemini", "cohere"])
def test_another_name_and_an_error_are_warnings(provider: str, tmp_path: Path, wire: WireServer) -> None:
    wire.beside = {"model": "a-much-cheaper-model", "error": {"message": f"out of order, {KEY}"}}
    row = _row(tmp_path, wire, provider)
    assert _remarks(row) == [
        fact("other_model", asked=row.model, answered=["a-much-cheaper-model"]),
        fact("sent_errors"),
    ]
    assert row.answered_as == ["a-much-cheaper-model"]


def test_a_rerankers_answers_are_read_in_the_same_way(tmp_path: Path, wire: WireServer) -> None:
    row = _row(tmp_path, wire, "rerank voyage")
    assert row.answered_as == ["rerank-2.5"]
    wire.beside = {"model": "rerank-2.5-lite"}
    row = _row(tmp_path / "other", wire, "rerank voyage")
    assert _remarks(row) == [fact("other_model", asked="rerank-2.5", answered=["rerank-2.5-lite"])]


def test_a_key_in_place_of_a_name_reaches_no_result(tmp_path: Path, wire: WireServer) -> None:
    wire.beside = {"model": f"model of {KEY}"}
    row = _row(tmp_path, wire)
    assert KEY not in str(row)
    assert _remarks(row)


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("text-embedding-3-small", "text-embedding-3-small", True),
        ("text-embedding-3-small", "text-embedding-3-small-2024-01-25", True),
        ("gemini-embedding", "models/gemini-embedding-001", True),
        ("BAAI/bge-m3", "bge-m3", True),
        ("nomic-embed-text", "nomic-embed-text:latest", True),
        ("text-embedding-3-small", "text-embedding-3-large", False),
        ("voyage-4", "voyage-4-lite", False),
        ("voyage-3", "voyage-3.5", False),
        ("nomic-embed-text", "nomic-embed-text:v1.5", False),
        ("text-embedding-3-small", "gpt-3.5-turbo", False),
    ],
)
def test_a_tag_or_a_date_is_no_other_model(asked: str, answered: str, same: bool) -> None:
    provider = OpenAI(model=asked, base_url="http://127.0.0.1:1/v1")
    provider.answered_as.add(answered)
    assert service_warnings(provider) == ([] if same else [fact("other_model", asked=asked, answered=[answered])])


def test_what_was_paid_and_what_it_costs_are_apart(tmp_path: Path, wire: WireServer) -> None:
    """$0.02 a million tokens, of which the server counts one for every four characters begun."""
    first = _row(tmp_path, wire, cache=tmp_path / "cache")
    tokens = sum(-(-len(text) // 4) for request in wire.embeddings() for text in request.texts)
    assert first.cost is not None
    assert first.cost.usd == pytest.approx(tokens * 0.02 / 1e6)
    assert first.cost.usd_paid == pytest.approx(tokens * 0.02 / 1e6)
    again = _row(tmp_path, wire, cache=tmp_path / "cache")
    assert again.cost is not None
    assert again.cost.usd == pytest.approx(first.cost.usd)
    assert again.cost.usd_paid == 0
