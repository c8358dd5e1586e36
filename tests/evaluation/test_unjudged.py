"""What unjudged documents could change, by hand and by trying every grading."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.evaluation.unjudged import if_relevant, top_grade, winner_changing_grades
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples


def ranking(ids: str) -> Ranking:
    return Ranking(tuple(ids), tuple(float(-place) for place in range(len(ids))))


def test_if_all_unjudged_were_relevant_by_hand() -> None:
    """a is relevant, b is not, x and y are unjudged; the highest grade given is 2, and y is below the cut."""
    answers, judgments = {"q": ranking("axby")}, {"q": {"a": 2, "b": 0}, "lost": {"a": 1}}

    def value(text: str) -> float:
        return float(if_relevant(answers, judgments, ["q", "lost"], Measure.parse(text))[0])

    assert value("p@3") == pytest.approx(2 / 3)
    assert value("recall@3") == pytest.approx(2 / 2)
    assert value("map") == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert value("dcg@3") == pytest.approx(2 + 2 / np.log2(3))


def test_the_documents_that_turn_the_winner_are_named() -> None:
    """p@1: A leads with two queries of three; B's first documents of q2 and q3 are open, one is already relevant."""
    best = {"q1": ranking("a"), "q2": ranking("a"), "q3": ranking("a")}
    other = {"q1": ranking("b"), "q2": ranking("x"), "q3": ranking("y")}
    judgments = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"a": 0}}
    p1 = Measure.parse("p@1")
    # Both open documents relevant: B has two of three and only draws level with A, so nothing turns.
    assert winner_changing_grades(best, other, judgments, ["q1", "q2", "q3"], p1) == []
    judgments["q1"] = {"a": 0, "b": 0}
    # Now A has one: q3's document brings B level, q2's too puts it ahead.
    assert sorted(winner_changing_grades(best, other, judgments, ["q1", "q2", "q3"], p1)) == [("q2", "x"), ("q3", "y")]


def test_what_only_fills_a_ranking_up_is_no_open_document() -> None:
    """B found b, and x follows by id alone; had B found x, a grade for it would put B first."""
    a, b = ranking("ac"), Ranking(("b",), (1.0,)).fill(["x"], 2)
    judgments = {"q": {"a": 0, "b": 0, "c": 0}}
    p2 = Measure.parse("p@2")
    assert if_relevant({"q": b}, judgments, ["q"], p2).tolist() == [0.0]
    assert winner_changing_grades({"q": a}, {"q": b}, judgments, ["q"], p2) == []
    found = ranking("bx")
    assert if_relevant({"q": found}, judgments, ["q"], p2).tolist() == [0.5]
    assert winner_changing_grades({"q": a}, {"q": found}, judgments, ["q"], p2) == [("q", "x")]


def test_a_document_that_the_best_has_by_chance_above_a_challengers_match_turns_nothing() -> None:
    """x fills the best's second place and is the challenger's third: the best would gain more by it."""
    best, other = Ranking(("a",), (1.0,)).fill(["x"], 2), ranking("bcx")
    assert (
        winner_changing_grades(
            {"q": best}, {"q": other}, {"q": {"a": 0, "b": 0, "c": 0}}, ["q"], Measure.parse("dcg@3")
        )
        == []
    )


IDS = st.permutations("abcdef").map(lambda ids: ranking("".join(ids[:4])))


@settings(max_examples=examples(60), deadline=None)
@given(
    IDS,
    IDS,
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), min_size=1),
    st.sampled_from(["p@3", "dcg@3", "rbp@3", "ndcg@3", "map"]),
)
def test_what_turns_is_true_and_for_weights_by_rank_nothing_is_overlooked(
    a: Ranking, b: Ranking, judged: dict[str, int], text: str
) -> None:
    measure = Measure.parse(text)
    highest = max(*judged.values(), 1)

    def lead(grades: dict[str, int]) -> float:
        truth = {"q": grades}
        values = [score_queries(join({"q": side}, truth, ["q"]), [measure])[measure][0] for side in (a, b)]
        return float(values[1] - values[0])

    needed = winner_changing_grades({"q": a}, {"q": b}, {"q": judged}, ["q"], measure)
    if needed:
        assert lead({**judged, **{document: highest for _, document in needed}}) > 0
    open_ = [document for document in "abcdef" if document not in judged]
    gradings = product((0, highest), repeat=len(open_))
    possible = max(lead({**judged, **dict(zip(open_, grades, strict=True))}) for grades in gradings)
    if measure.name in ("p", "dcg", "rbp") and lead(judged) <= 0:
        assert bool(needed) == (possible > 1e-12)


