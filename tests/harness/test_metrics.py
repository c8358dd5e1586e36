from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from harness.measures import Measure
from harness.metrics import (
    deepest,
    evaluate,
    join,
    join_scores,
    oracle,
    random_expectation,
    weighted_f1,
)
from harness.ranking import Ranking, ordered

CUTS = (1, 2, 3, 5, 10)
TREC = {f"{ours}@{k}": f"{theirs}_{k}" for k in CUTS for ours, theirs in (
    ("p", "P"), ("recall", "recall"), ("ndcg", "ndcg_cut"), ("map", "map_cut"), ("acc", "success"),
)} | {"map": "map", "mrr": "recip_rank", "rprec": "Rprec", "ndcg": "ndcg"}  # fmt: skip
EVERY = [
    Measure.parse(text)
    for text in ("p@1", "p@3", "p(rel=2)@3", "p@9", "recall", "recall@2", "recall(rel=2)@4", "f1@1", "f1@3", "f1(rel=2)@8",
                 "ndcg", "ndcg@1", "ndcg@3", "ndcg(gain=exp)", "ndcg(gain=exp)@3", "map", "map@2", "map(rel=2)@4",
                 "map(over=found)", "map(over=found)@1", "map(over=found)@3", "map(over=found,rel=3)@9", "mrr", "mrr@3",
                 "mrr(rel=3)", "acc@1", "acc@3", "acc(rel=2)@4", "rprec", "rprec(rel=2)", "judged@1", "judged@3",
                 "judged@9")
]  # fmt: skip

Judgments = Mapping[str, Mapping[str, int]]


def value(text: str, ids: Sequence[str], judged: Mapping[str, int]) -> float:
    """One measure of one ranking, as a user would ask for it."""
    ranking = Ranking(tuple(ids), tuple(float(-place) for place in range(len(ids))))
    measure = Measure.parse(text)
    return float(evaluate(join({"q": ranking}, {"q": judged}, ["q"]), [measure])[measure][0])


def by_definition(measure: Measure, ranked: Sequence[int | None], judged: Sequence[int]) -> float:
    """The textbook definition in plain loops; None is an unjudged document."""
    rel, top = measure.rel or 1, list(ranked[: measure.k])
    hits = [grade is not None and grade >= rel for grade in top]
    relevant = sum(grade >= rel for grade in judged)
    precision = sum(hits) / measure.k if measure.k else 0.0
    recall = sum(hits) / relevant if relevant else 0.0
    precisions = [sum(hits[:rank]) / rank for rank in range(1, len(top) + 1) if hits[rank - 1]]
    if measure.name == "p":
        return precision
    if measure.name == "recall":
        return recall
    if measure.name == "f1":
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    if measure.name == "map":
        over = relevant if measure.over == "relevant" else sum(hits)
        return sum(precisions) / over if over else 0.0
    if measure.name == "mrr":
        return next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)
    if measure.name == "acc":
        return float(any(hits))
    if measure.name == "rprec":
        return sum(hits[:relevant]) / relevant if relevant else 0.0
    if measure.name == "judged":
        return sum(grade is not None for grade in top) / len(top) if top else 0.0

    def dcg(grades: Sequence[int | None]) -> float:
        gains = [(grade or 0) if measure.gain == "linear" else 2 ** (grade or 0) - 1 for grade in grades]
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))

    ideal = dcg(sorted(judged, reverse=True)[: measure.k])
    return dcg(top) / ideal if ideal else 0.0


# Against trec_eval


