from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from bakeoff.core.ranking import Ranking, ScoredRun, make_ranking, run_of
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT, UNJUDGED, RankedGrades, find_judged, join
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

X, U = NO_DOCUMENT, UNJUDGED
DOCUMENTS = [f"d{n}" for n in range(12)]  # d10 < d2: ids are ordered as text
QUERIES = ["q1", "q2", "q3", "q4"]

grade_tables = st.dictionaries(
    st.sampled_from(QUERIES), st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), max_size=8)
)
score_tables = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(
        st.sampled_from(DOCUMENTS), st.sampled_from([-math.inf, -1.0, 0.0, 0.25, 0.5, 1.0, math.inf]), max_size=12
    ),
)


def rankings_of(run: Mapping[str, Mapping[str, float]]) -> dict[str, Ranking]:
    return {query: make_ranking(scores.items()) for query, scores in run.items()}


def same(a: RankedGrades, b: RankedGrades) -> bool:
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("grades", "returned", "ideal"))


def test_each_place_has_its_grade_and_each_query_its_row() -> None:
    rankings = {
        "q1": Ranking(("a", "b", "c"), (3.0, 2.0, 1.0)),
        "q2": Ranking(("b",), (1.0,)),
        "other": Ranking(("a",), (1.0,)),
    }
    ranked = join(rankings, {"q1": {"a": 1, "c": 0, "z": 3}, "q3": {"a": 2}}, ["q1", "q2", "q3"])
    assert ranked.grades.tolist() == [[1, U, 0], [U, X, X], [X, X, X]]
    assert ranked.returned.tolist() == [3, 1, 0]
    assert ranked.ideal.tolist() == [[3, 1, 0], [X, X, X], [2, X, X]]
    assert len(ranked) == 3


def test_a_cut_keeps_the_whole_ideal() -> None:
    ranked = join({"q": Ranking(("a", "b"), (2.0, 1.0))}, {"q": {"b": 1, "c": 2}}, ["q"], depth=1)
    assert ranked.grades.tolist() == [[U]]
    assert ranked.ideal.tolist() == [[2, 1]]
    assert (ranked.depth, ranked.returned.tolist()) == (1, [1])


@given(score_tables, grade_tables, st.none() | st.integers(1, 14))
def test_scores_in_any_order_are_joined_as_the_ranking_of_trec_eval_is(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]], depth: int | None
) -> None:
    rankings = {
        query: Ranking(tuple(sorted(scores, key=lambda d: (scores[d], d), reverse=True)), (0.0,) * len(scores))
        for query, scores in run.items()
    }
    assert same(join(ScoredRun.of(run), judgments, QUERIES, depth), join(rankings, judgments, QUERIES, depth))
    assert {query: ranking.ids for query, ranking in ScoredRun.of(run).items()} == {
        query: ranking.ids for query, ranking in rankings.items()
    }


@given(score_tables, grade_tables, st.none() | st.integers(1, 14))
def test_every_place_has_the_grade_of_its_document(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]], depth: int | None
) -> None:
    """By hand, from rankings and from a run that also holds queries that are not asked, in another order."""
    rankings = rankings_of(run)
    asked = QUERIES[:0:-1]
    kept = [rankings[query].ids[:depth] if query in rankings else () for query in asked]
    width = max(map(len, kept))
    by_hand = [
        [judgments.get(query, {}).get(document, U) for document in ids] + [X] * (width - len(ids))
        for query, ids in zip(asked, kept, strict=True)
    ]
    for answers in (rankings, run_of(rankings, QUERIES)):
        ranked = join(answers, judgments, asked, depth)
        assert ranked.grades.tolist() == by_hand
        assert ranked.returned.tolist() == list(map(len, kept))


@given(score_tables, grade_tables)
def test_other_grades_of_the_same_documents_need_no_other_join(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]]
) -> None:
    judged = [judgments.get(query, {}) for query in QUERIES]
    raised = {query: {document: grade + 2 for document, grade in grades.items()} for query, grades in judgments.items()}
    flat = np.array([grade + 2 for grades in judged for grade in grades.values()], dtype=np.int64)
    again = find_judged(rankings_of(run), judged, QUERIES).grade(flat)
    assert same(again, join(rankings_of(run), raised, QUERIES))


def test_scores_that_are_equal_in_single_precision_only() -> None:
    """trec_eval 10 tells them apart; earlier ones and pytrec_eval take them for equal, and the later id comes first."""
    run = {"q": {"a": 1.0 + 1e-12, "b": 1.0}}
    assert join(ScoredRun.of(run, np.float32), {"q": {"b": 1}}, ["q"]).grades.tolist() == [[1, U]]
    assert join(ScoredRun.of(run), {"q": {"b": 1}}, ["q"]).grades.tolist() == [[U, 1]]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_is_refused_wherever_it_stands(place: int) -> None:
    scores = dict(zip("abc", np.where(np.arange(3) == place, np.nan, 1.0).tolist(), strict=True))
    with refuses(InputError, "'q2'", repr("abc"[place])):
        ScoredRun.of({"q1": {"a": 1.0}, "q2": scores})


def test_duplicate_ids_are_refused() -> None:
    with refuses(InputError, "'q'", "'a'"):
        join({"q": Ranking(("a", "b", "a"), (3.0, 2.0, 1.0))}, {}, ["q"])


@pytest.mark.parametrize("grade", [-2, 1001])
def test_grades_off_the_scale_are_refused(grade: int) -> None:
    with refuses(InputError, str(grade)):
        join({}, {"q": {"a": 1, "b": grade}}, ["q"])


def test_nothing_joins_to_nothing() -> None:
    assert join({}, {}, []).grades.shape == (0, 0)
    assert join(ScoredRun.of({}), {"q": {"a": 1}}, ["q"]).grades.shape == (1, 0)
    assert join(ScoredRun.of({"q": {}}), {}, ["q"], depth=5).ideal.shape == (1, 0)
