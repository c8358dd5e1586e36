"""The built-in line-ups that no other test runs: their rows run here, and say what they are there to say."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.paths import default_lineup, lineup_file
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.tasks.kinds import load_kind

from tests.cli.test_wrong_arguments import bakeoff
from tests.providers.real_weights import require
from tests.wire import PROXIES, WireServer


def test_the_same_vectors_in_several_stores() -> None:
    """All rows share minilm's vectors, and 25 documents are few: what a store returns is close to exact search.

    The stores that start quickest; the conformance suite has all of them.
    """
    require("minilm")
    quick = ["faiss", "sqlite_vec", "usearch", "hnswlib"]
    outcome = run(replace(Lineup.read(lineup_file(Path("stores"))).narrow((), quick), rounds=1))
    assert outcome.not_run == []
    exact, *others = outcome.ran
    assert exact.contender.label == "minilm+faiss"
    assert {row.contender.identity.store for row in others} == set(quick)
    for row in others:
        mean = np.mean(outcome.scores[row.contender.label]["ndcg@10"])
        assert mean == pytest.approx(np.mean(outcome.scores["minilm+faiss"]["ndcg@10"]), abs=0.03), row.contender.label


def test_the_served_models_of_the_default_line_up_run_once_their_servers_and_keys_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every model in both stores, through the real SDKs, with nothing but the environment set."""
    for name in (*PROXIES, "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with WireServer() as wire:
        for variable, provider in {
            "OLLAMA_HOST": "ollama",
            "OPENAI_BASE_URL": "openai",
            "GEMINI_BASE_URL": "gemini",
            "VOYAGE_BASE_URL": "voyage",
        }.items():
            monkeypatch.setenv(variable, wire.base(provider))
        for key in ("OPENAI_API_KEY", "GEMINI_API_KEY", "VOYAGE_API_KEY"):
            monkeypatch.setenv(key, "test-key-0123456789")
        lineup = Lineup.read(default_lineup()).narrow(["ollama", "openai", "gemini", "voyage"])
        outcome = run(replace(lineup, rounds=1), Settings(cache=tmp_path))
        asked = {request.model.partition(":")[0] for request in wire.embeddings()}
    models = ["nomic-embed-text", "mxbai-embed-large", "text-embedding-3-small", "gemini-embedding-001", "voyage-4"]
    assert outcome.not_run == []
    rows = [row.contender.label for row in outcome.ran]
    assert rows == [f"{model}+{store}" for model in models for store in ("faiss", "chroma")]
    assert asked == set(models)


def test_questions_in_other_languages_have_a_table_by_language(tmp_path: Path) -> None:
    code, out, err = bakeoff(tmp_path, "run", "multilingual", "--contender", "bm25", "--rounds", "1", "--no-charts")
    assert code == 0, err
    assert out
    (result,) = (tmp_path / "results").iterdir()
    page = (result / "evaluation_report.html").read_text(encoding="utf-8")
    assert all(f'<option value="{language}">' in page for language in ("German", "Spanish"))
    assert json.loads((result / "metrics_summary.json").read_text(encoding="utf-8"))["task"]["about"] in page


def test_a_perfect_ranking_can_meet_every_target_of_the_built_in_task() -> None:
    """With R relevant articles, the best five hold min(R, 5): hence P@5, recall@5 and F1@5, by hand."""
    folder = default_lineup().parent / "queries" / "wikipedia"
    grades = json.loads((folder / "ground_truth.json").read_text(encoding="utf-8"))["grades"]
    relevant = np.array([sum(grade >= 2 for grade in row.values()) for row in grades.values()])
    assert len(relevant) == 20
    assert relevant.min() >= 4
    assert relevant.max() <= 10
    found = np.minimum(relevant, 5)
    precision, recall = found / 5, found / relevant
    assert precision.mean() >= 0.90
    assert (2 * precision * recall / (precision + recall)).mean() >= 0.75
    targets = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))["targets"]
    assert targets == {"p@5": 0.70, "recall@10": 0.80, "f1@5": 0.65, "mrr": 0.70}


@pytest.mark.parametrize("name", ["wikipedia", "wikipedia-paraphrased", "wikipedia-multilingual", "help-centre"])
def test_a_task_that_a_model_graded_says_so(name: str) -> None:
    task = load_kind(name, Path()).task()
    assert task.graded_by_model == sum(map(len, task.judgments.values()))
