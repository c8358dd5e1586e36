"""What the verdict says, on scores small enough to be ordered by hand."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.evaluation.measures import Measure
from bakeoff.results.schema import Row, Value
from bakeoff.results.verdict import decide, order_agreement
from bakeoff.statistics.compare import tied_with_best
from scipy import stats

NDCG, MRR = Measure.parse("ndcg@10"), Measure.parse("mrr")
MEANS = {"a": (0.9, 0.5), "b": (0.7, 0.8), "c": (0.4, 0.3), "d": (0.1, 0.2)}


def _rows() -> list[Row]:
    return [
        Row(
            label=label,
            kind="dense",
            measures={"ndcg@10": Value(ndcg), "mrr": Value(mrr)},
            categories={"x": {"ndcg@10": ndcg}, "y": {"ndcg@10": 1 - ndcg}},
        )
        for label, (ndcg, mrr) in MEANS.items()
    ]


def test_agreement_of_orders_is_kendalls_tau() -> None:
    agreement = order_agreement(_rows(), NDCG, [NDCG, MRR])
    # of six pairs only a and b change places: (5 - 1) / 6; category x keeps the order, y turns it round
    assert agreement == {"mrr": pytest.approx(4 / 6), "category x": pytest.approx(1), "category y": pytest.approx(-1)}
    theirs = stats.kendalltau([ndcg for ndcg, _ in MEANS.values()], [mrr for _, mrr in MEANS.values()]).statistic
    assert agreement["mrr"] == pytest.approx(theirs)


def test_the_verdict_names_the_order_that_agrees_least() -> None:
    scores = {label: np.linspace(0, 2 * ndcg, 12) for label, (ndcg, _) in MEANS.items()}
    verdict = decide(scores, NDCG, _rows(), 42, [NDCG, MRR])
    assert verdict.best == "a"
    assert verdict.sentences[-1].endswith("within the category y (Kendall's τ -1.00).")


def test_two_contenders_have_nothing_to_agree_on() -> None:
    assert order_agreement(_rows()[:2], NDCG, [MRR]) == {}


def test_the_best_and_its_equals_are_tied_and_the_rest_is_not() -> None:
    rng = np.random.default_rng(0)
    good = 0.8 + 0.01 * rng.random(15)
    tied = tied_with_best({"best": good, "twin": good.copy(), "bad": good - 0.5}, 42)
    assert tied == {"best": True, "twin": True, "bad": False}