def trec_values(
    run: Mapping[str, Mapping[str, float]], judgments: Judgments, queries: Sequence[str]
) -> dict[str, list[float]]:
    cuts = ",".join(map(str, CUTS))
    names = {f"{name}.{cuts}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    answer = pytrec_eval.RelevanceEvaluator(judgments, names | {"map", "recip_rank", "Rprec", "ndcg"}).evaluate(run)
    return {ours: [answer.get(query, {}).get(theirs, 0.0) for query in queries] for ours, theirs in TREC.items()}


def assert_equals_trec(
    run: Mapping[str, Mapping[str, float]], judgments: Judgments, queries: Sequence[str], *, depth: int | None = None
) -> None:
    measures = [Measure.parse(text) for text in TREC]
    ours = evaluate(join_scores(run, judgments, queries, ties="trec"), measures)
    theirs = trec_values(run, judgments, queries)
    for measure in measures:
        np.testing.assert_allclose(ours[measure], theirs[str(measure)], rtol=0, atol=1e-9, err_msg=str(measure))


QUERIES = ["q1", "q2", "q3"]
DOCUMENTS = [f"d{n}" for n in range(14)]
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1, max_size=10)
scores = st.dictionaries(
    st.sampled_from(DOCUMENTS),
    st.sampled_from([0.0, 0.1, 0.3, 0.30000000000000004, 0.5, 1.0]) | st.floats(-1e3, 1e3),
    min_size=1,
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(QUERIES), scores),
    st.fixed_dictionaries(dict.fromkeys(QUERIES, grades)),
)
def test_every_value_is_trec_evals(run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]]) -> None:
    """Ties, unjudged documents, missing queries, queries without relevant documents, short rankings, grades 0–3."""
    assert_equals_trec(run, judgments, QUERIES)


@pytest.mark.calibration
@pytest.mark.parametrize("qrels", ["qrels.test", "qrels.rel_level"])
@pytest.mark.parametrize("results", ["results.test", "results.trunc"])
def test_trec_evals_own_files_give_its_own_figures(qrels: str, results: str) -> None:
    if "BAKEOFF_DATA" not in os.environ:
        pytest.skip("BAKEOFF_DATA does not name the folder that holds trec_eval/")
    folder = Path(os.environ["BAKEOFF_DATA"]) / "trec_eval"
    if not (folder / qrels).exists() or not (folder / results).exists():
        pytest.skip(f"{folder} lacks {qrels} or {results}")
    judgments: dict[str, dict[str, int]] = {}
    for query, _, document, grade in (line.split() for line in (folder / qrels).read_text().splitlines()):
        judgments.setdefault(query, {})[document] = int(grade)
    run: dict[str, dict[str, float]] = {}
    for query, _, document, _, score, _ in (line.split() for line in (folder / results).read_text().splitlines()):
        run.setdefault(query, {})[document] = float(score)
    assert_equals_trec(run, judgments, list(judgments))


# Against the definitions


@given(
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3)),
    st.lists(st.sampled_from(DOCUMENTS), unique=True),
    st.none() | st.integers(9, 20),
)
def test_every_measure_is_its_definition(judged: dict[str, int], ids: list[str], depth: int | None) -> None:
    ranking = Ranking(tuple(ids), (0.0,) * len(ids))
    measures = [measure for measure in EVERY if depth is None or (measure.k and measure.k <= depth)]
    values = evaluate(join({"q": ranking}, {"q": judged}, ["q"], depth), measures)
    for measure in measures:
        expected = by_definition(measure, [judged.get(item) for item in ids], list(judged.values()))
        assert values[measure][0] == pytest.approx(expected, abs=1e-12), str(measure)


@given(
    st.dictionaries(st.sampled_from(QUERIES), scores),
    st.fixed_dictionaries(dict.fromkeys(QUERIES, grades)),
    st.randoms(),
)
def test_values_do_not_depend_on_the_company(
    run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]], random: Random
) -> None:
    """The same value alone or among other queries and measures, whatever their order."""
    shuffled = random.sample(EVERY, len(EVERY))
    together = evaluate(join_scores(run, judgments, QUERIES), shuffled)
    for row, query in enumerate(QUERIES):
        alone = join_scores(run, judgments, [query])
        for measure in shuffled:
            assert evaluate(alone, [measure])[measure][0] == pytest.approx(together[measure][row], abs=1e-15)


