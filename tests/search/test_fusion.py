"""Reciprocal rank fusion against sums worked out by hand, and weights that are tuned without looking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.core.facts import fact
from bakeoff.core.figures import CallTime
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Query
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.summary import summarise
from bakeoff.running.runner import Settings, run
from bakeoff.search.answer import Answer, Searcher, Timed
from bakeoff.search.fusion import Fusion, FusionWeights, fuse, fuse_by_rrf, grid, tune
from bakeoff.statistics.averaging import PerQuery, PerQueryAsked, averaging_of
from bakeoff.statistics.stratified import Strata
from bakeoff.systems.fused import FusedSearcher
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gmean, zscore
from sklearn.preprocessing import minmax_scale

from tests.errors import refuses, says
from tests.native_task import native_files, pages, write_lineup


def _ranked(*ids: str) -> Ranking:
    return Ranking(ids, tuple(float(-place) for place in range(len(ids))))


def test_the_sums_are_those_of_hand_work() -> None:
    fused = fuse_by_rrf([_ranked("a", "b", "c"), _ranked("c", "a")], [2.0, 1.0], c=60)
    # a: 2/61 + 1/62, b: 2/62, c: 2/63 + 1/61
    assert fused.ids == ("a", "c", "b")
    assert fused.scores == pytest.approx([2 / 61 + 1 / 62, 2 / 63 + 1 / 61, 2 / 62])


def test_a_ranking_that_is_cut_adds_nothing_below_the_cut() -> None:
    fused = fuse_by_rrf([_ranked("a", "b"), _ranked("b", "a")], [1.0, 1.0], c=0, top_n=1)
    assert dict(zip(fused.ids, fused.scores, strict=True)) == {"a": 1.0, "b": 1.0}
    # with c = 0 and no cut both have 1 + 1/2, and the id decides
    assert fuse_by_rrf([_ranked("b", "a"), _ranked("a", "b")], [1.0, 1.0], c=0).ids == ("a", "b")


def test_the_order_of_summation_decides_no_tie() -> None:
    # every document has the ranks 1, 2 and 3 once: all sums are equal, however they round
    rankings = [_ranked("a", "b", "c"), _ranked("b", "c", "a"), _ranked("c", "a", "b")]
    fused = fuse_by_rrf(rankings, [1.0, 1.0, 1.0])
    assert fused.ids == ("a", "b", "c")
    assert len(set(fused.scores)) == 1


@given(st.lists(st.permutations(list("abcdef")), min_size=1, max_size=4), st.floats(0, 100))
def test_one_ranking_or_equal_ones_keep_their_order(orders: list[list[str]], c: float) -> None:
    first = orders[0]
    assert list(fuse_by_rrf([_ranked(*first)] * len(orders), [1.0] * len(orders), c).ids) == first


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"of": ("a",), "weights": (1.0,)}, "of"),
        ({"of": ("a", "a"), "weights": (1.0, 1.0)}, "of"),
        ({"of": ("a", "b"), "weights": (1.0,)}, "weights"),
        ({"of": ("a", "b"), "weights": (-1.0, 1.0)}, "weights"),
        ({"of": ("a", "b"), "weights": (0.0, 0.0)}, "weights"),
        ({"of": ("a", "b"), "weights": (float("nan"), 1.0)}, "weights"),
        ({"of": ("a", "b"), "weights": (1.0, 1.0), "c": -1.0}, "c"),
        ({"of": ("a", "b"), "weights": (1.0, 1.0), "top_n": 0}, "top_n is 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], said: str) -> None:
    with refuses(InputError, said):
        Fusion(**settings)  # type: ignore[arg-type]


def test_the_grid_is_the_whole_simplex() -> None:
    assert list(grid(2, 2)) == [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    assert len(list(grid(3))) == 66  # (10 + 2 choose 2)
    assert all(sum(weights) == pytest.approx(1) for weights in grid(4))


def test_tuning_scores_every_query_with_weights_that_did_not_see_it() -> None:
    # Four folds of one. Choice A is right on queries 0 and 1, B on 2 and 3, by the same amount.
    scores: dict[FusionWeights, np.ndarray] = {
        (1.0, 0.0): np.array([1.0, 1.0, 0.0, 0.0]),
        (0.0, 1.0): np.array([0.0, 0.0, 1.0, 1.0]),
    }
    found = tune(scores, PerQuery(), seed=1, folds=4)
    # leaving one of A's queries out leaves A one, B two: B is chosen, which is wrong there; so for all
    assert found.out_of_fold.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert found.in_sample == 0.5
    best = tune({(0.5, 0.5): np.array([0.9] * 4), **scores}, PerQuery(), seed=1, folds=4)
    assert best.weights == (0.5, 0.5)
    assert best.out_of_fold == pytest.approx([0.9] * 4)


def test_tuning_weighs_queries_by_their_traffic() -> None:
    """Choice A is right on one query of four, which has 0.7 of the traffic: by traffic it is better, plainly worse."""
    scores: dict[FusionWeights, np.ndarray] = {
        (1.0, 0.0): np.array([1.0, 0.0, 0.0, 0.0]),
        (0.0, 1.0): np.array([0.0, 1.0, 1.0, 0.0]),
    }
    asked = PerQueryAsked(Strata(np.array([0.7, 0.1, 0.1, 0.1]), ["all"] * 4, [40] * 4))
    assert tune(scores, PerQuery(), seed=1, folds=4).weights == (0.0, 1.0)
    found = tune(scores, asked, seed=1, folds=4)
    assert found.weights == (1.0, 0.0)
    assert found.in_sample == pytest.approx(0.7)
    # without the first query B leads (0.2 of 0.3); without any other A does: 0 for all but the last, where both have 0
    assert found.out_of_fold.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_tuning_keeps_the_queries_of_a_need_together() -> None:
    """Each of four needs is asked twice, alike. Its own second query must not choose the weights of the first."""
    clusters = [f"need{at // 2}" for at in range(8)]
    own = {  # each choice is right on one need only
        tuple(float(at == need) for at in range(4)): np.repeat([float(at == need) for at in range(4)], 2)
        for need in range(4)
    }
    found = tune(own, averaging_of([None] * 8, clusters=clusters), seed=1, folds=4)
    assert found.out_of_fold.tolist() == [0.0] * 8


def test_tuning_needs_two_queries() -> None:
    with refuses(InputError):
        tune({(1.0, 0.0): np.array([1.0])}, PerQuery(), seed=1)


CONTENDERS = """
[[contender]]
ranker = "bm25"
[[contender]]
provider = "fake"
store = ["faiss", "chroma"]
[[fusion]]
label = "hybrid"
of = ["bm25", "fake+faiss"]
weights = [0.7, 0.3]
c = 10
"""


@pytest.fixture
def lineup_file(tmp_path: Path) -> Path:
    names = dict(enumerate(["copper", "silver", "lake", "forest"], start=1))
    files = native_files(
        pages({number: (name, f"{name} words of {name}") for number, name in names.items()}),
        {f"q{number}": f"about {name}" for number, name in names.items()},
        {f"q{number}": {str(number): 3} for number in names},
    )
    return write_lineup(tmp_path, files, head='measures = ["mrr", "ndcg@10"]\nrounds = 2', contenders=CONTENDERS)


def test_a_hybrid_is_a_row_like_any_other(lineup_file: Path) -> None:
    outcome = run(Lineup.read(lineup_file))
    rows_by_label = {row.contender.label: row for row in outcome.ran}
    hybrid = rows_by_label["hybrid"]
    for query in outcome.task.queries:
        expected: dict[str, float] = {}
        for label, weight in (("bm25", 0.7), ("fake+faiss", 0.3)):
            for rank, document in enumerate(rows_by_label[label].rankings[query.id].ids, start=1):
                expected[document] = expected.get(document, 0) + weight / (10 + rank)
        assert hybrid.rankings[query.id].ids == make_ranking(expected.items()).ids
    assert hybrid.search is not None
    assert len(hybrid.search.timing.search_ns) == len(hybrid.search.timing.embed_ns) == 2 * 4
    rows = {row.label: row for row in summarise(outcome).rows}
    assert rows["hybrid"].row_type == "fused"
    assert rows["hybrid"].cost is not None
    assert rows["hybrid"].cost.usd == 0


def test_narrowing_keeps_a_fusion_with_its_parts(lineup_file: Path) -> None:
    lineup = Lineup.read(lineup_file)
    assert [c.label for c in lineup.narrow(["hybrid"]).contenders] == ["bm25", "fake+faiss", "hybrid"]
    assert [c.label for c in lineup.narrow(["bm25"]).contenders] == ["bm25"]
    assert [c.label for c in lineup.narrow(["bm25", "fake"]).contenders][-1] == "hybrid"
    assert [c.label for c in lineup.narrow(stores=["chroma"]).contenders] == ["fake+chroma"]


def test_tuned_weights_are_told_out_of_fold(lineup_file: Path) -> None:
    outcome = run(Lineup.read(lineup_file), Settings(tune_weights=True))
    figures = outcome.extras.figures["tuned_weights"]["hybrid"]
    assert len(figures["per_query"]) == 4
    assert figures["out_of_fold"] == pytest.approx(np.mean(figures["per_query"]))
    assert figures["out_of_fold"] <= figures["in_sample"] + 1e-12
    assert outcome.extras.sections[-1].title == fact("tuned_weights", measure="NDCG@10")
    logs = run(replace(Lineup.read(lineup_file), primary=Measure.parse("gm_map")), Settings(tune_weights=True))
    figures = logs.extras.figures["tuned_weights"]["hybrid"]
    assert figures["out_of_fold"] == pytest.approx(gmean(np.exp(figures["per_query"])))  # no logarithm
    (line,) = logs.extras.sections[-1].rows
    assert line[4] == pytest.approx(gmean(np.exp(figures["per_query"])))
    assert all(0 < figures[key] <= 1 for key in ("given", "in_sample"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"bm25", "fake+faiss"]', '"bm52", "fake+faiss"]', "'bm52'"),
        ('"bm25", "fake+faiss"]', '"bm25", "fake"]', r"fusion 1, of: 'fake' fits 2 contenders"),
        ("[0.7, 0.3]", "[0.7]", "fusion 1, weights"),
        ('label = "hybrid"', 'label = "bm25"', "'bm25'"),
    ],
)
def test_a_fusion_of_nothing_known_is_named(lineup_file: Path, old: str, new: str, said: str) -> None:
    lineup_file.write_text(lineup_file.read_text().replace(old, new))
    with refuses(InputError, said, file="own.toml"):
        Lineup.read(lineup_file)


def test_a_part_that_cannot_run_stops_the_fusion_alone(lineup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    text = lineup_file.read_text().replace(
        'provider = "fake"\nstore = ["faiss", "chroma"]', 'provider = "voyage"\nstore = "faiss"'
    )
    lineup_file.write_text(text.replace("fake+faiss", "voyage+faiss"))
    outcome = run(Lineup.read(lineup_file))
    lost = {row.contender.label: failure_words(row.failure) for row in outcome.not_run}
    says(lost["hybrid"], "voyage+faiss")
    assert [row.contender.label for row in outcome.ran] == ["bm25"]


def test_tuning_without_a_fusion_is_refused_before_anything_runs(lineup_file: Path) -> None:
    lineup_file.write_text(lineup_file.read_text().split("[[fusion]]")[0])
    with refuses(InputError, "[[fusion]]"):
        run(Lineup.read(lineup_file), Settings(tune_weights=True))


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-40, 40).map(lambda value: value / 8), min_size=1)


def _by_score(scores: dict[str, float]) -> Ranking:
    return make_ranking(scores.items())


def _fused(
    first: dict[str, float], second: dict[str, float], method: str, weights: tuple[float, ...]
) -> dict[str, float]:
    ranking = fuse([_by_score(first), _by_score(second)], Fusion(("x", "y"), weights, method=method))
    return dict(zip(ranking.ids, ranking.scores, strict=True))


def test_scores_are_brought_to_one_scale_by_hand() -> None:
    first, second = {"a": 30.0, "b": 20.0, "c": 10.0}, {"c": 0.9, "d": 0.5}
    # min-max: a 1, b ½, c 0 and c 1, d 0
    assert _fused(first, second, "min_max", (1, 2)) == pytest.approx({"a": 1, "b": 0.5, "c": 2, "d": 0})
    # z: ±√1.5 and 0; ±1. What is absent has the ranking's lowest
    z = 1.5**0.5
    assert _fused(first, second, "z_score", (1, 1)) == pytest.approx({"a": z - 1, "b": -1, "c": 1 - z, "d": -z - 1})


@given(SCORES, SCORES, st.sampled_from([(1.0, 1.0), (0.5, 2.0)]))
def test_score_fusions_agree_with_other_libraries(
    first: dict[str, float], second: dict[str, float], weights: tuple[float, float]
) -> None:
    scales: list[tuple[str, Callable[[list[float]], Any], bool]] = [
        ("min_max", lambda values: minmax_scale(values) if len(set(values)) > 1 else np.ones(len(values)), False),
        ("z_score", lambda values: zscore(values) if len(set(values)) > 1 else np.zeros(len(values)), True),
    ]
    for method, scale, absent in scales:
        expected: dict[str, float] = {}
        for scores, weight in zip((first, second), weights, strict=True):
            scaled = dict(zip(scores, scale(list(scores.values())), strict=True))
            missing = min(scaled.values()) if absent else 0.0
            for document in first | second:
                expected[document] = expected.get(document, 0.0) + weight * scaled.get(document, missing)
        assert _fused(first, second, method, weights) == pytest.approx(expected, abs=1e-9)


@given(SCORES, SCORES)
def test_dbsf_is_qdrants(first: dict[str, float], second: dict[str, float]) -> None:
    from qdrant_client import models
    from qdrant_client.hybrid.fusion import distribution_based_score_fusion

    points = [
        [models.ScoredPoint(id=ord(document), version=0, score=score) for document, score in scores.items()]
        for scores in (first, second)
    ]
    theirs = {chr(int(point.id)): point.score for point in distribution_based_score_fusion(points, 10)}
    assert _fused(first, second, "dbsf", (1.0, 1.0)) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("method", ["min_max", "z_score", "dbsf"])
def test_what_a_ranking_was_filled_up_with_moves_no_scale(method: str) -> None:
    """Five fillers of score 0 behind two matches: by min_max b would have 0.6 instead of 0, and lead."""
    words, vectors = make_ranking([("a", 5.0), ("b", 3.0)]), make_ranking([("b", 0.9), ("c", 0.5), ("d", 0.1)])
    fusion = Fusion(("words", "vectors"), (1.0, 1.0), method=method)
    filled = fuse([words.fill(["v", "w", "x", "y", "z"], 7), vectors], fusion)
    assert filled == fuse([words, vectors], fusion)
    if method == "min_max":
        assert dict(zip(filled.ids, filled.scores, strict=True)) == {"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.0}


def test_a_fusion_by_scores_is_a_row_with_a_default_label(tmp_path: Path) -> None:
    file = write_lineup(
        tmp_path,
        native_files(),
        head='measures = ["mrr"]\nrounds = 1',
        contenders='[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
        '[[fusion]]\nof = ["tfidf", "bm25"]\n[[fusion]]\nof = ["tfidf", "bm25"]\nmethod = "min_max"\n',
    )
    outcome = run(Lineup.read(file), Settings(tune_weights=True))
    assert {row.contender.label for row in outcome.ran} == {"bm25", "tfidf+faiss", "tfidf+bm25", "tfidf+bm25@min_max"}
    assert set(outcome.extras.figures["tuned_weights"]) == {"tfidf+bm25", "tfidf+bm25@min_max"}
    with refuses(InputError, "'min-max'", place="method"):
        Fusion(("a", "b"), (1.0, 1.0), method="min-max")


class _Part(Searcher):
    """Always the same answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def ask(self, query: Query) -> Answer:
        return self.answer