def test_what_turns_is_weighed_by_traffic() -> None:
    """p@1: the best leads on q1; q2 and q3 are open, and one that is asked often enough turns the winner."""
    best = {"q1": ranking("a"), "q2": ranking("a"), "q3": ranking("a")}
    other = {"q1": ranking("b"), "q2": ranking("x"), "q3": ranking("y")}
    judgments = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0}, "q3": {"a": 0}}
    p1, queries = Measure.parse("p@1"), ["q1", "q2", "q3"]
    assert winner_changing_grades(best, other, judgments, queries, p1, weights=np.array([0.3, 0.6, 0.1])) == [
        ("q2", "x")
    ]
    assert winner_changing_grades(best, other, judgments, queries, p1, weights=np.array([0.3, 0.1, 0.6])) == [
        ("q3", "y")
    ]
    assert winner_changing_grades(best, other, judgments, queries, p1, weights=np.array([0.6, 0.3, 0.1])) == []
    assert sorted(winner_changing_grades(best, other, judgments, queries, p1)) == [("q2", "x"), ("q3", "y")]


def test_the_fewest_documents_for_the_most_are_taken_first() -> None:
    """p@2: one document of q1 adds 0.25; two of q2 add 0.4, so 0.2 each. Either would make up for the 0.05 of q3."""
    best = {"q1": ranking("ab"), "q2": ranking("ab"), "q3": ranking("ab")}
    other = {"q1": ranking("xb"), "q2": ranking("yz"), "q3": ranking("bc")}
    judgments = {"q1": {"a": 0, "b": 0}, "q2": {"a": 0, "b": 0}, "q3": {"a": 1, "b": 0, "c": 0}}
    weights = np.array([0.5, 0.4, 0.1])
    assert winner_changing_grades(
        best, other, judgments, ["q1", "q2", "q3"], Measure.parse("p@2"), weights=weights
    ) == [("q1", "x")]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(IDS, min_size=2, max_size=2),
    st.lists(IDS, min_size=2, max_size=2),
    st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), min_size=1), min_size=2, max_size=2),
    st.sampled_from(["p@3", "dcg@3", "rbp@4", "ndcg@3", "map", "mrr"]),
)
def test_no_fewer_documents_turn_the_winner(
    a: list[Ranking], b: list[Ranking], judged: list[dict[str, int]], text: str
) -> None:
    """All sets of the documents that b ranks above a are tried; sums over places need no more than the least."""
    measure, queries = Measure.parse(text), ["q1", "q2"]
    best, other = dict(zip(queries, a, strict=True)), dict(zip(queries, b, strict=True))
    truth = dict(zip(queries, judged, strict=True))
    highest = top_grade(truth, 1)

    def leads(grades: dict[str, dict[str, int]]) -> bool:
        sums = [score_queries(join(side, grades, queries), [measure])[measure].sum() for side in (best, other)]
        return bool(sums[1] - sums[0] > 1e-12)

    needed = winner_changing_grades(best, other, truth, queries, measure)
    open_ = [
        (query, document)
        for query in queries
        for place, document in enumerate(other[query].ids[: measure.k])
        if document not in truth[query] and document not in best[query].ids[: place + 1]
    ]
    least = next(
        (
            size
            for size in range(1, len(open_) + 1)
            for chosen in combinations(open_, size)
            if leads({query: {**truth[query], **{d: highest for q, d in chosen if q == query}} for query in queries})
        ),
        0,
    )
    if leads(truth):
        assert needed == []
    elif measure.name in ("p", "dcg", "rbp"):
        assert len(needed) == least
    elif needed:
        assert len(needed) >= least > 0


def test_the_highest_grade_is_one_that_is_relevant() -> None:
    assert top_grade({"q": {"a": 3, "b": 0}}, 1) == 3
    assert top_grade({"q": {"a": 1, "b": 0}}, 2) == 2  # nothing relevant was found yet
    assert top_grade({}, 2) == 2
