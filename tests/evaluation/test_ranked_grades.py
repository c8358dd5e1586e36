from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
import pytest
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.evaluation import ranked_grades as grades
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT, UNJUDGED, RankedGrades, join, join_arrays, join_scores
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
    st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, math.inf]), max_size=12),
)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """Two queries at a time, so that four queries cross the seams between blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grades, "BLOCK", 2)
        yield


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
def test_scores_are_joined_as_their_ranking_is(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]], depth: int | None
) -> None:
    assert same(join_scores(run, judgments, QUERIES, depth), join(rankings_of(run), judgments, QUERIES, depth))


@given(score_tables, grade_tables, st.none() | st.integers(1, 14))
def test_trec_ties_fall_by_descending_id(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]], depth: int | None
) -> None:
    rankings = {
        query: Ranking(tuple(sorted(scores, key=lambda d: (scores[d], d), reverse=True)), ())
        for query, scores in run.items()
    }
    assert same(join_scores(run, judgments, QUERIES, depth, ties="trec"), join(rankings, judgments, QUERIES, depth))


@given(score_tables, grade_tables, st.none() | st.integers(1, 14), st.randoms())
def test_indices_are_joined_as_their_ranking_is(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]], depth: int | None, random: Random
) -> None:
    rankings = rankings_of(run)
    rows = [[DOCUMENTS.index(d) for d in rankings[q].ids] if q in rankings else [] for q in QUERIES]
    width = max(map(len, rows))
    documents = np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int32)
    triples = [
        (QUERIES.index(query), DOCUMENTS.index(document), grade)
        for query, grades in judgments.items()
        for document, grade in grades.items()
    ]
    random.shuffle(triples)
    columns = np.array(triples, dtype=np.int32).reshape(-1, 3).T
    assert same(
        join_arrays(documents, columns[0], columns[1], columns[2], depth), join(rankings, judgments, QUERIES, depth)
    )


def test_scores_that_are_equal_in_single_precision_only() -> None:
    """trec_eval 10 tells them apart; earlier ones and pytrec_eval take them for equal, and the later id comes first."""
    run = {"q": {"a": 1.0 + 1e-12, "b": 1.0}}
    assert join_scores(run, {"q": {"b": 1}}, ["q"], ties="trec_single").grades.tolist() == [[1, U]]
    assert join_scores(run, {"q": {"b": 1}}, ["q"], ties="trec").grades.tolist() == [[U, 1]]
    assert join_scores(run, {"q": {"b": 1}}, ["q"]).grades.tolist() == [[U, 1]]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_is_refused_wherever_it_stands(place: int) -> None:
    scores = dict(zip("abc", np.where(np.arange(3) == place, np.nan, 1.0).tolist(), strict=True))
    with refuses(InputError, "'q2'"):
        join_scores({"q1": {"a": 1.0}, "q2": scores}, {"q2": {"a": 1}}, ["q1", "q2"])


def test_duplicate_ids_are_refused() -> None:
    with refuses(InputError, "'q'", "'a'"):
        join({"q": Ranking(("a", "b", "a"), (3.0, 2.0, 1.0))}, {}, ["q"])
    none = np.array([], dtype=np.int32)
    with refuses(InputError, "1", "7"):
        join_arrays(np.array([[1, 2, -1, -1], [7, 3, 7, -1]]), none, none, none)


def test_indices_off_the_table_are_refused() -> None:
    for query, document in ((1, 0), (-1, 0), (0, -1)):
        with refuses(ValueError):
            join_arrays(np.array([[1, 2]]), np.array([query]), np.array([document]), np.array([1]))


def test_a_pair_judged_twice_is_refused() -> None:
    with refuses(InputError):
        join_arrays(np.array([[1, 2]]), np.array([0, 0]), np.array([2, 2]), np.array([0, 1]))


@pytest.mark.parametrize("grade", [-2, 1001])
def test_grades_off_the_scale_are_refused(grade: int) -> None:
    with refuses(InputError, str(grade)):
        join({}, {"q": {"a": 1, "b": grade}}, ["q"])
    with refuses(InputError, str(grade)):
        join_arrays(np.array([[1]]), np.array([0]), np.array([1]), np.array([grade]))


def test_nothing_joins_to_nothing() -> None:
    assert join({}, {}, []).grades.shape == (0, 0)
    assert join_scores({}, {"q": {"a": 1}}, ["q"]).grades.shape == (1, 0)
    assert join_scores({"q": {}}, {}, ["q"], depth=5).ideal.shape == (1, 0)