def test_a_fusion_takes_the_time_of_its_parts_and_of_the_fusing() -> None:
    fusion = Fusion(("a", "b", "c"), (1.0, 1.0, 1.0))
    rankings = [_ranked("x", "y", "z"), _ranked("y", "x"), _ranked("y", "w")]
    times = [(1_000_000, 70_000), (2_000_000, None), (4_000_000, 30_000)]
    parts = [_Part(Answer(ranking, search, embed)) for ranking, (search, embed) in zip(rankings, times, strict=True)]
    answer = FusedSearcher(parts, fusion, depth=2).ask(Query("q", "?"))
    assert answer.ranking.ids == ("y", "x")
    assert answer.search_ns > 7_000_000
    assert answer.embed_ns == 100_000
    unembedded = FusedSearcher(parts[1:2] * 3, fusion, depth=9).ask(Query("q", "?"))
    assert unembedded.embed_ns is None
    assert answer.timed is Timed.NOW
    late = _Part(Answer(rankings[0], 1_000, None, timed=Timed.NEVER))
    old = CallTime(5_000, "2026-01-02T03:04:05+00:00", "a machine")
    kept = _Part(Answer(rankings[0], 1_000, None, timed=Timed.EARLIER, kept_embed=old))
    one = FusedSearcher([*parts[:2], late], fusion, depth=2).ask(Query("q", "?"))
    assert one.timed is Timed.NEVER  # one part is enough
    two = FusedSearcher([*parts[:2], kept], fusion, depth=2).ask(Query("q", "?"))
    assert (two.timed, two.embed_ns) == (Timed.EARLIER, None)
    assert two.kept_embed == CallTime(75_000, old.at, old.machine)  # 5,000 kept, 70,000 of this run
    assert two.total_ns == two.search_ns + 75_000


