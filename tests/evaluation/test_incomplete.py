"""Measures for incomplete judgments and of whole sets, against trec_eval, gdeval, scikit-learn and by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from bakeoff.core.ranking import Ranking, ScoredRun
from bakeoff.evaluation.graded_run import GradedRun
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT
from bakeoff.evaluation.score import join, random_expectation, score_queries
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import dcg_score

from tests.errors import refuses
from tests.examples import examples

QUERIES = ["q1", "q2", "q3"]
DOCUMENTS = [f"d{n}" for n in range(14)]
GRADES = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 4), min_size=1, max_size=10)
SCORES = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-50, 50).map(float), min_size=1)
RUNS = st.fixed_dictionaries(dict.fromkeys(QUERIES, SCORES))
JUDGMENTS = st.fixed_dictionaries(dict.fromkeys(QUERIES, GRADES))

Run = Mapping[str, Mapping[str, float]]
Judgments = Mapping[str, Mapping[str, int]]


def ours(text: str, run: Run, judgments: Judgments) -> list[float]:
    measure = Measure.parse(text)
    values: list[float] = score_queries(join(ScoredRun.of(run, np.float32), judgments, QUERIES), [measure])[
        measure
    ].tolist()
    return values


@settings(max_examples=examples(200), deadline=None)
@given(RUNS, JUDGMENTS)
def test_bpref_infap_and_gm_map_are_trec_evals(run: Run, judgments: Judgments) -> None:
    theirs = pytrec_eval.RelevanceEvaluator(judgments, {"bpref", "infAP", "gm_map"}).evaluate(run)
    for text, name in (("bpref", "bpref"), ("infap", "infAP"), ("gm_map", "gm_map")):
        expected = [theirs[query][name] for query in QUERIES]
        assert ours(text, run, judgments) == pytest.approx(expected, abs=1e-9), text
    logs = np.array(ours("gm_map", run, judgments))
    geometric = pytrec_eval.compute_aggregated_measure("gm_map", [theirs[query]["gm_map"] for query in QUERIES])
    assert Measure.parse("gm_map").aggregate(logs) == pytest.approx(geometric, abs=1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(RUNS, JUDGMENTS)
def test_infap_of_a_sampled_pool_is_trec_evals(run: Run, judgments: Judgments) -> None:
    """trec_eval marks a document that was pooled and not judged by the grade −1."""
    pooled = {q: {**dict.fromkeys(run[q], -1), **judgments[q]} for q in QUERIES}
    theirs = pytrec_eval.RelevanceEvaluator(pooled, {"infAP"}).evaluate(run)
    expected = [theirs[query]["infAP"] for query in QUERIES]
    assert ours("infap(pool=ranked)", run, judgments) == pytest.approx(expected, abs=1e-9)


SAMPLED = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1, max_size=14)


@settings(max_examples=examples(200), deadline=None)
@given(RUNS, st.fixed_dictionaries(dict.fromkeys(QUERIES, SAMPLED)))
def test_documents_marked_as_pooled_are_trec_evals(run: Run, judgments: Judgments) -> None:
    """They count for infAP, and are unjudged for every other measure."""
    names = {"infap": "infAP", "bpref": "bpref", "map": "map", "ndcg@5": "ndcg_cut_5", "rprec": "Rprec"}
    wanted = {"infAP", "bpref", "map", "ndcg_cut.5", "Rprec"}
    theirs = pytrec_eval.RelevanceEvaluator(judgments, wanted).evaluate(run)
    for text, name in names.items():
        expected = [theirs.get(query, {}).get(name, 0.0) for query in QUERIES]
        assert ours(text, run, judgments) == pytest.approx(expected, abs=1e-9), text


@settings(max_examples=examples(100), deadline=None)
@given(RUNS, JUDGMENTS)
def test_condensed_lists_are_trec_evals(run: Run, judgments: Judgments) -> None:
    """Its option -J leaves unjudged documents out of the ranking."""
    names = {"ndcg@5": "ndcg_cut_5", "map": "map", "p@3": "P_3", "mrr": "recip_rank", "recall@3": "recall_3"}
    theirs = pytrec_eval.RelevanceEvaluator(
        judgments, {"ndcg_cut.5", "map", "P.3", "recip_rank", "recall.3"}, judged_docs_only_flag=True
    ).evaluate(run)
    for text, name in names.items():
        spelling = text.replace("@", "(unjudged=removed)@") if "@" in text else f"{text}(unjudged=removed)"
        expected = [theirs.get(query, {}).get(name, 0.0) for query in QUERIES]
        assert ours(spelling, run, judgments) == pytest.approx(expected, abs=1e-9), text


def test_a_condensed_run_holds_what_was_judged_grade_0_included() -> None:
    """What a measure of another package reads: of a, u, b, v the judged ones, a of grade 0 and b of grade 2."""
    answers = {"q": Ranking(("a", "u", "b", "v"), (4, 3, 2, 1)), "none": Ranking(("u",), (1,))}
    run = GradedRun(join(answers, {"q": {"a": 0, "b": 2}}, ["q", "none"]), [None], 1).condensed
    assert run.returned.tolist() == [2, 0]
    assert run.grades.grades[0, :2].tolist() == [0, 2]
    assert (run.grades.grades[0, 2:] == NO_DOCUMENT).all()
    assert (run.grades.grades[1] == NO_DOCUMENT).all()


def _cases(seed: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Scores without ties, since each tool breaks ties its own way."""
    rng = np.random.default_rng(seed)
    run = {q: dict(zip(DOCUMENTS, rng.permutation(14).astype(float).tolist(), strict=True)) for q in QUERIES}
    judgments = {q: {d: int(rng.integers(0, 5)) for d in rng.choice(DOCUMENTS, 8, replace=False)} for q in QUERIES}
    return run, judgments