@given(grades, st.lists(st.sampled_from(DOCUMENTS), unique=True))
def test_no_ranking_beats_the_oracle(judged: dict[str, int], ids: list[str]) -> None:
    measures = [measure for measure in EVERY if measure.over == "relevant" and measure.name != "judged"]
    ranked = join({"q": Ranking(tuple(ids), (0.0,) * len(ids))}, {"q": judged}, ["q"])
    mine, best = evaluate(ranked, measures), evaluate(oracle({"q": judged}, ["q"], len(DOCUMENTS)), measures)
    for measure in measures:
        assert 0 <= mine[measure][0] <= best[measure][0] + 1e-12 <= 1 + 1e-12, str(measure)


# Worked examples of the field's documents


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


def test_weighted_f1_of_three_classes() -> None:
    # F1 = 2·TP / (true + predicted): 100/130, 160/210, 70/120, weighted 65, 100, 65 of 230
    confusion = [[50, 10, 5], [5, 80, 15], [10, 20, 35]]
    exact = (65 * Fraction(100, 130) + 100 * Fraction(160, 210) + 65 * Fraction(70, 120)) / 230
    assert exact == Fraction(919, 1288)
    assert weighted_f1(confusion) == pytest.approx(float(exact), abs=1e-15)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_weighted_f1_is_sklearns(pairs: list[tuple[int, int]]) -> None:
    counts = Counter(pairs)
    confusion = [[counts[true, predicted] for predicted in range(4)] for true in range(4)]
    true, predicted = zip(*pairs, strict=True)
    expected = f1_score(true, predicted, average="weighted", zero_division=0)
    assert weighted_f1(confusion) == pytest.approx(expected, abs=1e-12)


def test_weighted_f1_of_nothing_is_zero() -> None:
    assert weighted_f1([[0, 0], [0, 0]]) == 0


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


@pytest.mark.parametrize("measure", EVERY, ids=str)
def test_an_empty_result_scores_zero(measure: Measure) -> None:
    for rankings in ({}, {"q": Ranking((), ())}):
        assert evaluate(join(rankings, {"q": {"a": 3}}, ["q"]), [measure])[measure].tolist() == [0.0]


@pytest.mark.parametrize("measure", [measure for measure in EVERY if measure.name != "judged"], ids=str)
def test_a_query_without_relevant_documents_scores_zero_and_stays_in_the_mean(measure: Measure) -> None:
    rankings = {query: Ranking(("a",), (1.0,)) for query in ("q1", "q2", "q3")}
    values = evaluate(join(rankings, {"q1": {"a": 3}, "q2": {"a": 0}}, ["q1", "q2", "q3"]), [measure])[measure]
    assert values[0] > 0
    assert values[1:].tolist() == [0.0, 0.0]


@given(st.permutations(["d1", "d2", "d3", "d4"]), st.sampled_from(["d1", "d2", "d3", "d4"]))
def test_a_constant_scorer_gains_nothing_from_ties(order: list[str], relevant: str) -> None:
    """Whatever order the store answered in, equal scores stand by id."""
    run = {"q": dict.fromkeys(order, 0.5)}
    measure = Measure.parse("mrr")
    expected = 1 / (["d1", "d2", "d3", "d4"].index(relevant) + 1)
    assert evaluate(join_scores(run, {"q": {relevant: 1}}, ["q"]), [measure])[measure].tolist() == [expected]
    rankings = {"q": ordered(run["q"].items())}
    assert evaluate(join(rankings, {"q": {relevant: 1}}, ["q"]), [measure])[measure].tolist() == [expected]


def test_unjudged_documents_are_not_relevant_and_are_counted() -> None:
    assert value("p@2", "ax", {"a": 1}) == 0.5
    assert value("judged@2", "ax", {"a": 0}) == 0.5
    assert value("judged@10", "ax", {"a": 0, "x": 0}) == 1.0  # of the two that came back


def test_the_tasks_threshold_holds_unless_a_measure_has_its_own() -> None:
    ranked = join({"q": Ranking(("a", "b"), (2.0, 1.0))}, {"q": {"a": 1, "b": 2}}, ["q"])
    tasks, own = Measure.parse("p@2"), Measure.parse("p(rel=1)@2")
    values = evaluate(ranked, [tasks, own], rel=2)
    assert (values[tasks][0], values[own][0]) == (0.5, 1.0)