def test_weights_are_every_share_in_tenths() -> None:
    two = list(grid(2))
    assert two == [(at / 10, (10 - at) / 10) for at in range(11)]
    assert len(set(grid(3))) == 66  # 12 over 2
    assert all(sum(weights) == pytest.approx(1) and min(weights) >= 0 for weights in grid(3))
    assert sorted(grid(2, 1)) == [(0.0, 1.0), (1.0, 0.0)]


def test_of_equally_good_weights_the_most_even_are_taken() -> None:
    scores = {weights: np.ones(6) for weights in grid(2)}
    assert tune(scores, PerQuery(), seed=1).weights == (0.5, 0.5)
    del scores[0.5, 0.5]
    assert tune(scores, PerQuery(), seed=1).weights == (0.4, 0.6)
    rounding = {weights: np.ones(6) - (1e-15 if weights == (0.4, 0.6) else 0) for weights in scores}
    assert tune(rounding, PerQuery(), seed=1).weights == (0.4, 0.6)
    assert tune({(1.0, 0.0): np.zeros(6), (0.5, 0.5): np.ones(6) / 2}, PerQuery(), seed=1).in_sample == 0.5
    as_even: dict[FusionWeights, np.ndarray]
    as_even = {(0.5, 0.4, 0.1, 0.0): np.ones(6), (0.2, 0.6, 0.1, 0.1): np.ones(6)}  # the sums of squares are 0.42
    assert tune(as_even, PerQuery(), seed=1).weights == (0.2, 0.6, 0.1, 0.1)