@pytest.mark.parametrize("seed", range(3))
def test_err_is_gdevals(seed: int) -> None:
    """gdeval prints five digits."""
    run, judgments = _cases(seed)
    numbered = ({q.removeprefix("q"): row for q, row in table.items()} for table in (judgments, run))
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.ERR @ 10], *numbered)}
    assert ours("err@10", run, judgments) == pytest.approx([theirs[query[1:]] for query in QUERIES], abs=1e-5)


@pytest.mark.parametrize("gain", ["linear", "exp"])
def test_dcg_is_scikit_learns(gain: str) -> None:
    run, judgments = _cases(7)
    grades = np.array([[judgments[q].get(d, 0) for d in DOCUMENTS] for q in QUERIES], dtype=float)
    gains = grades if gain == "linear" else 2**grades - 1
    for row, query in enumerate(QUERIES):
        expected = dcg_score(gains[[row]], [list(run[query].values())], k=5)
        assert ours(f"dcg(gain={gain})@5", run, judgments)[row] == pytest.approx(expected)


def test_rbp_and_its_residual_by_hand() -> None:
    """Relevant, unjudged, irrelevant, relevant with p = 0.5: 1/2 + 1/16 known, 1/4 unjudged, 1/16 below the end."""
    ranked = join({"q": Ranking(("a", "x", "b", "c"), (4, 3, 2, 1))}, {"q": {"a": 1, "b": 0, "c": 2}}, ["q"])
    score, residual = Measure.parse("rbp(p=0.5)"), Measure.parse("rbp_residual(p=0.5)")
    values = score_queries(ranked, [score, residual])
    assert values[score].tolist() == [1 / 2 + 1 / 16]
    assert values[residual].tolist() == [1 / 4 + 1 / 16]


@given(SCORES, GRADES)
def test_the_residual_is_what_rbp_gains_when_the_unjudged_are_relevant(
    scores: Mapping[str, float], judged: Mapping[str, int]
) -> None:
    """And a ranking of fourteen leaves p^14 to what would follow it."""
    run, relevant = {"q": scores}, {**dict.fromkeys(scores, 1), **judged}
    rbp, residual = Measure.parse("rbp(p=0.7)"), Measure.parse("rbp_residual(p=0.7)")
    known = score_queries(join(ScoredRun.of(run), {"q": judged}, ["q"]), [rbp, residual])
    at_most = score_queries(join(ScoredRun.of(run), {"q": relevant}, ["q"]), [rbp])[rbp][0] + 0.7 ** len(scores)
    assert known[rbp][0] + known[residual][0] == pytest.approx(at_most)


def test_err_refuses_a_grade_above_its_scale() -> None:
    with refuses(InputError, "4", "3"):
        ours("err(max=3)@5", {"q1": {"a": 1.0}}, {"q1": {"a": 4}})


def test_the_geometric_mean_by_hand() -> None:
    """Average precisions 1, 1/2 and 0, which counts as 0.00001."""
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"x": 2.0, "b": 1.0}, "q3": {"x": 1.0}}
    judgments = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"b": 1}}
    logs = np.array(ours("gm_map", run, judgments))
    assert logs.tolist() == pytest.approx([0.0, math.log(0.5), math.log(0.00001)])
    assert Measure.parse("gm_map").aggregate(logs) == pytest.approx((0.5 * 0.00001) ** (1 / 3))


def test_the_random_row_of_gm_map_is_the_mean_over_all_orders() -> None:
    """One relevant document among 40: the mean of ln(1 / rank) over the ranks."""
    judgments = {"q": {"a": 1}}
    measure = Measure.parse("gm_map")
    expected = np.log(1 / np.arange(1, 41))
    value = random_expectation(judgments, ["q"], 40, [measure])[measure][0]
    assert value == pytest.approx(expected.mean())


def test_the_random_row_of_a_large_corpus_cut_at_a_place() -> None:
    """ERR's exact expectation against drawn orders."""
    rng = np.random.default_rng(3)
    judged = [4, 3, 3, 1, 1, 0]
    judgments = {"q": {f"d{at}": grade for at, grade in enumerate(judged)}}
    measure = Measure.parse("err@20")
    expected = random_expectation(judgments, ["q"], 60, [measure])[measure][0]
    names = [f"d{at}" for at in range(60)]
    orders = {f"{at}": Ranking(tuple(rng.permutation(names).tolist()), (0.0,) * 60) for at in range(3000)}
    values = score_queries(join(orders, dict.fromkeys(orders, judgments["q"]), list(orders)), [measure])[measure]
    assert abs(values.mean() - expected) < 5 * values.std() / math.sqrt(3000)
