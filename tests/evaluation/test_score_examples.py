"""Worked examples of the field's documents, and what other tools get wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import deepest, f1_by_weight, join, score_queries
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from tests.errors import refuses
from tests.registries import FAMILIES

EVERY = [
    Measure.of(name, k=None if family.cut == "refused" else 3)
    for name, family in FAMILIES.items()
    if name not in ("rbp_residual", "gm_map", "judged") and not family.reads_dates
]  # 0 is not what they give for no answer; grades have no dates


def value(text: str, ids: Sequence[str], judged: Mapping[str, int]) -> float:
    """One measure of one ranking, as a user would ask for it."""
    ranking = Ranking(tuple(ids), tuple(float(-place) for place in range(len(ids))))
    measure = Measure.parse(text)
    return float(score_queries(join({"q": ranking}, {"q": judged}, ["q"]), [measure])[measure][0])


def test_the_order_that_misses_one_place() -> None:
    ids, truth = ["7", "99", "23", "156", "12"], {"7": 1, "23": 1, "156": 1}
    # DCG = 1 + 1/log2(4) + 1/log2(5); ideal = 1 + 1/log2(3) + 1/log2(4)
    expected = (1 + 1 / 2 + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / 2)
    assert value("ndcg@5", ids, truth) == pytest.approx(expected, abs=1e-12)
    assert round(expected, 2) == 0.91
    assert value("ap(over=found)", ids, truth) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3, abs=1e-12)
    assert round(value("ap(over=found)", ids, truth), 2) == 0.81


def test_reversed_grades() -> None:
    truth = {"a": 1, "b": 2, "c": 3}
    assert value("ndcg", "abc", truth) == pytest.approx(0.790, abs=5e-4)
    assert value("ndcg(gain=exp)", "abc", truth) == pytest.approx(0.681, abs=5e-4)


def test_one_relevant_at_rank_three() -> None:
    assert value("ndcg@10", "xya", {"a": 1}) == pytest.approx(0.5, abs=1e-15)
    assert value("mrr", "xya", {"a": 1}) == pytest.approx(1 / 3, abs=1e-15)
    assert value("mrr@2", "xya", {"a": 1}) == 0


def _weighted_f1(confusion: list[list[int]]) -> float:
    """From a matrix: rows are the true classes, columns the predicted ones."""
    matrix = np.array(confusion)
    return f1_by_weight(np.diagonal(matrix), matrix.sum(axis=1), matrix.sum(axis=0))


def test_weighted_f1_of_three_classes() -> None:
    # F1 = 2·TP / (true + predicted): 100/130, 160/210, 70/120, weighted 65, 100, 65 of 230
    confusion = [[50, 10, 5], [5, 80, 15], [10, 20, 35]]
    exact = (65 * Fraction(100, 130) + 100 * Fraction(160, 210) + 65 * Fraction(70, 120)) / 230
    assert exact == Fraction(919, 1288)
    assert _weighted_f1(confusion) == pytest.approx(float(exact), abs=1e-15)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_weighted_f1_is_sklearns(pairs: list[tuple[int, int]]) -> None:
    counts = Counter(pairs)
    confusion = [[counts[true, predicted] for predicted in range(4)] for true in range(4)]
    true, predicted = zip(*pairs, strict=True)
    expected = f1_score(true, predicted, average="weighted", zero_division=0)
    assert _weighted_f1(confusion) == pytest.approx(expected, abs=1e-12)


def test_weighted_f1_of_nothing_is_zero() -> None:
    assert _weighted_f1([[0, 0], [0, 0]]) == 0


# What other tools get wrong


def test_the_ideal_comes_from_all_judged_documents_and_is_cut_at_k() -> None:
    truth = {"a": 1, "b": 3, "c": 2}
    # found alone: ideal of what was retrieved would give 1; the ideal holds the 3 and the 2 that were missed
    assert value("ndcg@2", "ax", truth) == pytest.approx(1 / (3 + 2 / math.log2(3)), abs=1e-15)
    # not cut: the ideal would hold three documents, and a perfect top two would not reach 1
    assert value("ndcg@2", "bc", truth) == 1


def test_rank_two_is_discounted() -> None:
    assert value("ndcg@2", "xa", {"a": 1}) == pytest.approx(1 / math.log2(3), abs=1e-15)


def test_precision_divides_by_k_even_if_less_came_back() -> None:
    assert value("p@5", "a", {"a": 1}) == pytest.approx(1 / 5)
    assert value("f1@5", "a", {"a": 1}) == pytest.approx(2 * (1 / 5) * 1 / (1 / 5 + 1))


def test_average_precision_divides_by_all_relevant_unless_told() -> None:
    truth = {"a": 1, "b": 1, "c": 1, "d": 1}
    assert value("map@2", "ax", truth) == pytest.approx(1 / 4)
    assert value("map(over=found)@2", "ax", truth) == 1


def test_an_empty_result_scores_zero() -> None:
    for rankings in ({}, {"q": Ranking((), ())}):
        values = score_queries(join(rankings, {"q": {"a": 3}}, ["q"]), EVERY)
        assert {str(measure): found.tolist() for measure, found in values.items()} == {str(m): [0.0] for m in EVERY}


def test_a_query_without_relevant_documents_scores_zero_and_stays_in_the_mean() -> None:
    rankings = {query: Ranking(("a",), (1.0,)) for query in ("q1", "q2", "q3")}
    values = score_queries(join(rankings, {"q1": {"a": 3}, "q2": {"a": 0}}, ["q1", "q2", "q3"]), EVERY)
    for measure in EVERY:
        if measure.name != "judged":
            assert values[measure][0] > 0, str(measure)
            assert values[measure][1:].tolist() == [0.0, 0.0], str(measure)


@given(st.permutations(["d1", "d2", "d3", "d4"]), st.sampled_from(["d1", "d2", "d3", "d4"]))
def test_a_constant_scorer_gains_nothing_from_ties(order: list[str], relevant: str) -> None:
    """Whatever order the store answered in, equal scores stand by id."""
    measure = Measure.parse("mrr")
    expected = 1 / (["d1", "d2", "d3", "d4"].index(relevant) + 1)
    rankings = {"q": make_ranking((document, 0.5) for document in order)}
    assert score_queries(join(rankings, {"q": {relevant: 1}}, ["q"]), [measure])[measure].tolist() == [expected]


def test_unjudged_documents_are_not_relevant_and_are_counted() -> None:
    assert value("p@2", "ax", {"a": 1}) == 0.5
    assert value("judged@2", "ax", {"a": 0}) == 0.5
    assert value("judged@10", "ax", {"a": 0, "x": 0}) == 1.0  # of the two that came back


def test_places_that_were_filled_up_count_for_every_measure_but_judged() -> None:
    """a matched; x, y and b follow by id alone, and b, which somebody graded, earns its points there."""
    filled = Ranking(("a",), (2.0,)).fill(["a", "x", "y", "b"], 4)
    measures = [Measure.parse(text) for text in ("judged@4", "judged@1", "p@4", "recall@4")]
    judgments = {"q": {"a": 1, "b": 1}, "nothing matched": {"b": 1}}
    answers = {"q": filled, "nothing matched": Ranking((), ()).fill(["x"], 1)}
    scores = score_queries(join(answers, judgments, list(judgments)), measures)
    assert {str(measure): values.tolist() for measure, values in scores.items()} == {
        "judged@4": [1.0, 1.0],
        "judged@1": [1.0, 1.0],
        "p@4": [0.5, 0.0],
        "recall@4": [1.0, 0.0],
    }
    ((judged,),) = score_queries(join({"q": filled}, {"q": {"b": 1}}, ["q"]), [measures[0]]).values()
    assert judged == 0.0  # a, the one that matched, has no grade


def test_the_tasks_threshold_holds_unless_a_measure_has_its_own() -> None:
    ranked = join({"q": Ranking(("a", "b"), (2.0, 1.0))}, {"q": {"a": 1, "b": 2}}, ["q"])
    tasks, own = Measure.parse("p@2"), Measure.parse("p(rel=1)@2")
    values = score_queries(ranked, [tasks, own], rel=2)
    assert (values[tasks][0], values[own][0]) == (0.5, 1.0)


def test_a_measure_that_reads_deeper_than_was_joined_is_refused() -> None:
    ranked = join({"q": Ranking(("a", "b"), (2.0, 1.0))}, {"q": {"a": 1}}, ["q"], depth=1)
    for text in ("p@2", "map", "rprec"):
        with refuses(ValueError, "1"):
            score_queries(ranked, [Measure.parse(text)])
    assert deepest([Measure.parse("p@1")]) == 1


def test_no_queries_and_no_measures_are_no_trouble() -> None:
    assert score_queries(join({}, {}, []), EVERY)[EVERY[0]].tolist() == []
    assert score_queries(join({}, {}, ["q"]), []) == {}