def test_each_query_is_scored_with_weights_that_were_chosen_without_it() -> None:
    """Four of five queries prefer the first weights, the last one the second: alone it is left with the first."""
    first, second = np.array([1.0, 1.0, 1.0, 1.0, 0.0]), np.array([0.5, 0.5, 0.5, 0.5, 1.0])
    tuned = tune({(0.9, 0.1): first, (0.1, 0.9): second}, PerQuery(), seed=3)
    assert len(tuned.fold_weights) == 5
    assert tuned.fold_weights == ((0.9, 0.1),) * 5
    assert tuned.out_of_fold.tolist() == first.tolist()
    twelve = tune({(0.9, 0.1): np.arange(12.0)}, PerQuery(), seed=3)
    assert len(twelve.fold_weights) == 5
    assert twelve.out_of_fold.tolist() == list(range(12))
    assert len(tune({(0.9, 0.1): np.ones(3)}, PerQuery(), seed=3).fold_weights) == 3
    two = tune({(0.9, 0.1): np.array([1.0, 0.0]), (0.1, 0.9): np.array([0.0, 1.0])}, PerQuery(), seed=3)
    assert two.out_of_fold.tolist() == [0.0, 0.0]  # what is best for the one is worst for the other
    with refuses(InputError):
        tune({(0.9, 0.1): np.ones(1)}, PerQuery(), seed=3)


