from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
import pytrec_eval
from bakeoff.core.ranking import Ranking, ScoredRun
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, oracle, random_expectation, score_queries
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.errors import refuses
from tests.examples import examples

CUTS = (1, 2, 3, 5, 10)
TREC = {f"{ours}@{k}": f"{theirs}_{k}" for k in CUTS for ours, theirs in (
    ("p", "P"), ("recall", "recall"), ("ndcg", "ndcg_cut"), ("map", "map_cut"), ("acc", "success"),
)} | {"map": "map", "mrr": "recip_rank", "rprec": "Rprec", "ndcg": "ndcg"}  # fmt: skip
SPELLINGS = """
    p@1 p@3 p(rel=2)@3 p@9 recall recall@2 recall(rel=2)@4 f1@1 f1@3 f1(rel=2)@8
    ndcg ndcg@1 ndcg@3 ndcg(gain=exp) ndcg(gain=exp)@3 map map@2 map(rel=2)@4
    map(over=found) map(over=found)@1 map(over=found)@3 map(over=found,rel=3)@9
    mrr mrr@3 mrr(rel=3) acc@1 acc@3 acc(rel=2)@4 rprec rprec(rel=2) judged@1 judged@3 judged@9
    dcg dcg@3 dcg(gain=exp)@4 rbp rbp(p=0.5)@3 rbp(rel=2)@9 rbp_residual rbp_residual(p=0.5)@3 err err@3 err(max=3)@9
    bpref bpref(rel=2) infap infap(pool=ranked) infap(pool=ranked,rel=2)
    ndcg(unjudged=removed)@3 p(unjudged=removed)@3 map(unjudged=removed) mrr(unjudged=removed) acc(unjudged=removed)@1
    recall(unjudged=removed)@2 rprec(unjudged=removed) rbp(unjudged=removed)@3 err(unjudged=removed)@3
"""
EVERY = [Measure.parse(text) for text in SPELLINGS.split()]

Judgments = Mapping[str, Mapping[str, int]]


def by_definition(measure: Measure, ranked: Sequence[int | None], judged: Sequence[int]) -> float:
    """The textbook definition in plain loops; None is an unjudged document."""
    if measure.condensed:
        ranked = [grade for grade in ranked if grade is not None]
    rel, top = measure.options.get("rel") or 1, list(ranked[: measure.k])
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
        over = relevant if measure.options["over"] == "relevant" else sum(hits)
        return sum(precisions) / over if over else 0.0
    if measure.name == "mrr":
        return next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)
    if measure.name == "acc":
        return float(any(hits))
    if measure.name == "rprec":
        return sum(hits[:relevant]) / relevant if relevant else 0.0
    if measure.name == "judged":
        return sum(grade is not None for grade in top) / len(top) if top else 1.0

    if measure.name.startswith("rbp"):
        p: float = measure.options["p"]
        if measure.name == "rbp_residual":
            return 1 - sum((1 - p) * p**at for at, grade in enumerate(top) if grade is not None)
        return sum((1 - p) * p**at for at, hit in enumerate(hits) if hit)
    if measure.name == "err":
        left, sum_ = 1.0, 0.0
        for rank, grade in enumerate(top, 1):
            satisfied = (2 ** (grade or 0) - 1) / 2 ** measure.options["max"]
            left, sum_ = left * (1 - satisfied), sum_ + left * satisfied / rank
        return sum_
    if measure.name in ("bpref", "infap"):
        return incomplete(measure, top, relevant, len(judged) - relevant, rel)

    def dcg(grades: Sequence[int | None]) -> float:
        gains = [(grade or 0) if measure.options["gain"] == "linear" else 2 ** (grade or 0) - 1 for grade in grades]
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))

    if measure.name == "dcg":
        return dcg(top)
    ideal = dcg(sorted(judged, reverse=True)[: measure.k])
    return dcg(top) / ideal if ideal else 0.0


def incomplete(measure: Measure, top: Sequence[int | None], relevant: int, irrelevant: int, rel: int) -> float:
    """bpref and infAP, one document after the other, as trec_eval walks."""
    hits = misses = unjudged = 0
    sum_ = 0.0
    for rank, grade in enumerate(top, 1):
        if grade is None:
            unjudged += 1
        elif grade < rel:
            misses += 1
        else:
            if measure.name == "bpref":
                sum_ += 1 - min(misses, relevant) / min(irrelevant, relevant) if misses else 1
            else:
                pooled = hits + misses + (unjudged if measure.options["pool"] == "ranked" else 0)
                sum_ += 1 / rank + pooled / rank * (hits + 1e-5) / (hits + misses + 2e-5)
            hits += 1
    return sum_ / relevant if relevant else 0.0


