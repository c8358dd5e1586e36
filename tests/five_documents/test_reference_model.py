"""The evaluation against Ada-002: its sample, its neighbours, its measures and its files, from three arrays."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.five_documents.data import PAPERS
from tests.five_documents.definitions import (
    CUTS,
    cosines,
    mean_precision_at_hits,
    ndcg_at_k,
    ours,
    random_rankings,
    recall_at_k,
    reciprocal_rank,
)
from tests.five_documents.page import Played, play
from tests.providers.real_weights import require

TITLE = "Evaluation against Ada-002"
MODELS = {"ada": "ada_embeddings", "base_st": "sentence_transformer", "finetuned_st": "finetuned_st"}


def test_the_commands_reproduce_the_script(tmp_path: Path) -> None:
    require("minilm")
    played = play(TITLE, tmp_path)
    first = played.results[0]
    assert first.parent == tmp_path / "results" / "ada_eval"
    assert (first / "metrics_vs_k.png").read_bytes().startswith(b"\x89PNG")
    assert np.load(tmp_path / "wordllama.npy").shape == (54, 256)

    sims = {name: cosines(tmp_path / "models" / folder / "holdout_embeddings.npy") for name, folder in MODELS.items()}
    np.random.seed(42)  # the document's own draw
    asked = np.random.choice(PAPERS, 500, replace=False)
    top = {name: {paper: [str(other) for other in np.argsort(-table[paper]) if other != paper][:10] for paper in asked}
           for name, table in sims.items()}  # fmt: skip
    truth: dict[str, set[str]] = {}
    for line in (first / "judgments.qrels").read_text().splitlines():
        truth.setdefault(line.split()[0], set()).add(line.split()[2])
    assert truth == {str(paper): set(nearest) for paper, nearest in top["ada"].items()}
    _check_measures(played, top)
    _check_correlations(played, sims)


def _check_measures(played: Played, top: dict[str, dict[int, list[str]]]) -> None:
    """Mean ± standard deviation (n − 1) of every measure at every k; how much better the second model is."""
    recalls: dict[str, list[float]] = {"base_st": [], "finetuned_st": []}
    for model, means in recalls.items():
        with (played.results[0] / f"{model}_results.csv").open(newline="") as file:
            rows = {int(row["k"]): row for row in csv.DictReader(file)}
        assert tuple(rows) == CUTS
        for k, row in rows.items():
            pairs = [(nearest, set(top["ada"][paper][:k])) for paper, nearest in top[model].items()]
            values = {
                "recall": [recall_at_k(found, truth, k) for found, truth in pairs],
                "ndcg": [ndcg_at_k(found, dict.fromkeys(truth, 1), k) for found, truth in pairs],
                "mrr": [reciprocal_rank(found, truth, k) for found, truth in pairs],
                "map": [mean_precision_at_hits(found, truth, k) for found, truth in pairs],
            }
            assert {name: float(row[f"{name}_mean"]) for name in values} == pytest.approx(
                {name: np.mean(each) for name, each in values.items()}
            )
            assert {name: float(row[f"{name}_std"]) for name in values} == pytest.approx(
                {name: np.std(each, ddof=1) for name, each in values.items()}
            )
            means.append(float(np.mean(values["recall"])))
    improvement = played.figures()["finetuned_st+faiss"]["improvement"]
    assert [improvement[str(k)]["recall"] for k in CUTS] == pytest.approx(
        [new / old - 1 for new, old in zip(recalls["finetuned_st"], recalls["base_st"], strict=True)]
    )


def _check_correlations(played: Played, sims: dict[str, Any]) -> None:
    with (played.folder / "val.csv").open(newline="") as file:
        pairs = [(int(row["paper1"]), int(row["paper2"]), float(row["ada_sim"])) for row in csv.DictReader(file)]
    everywhere = np.triu_indices(PAPERS, 1)
    for model in ("base_st", "finetuned_st"):
        figures = played.figures()[f"{model}+faiss"]
        mine, targets = [sims[model][a, b] for a, b, _ in pairs], [target for _, _, target in pairs]
        assert figures["validation"]["spearman"] == pytest.approx(stats.spearmanr(mine, targets).statistic, abs=1e-4)
        whole = stats.spearmanr(sims[model][everywhere], sims["ada"][everywhere]).statistic
        assert figures["similarity"]["spearman"] == pytest.approx(whole, abs=0.03)  # 10,000 of 134,940 pairs


def test_measures_on_random_rankings() -> None:
    """The truth is the reference's first k, however many it has."""
    for rng, ranking, k in random_rankings(2):
        truth = {f"d{item}" for item in rng.permutation(25)[:k]}
        grades = dict.fromkeys(truth, 1)
        assert ours(f"recall@{k}", ranking, grades) == pytest.approx(len(truth & {*ranking[:k]}) / k)
        assert ours(f"ndcg@{k}", ranking, grades) == pytest.approx(ndcg_at_k(ranking, grades, k))
        assert ours(f"mrr@{k}", ranking, grades) == pytest.approx(reciprocal_rank(ranking, truth, k))
        assert ours(f"map(over=found)@{k}", ranking, grades) == pytest.approx(mean_precision_at_hits(ranking, truth, k))


TESTED = {
    test_the_commands_reproduce_the_script: ("get_top_k_indices", "spearmanr", "EmbeddingSimilarityEvaluator"),
    test_measures_on_random_rankings: ("recall_at_k", "ndcg_at_k", "mrr", "map_at_k"),
}
