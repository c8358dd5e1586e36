"""Two contenders, hand-worked: which ungraded document decides between them."""

from __future__ import annotations

import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.testsets.label_next import next_pairs
from bakeoff.extensions.testsets.pool import pool_rankings


def ranking(*ids: str) -> Ranking:
    return Ranking(ids, tuple(float(-place) for place in range(len(ids))))


def task(judgments: dict[str, dict[str, int]]) -> Task:
    documents = [Document(id=name, text=name) for name in "abcdef"]
    return Task(name="t", documents=documents, queries=[Query("q1", "x"), Query("q2", "y")], judgments=judgments)


def test_only_a_document_that_somebody_ranked_high_can_move_anything() -> None:
    # p@1: A has q1 right and leads by 0.5 to 0; B's first place of q2 (c) is the only one without a grade.
    rankings = {"A": {"q1": ranking("a"), "q2": ranking("d")}, "B": {"q1": ranking("b"), "q2": ranking("c")}}
    candidates = next_pairs(task({"q1": {"a": 1, "b": 0}, "q2": {"d": 0}}), rankings, Measure.parse("p@1"), 5)
    (only,) = candidates
    assert only.pair == ("q2", "c")
    assert only.swaps == ()
    assert only.closes == pytest.approx(1.0)  # the whole gap of 0.5
    assert only.gap == ("B", "A")
    assert only.ranks == {"B": 1}


def test_a_grade_that_parts_equals_is_worth_more_than_one_that_narrows_a_gap() -> None:
    # p@1: A and B have q1 right, C has not; B's first of q2 (c) and C's (e) are open. A grade for c parts A and B,
    # one for e only brings C level with them.
    rankings = {
        "A": {"q1": ranking("a"), "q2": ranking("d")},
        "B": {"q1": ranking("a"), "q2": ranking("c")},
        "C": {"q1": ranking("b"), "q2": ranking("e")},
    }
    candidates = next_pairs(task({"q1": {"a": 1, "b": 0}, "q2": {"d": 0}}), rankings, Measure.parse("p@1"), 5)
    assert [(candidate.pair[1], candidate.closes) for candidate in candidates] == [
        ("c", float("inf")),
        ("e", pytest.approx(1.0)),
    ]
    assert (
        next_pairs(task({"q1": {"a": 1, "b": 0}, "q2": {"d": 0}}), rankings, Measure.parse("p@1"), 1) == candidates[:1]
    )


def test_the_grade_that_swaps_is_named() -> None:
    # ndcg@1 with linear gain: A has a 1 of an ideal 2 on q1: 0.5; B has an ungraded c. A 2 there gives B 2/2 = 1, and
    # A stays at 0.5; a 1 gives B 0.5, level; a 3 makes the ideal 3, so A falls to 1/3.
    rankings = {"A": {"q1": ranking("a")}, "B": {"q1": ranking("c")}}
    documents = [Document(id=name, text=name) for name in "abc"]
    one = Task(name="t", documents=documents, queries=[Query("q1", "x")], judgments={"q1": {"a": 1, "b": 2}})
    (candidate,) = next_pairs(one, rankings, Measure.parse("ndcg@1"), 5)
    assert candidate.swaps == (("B", "A"),)
    assert candidate.grade == 3  # it opens the widest gap: 1 − 1/3 over 0.5 closes more than 1 − 0.5 does
    assert candidate.closes == pytest.approx((0.5 + (1 - 1 / 3)) / 0.5)


def test_nothing_is_named_when_all_that_matters_is_graded() -> None:
    rankings = {"A": {"q1": ranking("a", "b")}, "B": {"q1": ranking("b", "a")}}
    assert next_pairs(task({"q1": {"a": 1}, "q2": {}}), rankings, Measure.parse("p@1"), 5)[0].pair == ("q1", "b")
    assert next_pairs(task({"q1": {"a": 1, "b": 0}, "q2": {}}), rankings, Measure.parse("p@1"), 5) == []


def test_nobody_is_asked_to_grade_what_only_fills_a_ranking_up() -> None:
    """p@2: A found a and c, B only b; that a also follows b by id is no rank that B gave it."""
    filled = Ranking(("b",), (1.0,)).fill("abcdef", 2)
    rankings = {"A": {"q1": ranking("a", "c")}, "B": {"q1": filled}}
    assert filled.ids == ("b", "a")
    candidates = next_pairs(task({"q1": {}, "q2": {}}), rankings, Measure.parse("p@2"), 9)
    assert {candidate.pair[1]: candidate.ranks for candidate in candidates} == {
        "a": {"A": 1},
        "b": {"B": 1},
        "c": {"A": 2},
    }
    only_b = next_pairs(task({"q1": {"c": 0, "b": 0}, "q2": {}}), {"B": {"q1": filled}}, Measure.parse("p@2"), 9)
    assert only_b == []


def test_a_pool_is_the_union_of_the_tops_in_an_order_that_tells_nothing() -> None:
    rankings = {"A": {"q1": ranking("a", "b", "c")}, "B": {"q1": ranking("d", "a", "e")}}
    pool = pool_rankings(rankings, ["q1", "q2"], 2)
    assert {query: set(documents) for query, documents in pool.items()} == {"q1": {"a", "b", "d"}, "q2": set()}
    swapped = pool_rankings({"B": rankings["B"], "A": rankings["A"]}, ["q1", "q2"], 2)
    assert pool == swapped


def test_pairs_that_could_turn_the_winner_come_first() -> None:
    # p@1: A has q1 and q2 right. B has open first documents on q1 and q2 and would win with both; C's on q2 alone,
    # though it would bring C to half of A, can never put it first.
    rankings = {
        "A": {"q1": ranking("a"), "q2": ranking("d")},
        "B": {"q1": ranking("b"), "q2": ranking("c")},
        "C": {"q1": ranking("f"), "q2": ranking("e")},
    }
    judgments = {"q1": {"a": 1, "f": 0}, "q2": {"d": 0}}
    candidates = next_pairs(task(judgments), rankings, Measure.parse("p@1"), 5)
    assert [(candidate.pair[1], candidate.could_lead) for candidate in candidates] == [
        ("b", "B"),
        ("c", "B"),
        ("e", ""),
    ]