def test_a_measure_that_reads_deeper_than_was_joined_is_refused() -> None:
    ranked = join({"q": Ranking(("a", "b"), (2.0, 1.0))}, {"q": {"a": 1}}, ["q"], depth=1)
    for text in ("p@2", "map", "rprec"):
        with pytest.raises(ValueError, match="reads deeper than the 1 places"):
            evaluate(ranked, [Measure.parse(text)])
    assert deepest([Measure.parse("p@1")]) == 1


def test_no_queries_and_no_measures_are_no_trouble() -> None:
    assert evaluate(join({}, {}, []), EVERY)[EVERY[0]].tolist() == []
    assert evaluate(join({}, {}, ["q"]), []) == {}


# The two rows that no provider made


def test_the_oracle_is_the_ceiling() -> None:
    perfect = oracle({"q": {"a": 3, "b": 1, "c": 0}}, ["q", "unjudged"], n_documents=8)
    expected = {
        "p@1": 1,
        "p@4": 2 / 4,
        "recall@1": 1 / 2,
        "f1@4": 2 / 3,
        "ndcg@4": 1,
        "map": 1,
        "mrr": 1,
        "judged@4": 3 / 4,
    }
    values = evaluate(perfect, [Measure.parse(text) for text in expected])
    for text, best in expected.items():
        assert values[Measure.parse(text)].tolist() == pytest.approx([best, 0.0]), text


CORPORA = [
    (1, []), (1, [0]), (1, [2]), (2, [1]), (5, [3]), (6, [3, 1, 0]), (6, [2, 2, 1, 1]), (6, [1] * 6), (6, [3, 2, 1, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("size", "judged"), CORPORA)
@pytest.mark.parametrize("measure", EVERY, ids=str)
def test_the_random_row_is_the_mean_over_all_orders(size: int, judged: list[int], measure: Measure) -> None:
    corpus: list[int | None] = [*judged, *[None] * (size - len(judged))]
    # Equal documents make equal orders: each distinct order stands for the same number of permutations.
    orders = set(itertools.permutations(corpus))
    mean = math.fsum(by_definition(measure, order, judged) for order in orders) / len(orders)
    judgments = {"q": {f"d{index}": grade for index, grade in enumerate(judged)}}
    expected = random_expectation(judgments, ["q"], size, [measure])[measure]
    assert expected.tolist() == pytest.approx([mean], abs=1e-12)


def test_the_random_row_of_a_large_corpus_is_sampled_right() -> None:
    rng = np.random.default_rng(7)
    judged = [3, 2, 2, 1, 1, 1, 0]
    corpus = np.concatenate((judged, np.full(293, -1)))
    measures = [Measure.parse(text) for text in ("mrr", "mrr@10", "map", "map(over=found)@50", "ndcg@20", "acc@30")]
    judgments = {"q": {f"d{index}": grade for index, grade in enumerate(judged)}}
    expected = random_expectation(judgments, ["q"], len(corpus), measures)
    draws = 4000
    samples = np.array(
        [
            [
                by_definition(m, [g if g >= 0 else None for g in rng.permutation(corpus).tolist()], judged)
                for m in measures
            ]
            for _ in range(draws)
        ]
    )
    errors = samples.std(axis=0) / math.sqrt(draws)
    for at, measure in enumerate(measures):
        assert abs(samples[:, at].mean() - expected[measure][0]) < 5 * errors[at], str(measure)


def test_more_judged_than_documents_is_refused() -> None:
    from providers.errors import InputError

    for call in (
        lambda: oracle({"q": {"a": 1, "b": 1}}, ["q"], 1),
        lambda: random_expectation({"q": {"a": 1, "b": 1}}, ["q"], 1, []),
    ):
        with pytest.raises(InputError, match="2 documents are judged"):
            call()