# Against trec_eval


def trec_values(
    run: Mapping[str, Mapping[str, float]], judgments: Judgments, queries: Sequence[str]
) -> dict[str, list[float]]:
    cuts = ",".join(map(str, CUTS))
    names = {f"{name}.{cuts}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    answer = pytrec_eval.RelevanceEvaluator(judgments, names | {"map", "recip_rank", "Rprec", "ndcg"}).evaluate(run)
    return {ours: [answer.get(query, {}).get(theirs, 0.0) for query in queries] for ours, theirs in TREC.items()}


def assert_equals_trec(
    run: Mapping[str, Mapping[str, float]],
    judgments: Judgments,
    queries: Sequence[str],
    theirs: Judgments | None = None,
) -> None:
    measures = [Measure.parse(text) for text in TREC]
    ours = score_queries(join(ScoredRun.of(run, np.float32), judgments, queries), measures)
    expected = trec_values(run, theirs or judgments, queries)
    for measure in measures:
        np.testing.assert_allclose(ours[measure], expected[str(measure)], rtol=0, atol=1e-9, err_msg=str(measure))


QUERIES = ["q1", "q2", "q3"]
DOCUMENTS = [f"d{n}" for n in range(14)]
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1, max_size=10)
scores = st.dictionaries(
    st.sampled_from(DOCUMENTS),
    st.sampled_from([0.0, 0.1, 0.3, 0.30000000000000004, 0.5, 1.0]) | st.floats(-1e3, 1e3),
    min_size=1,
)


@settings(max_examples=examples(300))
@given(
    st.dictionaries(st.sampled_from(QUERIES), scores),
    st.fixed_dictionaries(dict.fromkeys(QUERIES, grades)),
)
def test_every_value_is_trec_evals(run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]]) -> None:
    """Ties, unjudged documents, missing queries, queries without relevant documents, short rankings, grades 0–3."""
    assert_equals_trec(run, judgments, QUERIES)


def trec_eval_files(qrels: str, results: str) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]], str]:
    if "BAKEOFF_DATA" not in os.environ:
        pytest.skip("BAKEOFF_DATA does not name the folder that holds trec_eval/")
    folder = Path(os.environ["BAKEOFF_DATA"]) / "trec_eval"
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist")
    judgments: dict[str, dict[str, int]] = {}
    for query, _, document, grade in (line.split() for line in (folder / qrels).read_text().splitlines()):
        judgments.setdefault(query, {})[document] = int(grade)
    run: dict[str, dict[str, float]] = {}
    for line in (folder / results).read_text().splitlines():
        query, _, document, _, score = line.split()[:5]
        run.setdefault(query, {})[document] = float(score)
    return judgments, run, (folder / "out.test").read_text()


@pytest.mark.calibration
@pytest.mark.parametrize("qrels", ["qrels.test", "qrels.rel_level"])
@pytest.mark.parametrize("results", ["results.test", "results.trunc"])
def test_trec_evals_own_files_give_its_values(qrels: str, results: str) -> None:
    judgments, run, _ = trec_eval_files(qrels, results)
    # trec_eval takes a negative grade for unjudged; here that is an error, so such lines are left out.
    graded = {query: {d: grade for d, grade in row.items() if grade >= 0} for query, row in judgments.items()}
    assert_equals_trec(run, graded, list(judgments), theirs=judgments)


@pytest.mark.calibration
def test_trec_evals_own_files_give_the_figures_it_printed() -> None:
    judgments, run, printed = trec_eval_files("qrels.test", "results.test")
    ranked = join(ScoredRun.of(run, np.float32), judgments, list(judgments))
    figures = {line.split()[0]: line.split()[2] for line in printed.splitlines()}
    cuts = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
    names = {"map": "map", "mrr": "recip_rank", "rprec": "Rprec"} | {f"p@{k}": f"P_{k}" for k in cuts}
    for text, name in names.items():
        measure = Measure.parse(text)
        assert f"{score_queries(ranked, [measure])[measure].mean():.4f}" == figures[name], text


# Against the definitions


@given(
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3)),
    st.lists(st.sampled_from(DOCUMENTS), unique=True),
    st.none() | st.integers(9, 20),
)
def test_every_measure_is_its_definition(judged: dict[str, int], ids: list[str], depth: int | None) -> None:
    ranking = Ranking(tuple(ids), (0.0,) * len(ids))
    measures = [measure for measure in EVERY if depth is None or (measure.depth_read and measure.depth_read <= depth)]
    values = score_queries(join({"q": ranking}, {"q": judged}, ["q"], depth), measures)
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
    together = score_queries(join(ScoredRun.of(run), judgments, QUERIES), shuffled)
    for row, query in enumerate(QUERIES):
        alone = join(ScoredRun.of(run), judgments, [query])
        for measure in shuffled:
            assert score_queries(alone, [measure])[measure][0] == pytest.approx(
                together[measure][row], rel=1e-14, abs=1e-15
            )