@pytest.mark.parametrize("method", ["min_max", "z_score", "dbsf"])
def test_scores_that_are_all_equal_or_alone_or_absent(method: str) -> None:
    """Equal scores are 1 by min_max, 0 by z_score (as their mean), 0.5 by dbsf; so is a single one."""
    equal = {"min_max": 1.0, "z_score": 0.0, "dbsf": 0.5}[method]
    fusion = Fusion(("a", "b"), (1.0, 2.0), method=method)
    alike, none = Ranking(("x", "y"), (3.0, 3.0)), Ranking((), ())
    fused = fuse([alike, Ranking(("x",), (5.0,))], fusion)
    found = dict(zip(fused.ids, fused.scores, strict=True))
    assert found == pytest.approx({"x": 3 * equal, "y": equal})
    assert fuse([alike, none], fusion).scores == pytest.approx((equal, equal))


def test_only_the_first_places_are_read_by_scores_too() -> None:
    fusion = Fusion(("a", "b"), (1.0, 1.0), top_n=2, method="min_max")
    fused = fuse([Ranking(("x", "y", "z"), (3.0, 2.0, 1.0)), Ranking(("z", "y", "x"), (9.0, 8.0, 7.0))], fusion)
    assert dict(zip(fused.ids, fused.scores, strict=True)) == {"x": 1.0, "y": 0.0, "z": 1.0}
    assert fused.ids == ("x", "z", "y")


def test_the_customary_constant_and_the_limits_of_settings() -> None:
    assert Fusion(("a", "b"), (1.0, 1.0)).c == 60
    assert fuse_by_rrf([_ranked("a")], [1.0]).scores == pytest.approx([1 / 61])
    assert fuse([_ranked("a"), _ranked("b")], Fusion(("a", "b"), (1.0, 0.0), c=0.0)).scores == (1.0, 0.0)
    assert Fusion(("a", "b"), (0.0, 1.0), top_n=1).top_n == 1


def test_twelve_digits_of_a_sum_decide_and_no_more() -> None:
    for step, first in ((4e-12, "y"), (1e-14, "x")):
        rankings = [Ranking(("y", "x", "z"), (1.0, 1.0 - step, 0.0)), Ranking((), ())]
        assert fuse(rankings, Fusion(("a", "b"), (1.0, 1.0), method="min_max")).ids[0] == first
