"""Next-location metrics: sums and percentages from logits, and the document's worked examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.cli.test_testsets import say
from tests.five_documents.definitions import CUTS
from tests.five_documents.page import play, read_json

TITLE = "Next-location metrics"


def test_the_command_writes_sums_and_percentages(tmp_path: Path) -> None:
    (result,) = play(TITLE, tmp_path).results
    right = np.load(tmp_path / "true_y.npy")
    for seed in (1, 2, 3):
        order = np.argsort(-np.load(tmp_path / f"mhsa-{seed}.npy"), axis=1)
        ranks = np.nonzero(order == right[:, None])[1] + 1
        gains = np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0)
        sums = [*((ranks <= k).sum() for k in CUTS), (1 / ranks).sum(), gains.sum(), len(right)]
        assert read_json(result / "result_array" / f"mhsa-{seed}.json") == pytest.approx(sums)
        names = ("acc@1", "acc@3", "acc@5", "acc@10", "mrr", "ndcg")
        shares = {name: total / len(right) for name, total in zip(names, sums[:6], strict=True)}
        shares["f1"] = f1_score(right, order[:, 0], average="weighted", zero_division=0)
        shown = read_json(result / "metrics" / f"mhsa-{seed}.json")
        assert shown == pytest.approx({name: 100 * share for name, share in shares.items()}, abs=0.0051)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lineup = '[task]\nkind = "single"\ntruth = "right.npy"\nclasses = {}\n[[contender]]\nanswers = "model.npy"\n'
    (tmp_path / "own.toml").write_text(lineup)
    return tmp_path


def _percentages(folder: Path, scores: Sequence[Sequence[float]], right: Sequence[int]) -> Any:
    np.save(folder / "model.npy", np.array(scores))
    np.save(folder / "right.npy", np.array(right))
    (folder / "own.toml").write_text((folder / "own.toml").read_text().format(len(scores[0])))
    say(folder, "run", "own.toml", "--no-charts")
    (result,) = (folder / "results").iterdir()
    return read_json(result / "metrics" / "model.json")


def test_the_example_of_f1(folder: Path) -> None:
    """Home, Work and Cafe: 0.71 in the document, from precisions and recalls that were rounded first."""
    confusion = [[50, 10, 5], [5, 80, 15], [10, 20, 35]]
    pairs = [(actual, said) for actual in range(3) for said in range(3) for _ in range(confusion[actual][said])]
    scores = [[0.9 if place == said else place / 10 for place in range(3)] for _, said in pairs]
    assert _percentages(folder, scores, [actual for actual, _ in pairs])["f1"] == 71.35


@pytest.mark.parametrize(
    ("ranks", "figure", "percent"),
    [([3], "mrr", 33.33), ([3], "ndcg", 50), ([3], "acc@1", 0), ([3], "acc@3", 100),
     ([2, 1, 5], "mrr", 56.67), ([1, 3, 7, 15], "ndcg", 45.83)],
)  # fmt: skip
def test_the_examples_of_ranks(folder: Path, ranks: list[int], figure: str, percent: float) -> None:
    falling = [-float(place) for place in range(20)]
    assert _percentages(folder, [falling] * len(ranks), [rank - 1 for rank in ranks])[figure] == percent


def test_the_example_of_accuracy(folder: Path) -> None:
    """Cafe, Work, Home, Gym; Work is right, then Home."""
    found = _percentages(folder, [[0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.5, 0.1]], [1, 2])
    assert (found["acc@1"], found["acc@3"]) == (50, 100)


TESTED = {
    test_the_command_writes_sums_and_percentages: (
        "calculate_correct_total_prediction", "top_k_accuracy", "get_mrr", "get_ndcg", "F1_weighted",
    ),
}  # fmt: skip