@given(grades, st.lists(st.sampled_from(DOCUMENTS), unique=True), st.none() | st.integers(1, 5))
def test_no_ranking_beats_the_oracle(judged: dict[str, int], ids: list[str], depth: int | None) -> None:
    """Also where everyone is cut at the same depth, and then the oracle is one of the rankings.

    Not by all measures: the perfect ranking puts grade 0 last though it is judged, of a residual less is surer, and
    over what was found a single hit at the top is as good as all of them.
    """
    beatable = {"judged", "rbp_residual"}
    measures = [m for m in EVERY if m.name not in beatable and m.options.get("over") != "found"]
    perfect = sorted(judged, key=lambda item: -judged[item])
    perfect += [item for item in DOCUMENTS if item not in judged]
    mine, reached = (
        score_queries(
            join({"q": Ranking(tuple(answer), (0.0,) * len(answer)).cut(depth or 99)}, {"q": judged}, ["q"]), measures
        )
        for answer in (ids, perfect)
    )
    best = score_queries(oracle({"q": judged}, ["q"], len(DOCUMENTS), depth), measures)
    for measure in measures:
        assert best[measure][0] == pytest.approx(reached[measure][0]), str(measure)
        most = np.inf if measure.name == "dcg" else 1
        assert 0 <= mine[measure][0] <= best[measure][0] + 1e-12 <= most + 1e-12, str(measure)


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
    values = score_queries(perfect, [Measure.parse(text) for text in expected])
    for text, best in expected.items():
        assert values[Measure.parse(text)].tolist() == pytest.approx([best, 0.0]), text


@pytest.mark.parametrize(
    ("size", "judged"),
    [
        (1, []),
        (1, [0]),
        (1, [2]),
        (2, [1]),
        (5, [3]),
        (6, [3, 1, 0]),
        (6, [2, 2, 1, 1]),
        (6, [1] * 6),
        (7, [3, 2, 1, 0]),
    ],
)
@pytest.mark.parametrize("depth", [None, 1, 3, 9])
def test_the_random_row_is_the_mean_over_all_orders(size: int, judged: list[int], depth: int | None) -> None:
    """Of every order only the first `depth` places come back, as from a contender."""
    corpus: list[int | None] = [*judged, *[None] * (size - len(judged))]
    # Equal documents make equal orders: each distinct order stands for the same number of permutations.
    orders = set(itertools.permutations(corpus))
    judgments = {"q": {f"d{index}": grade for index, grade in enumerate(judged)}}
    expected = random_expectation(judgments, ["q"], size, EVERY, depth=depth)
    for measure in EVERY:
        mean = math.fsum(by_definition(measure, order[:depth], judged) for order in orders) / len(orders)
        assert expected[measure].tolist() == pytest.approx([mean], abs=1e-12), str(measure)


def test_the_random_row_of_a_large_corpus_is_sampled_right() -> None:
    rng = np.random.default_rng(7)
    judged = [3, 2, 2, 1, 1, 1, 0]
    corpus = np.concatenate((judged, np.full(293, -1)))
    measures = [Measure.parse(text) for text in ("mrr", "mrr@10", "map", "map(over=found)@50", "ndcg@20", "acc@30")]
    judgments = {"q": {f"d{index}": grade for index, grade in enumerate(judged)}}
    expected = random_expectation(judgments, ["q"], len(corpus), measures)
    draws = 1000
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


def test_the_oracle_returns_as_many_as_a_contender() -> None:
    judgments = {"q": {"a": 3, "b": 1, "c": 0}}
    for depth, returned in ((None, 8), (2, 2), (8, 8), (20, 8)):
        assert oracle(judgments, ["q", "unjudged"], 8, depth).returned.tolist() == [returned] * 2
    judged = Measure.parse("judged@2")
    assert score_queries(oracle(judgments, ["q"], 8, 1), [judged])[judged].tolist() == [
        1.0
    ]  # of the one that came back


def test_more_judged_than_documents_is_refused() -> None:
    judgments = {"q": {"a": 1, "b": 1}}
    with refuses(InputError, "2"):
        oracle(judgments, ["q"], 1)
    with refuses(InputError, "2"):
        random_expectation(judgments, ["q"], 1, [])


def test_a_corpus_without_documents_is_refused() -> None:
    with refuses(InputError, "0"):
        oracle({}, ["q"], 0)
    with refuses(InputError, "0"):
        random_expectation({}, ["q"], 0, [])
