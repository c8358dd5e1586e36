"""Scoring runs made elsewhere: pytrec_eval's values, scipy's tests, and what must be said beside them."""

from __future__ import annotations

import csv
import io
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from bakeoff.core.facts import fact
from bakeoff.core.ranking import make_ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.report.scores import as_csv, as_json
from bakeoff.results.schema import read_summary
from bakeoff.results.score import run_names, score
from bakeoff.tasks.formats.trec import read_run, run_parts
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from tests.errors import refuses
from tests.examples import examples

NDCG, MAP = Measure.parse("ndcg@10"), Measure.parse("map")
QRELS = {"q1": {"d1": 1}, "q2": {"d1": 2, "d2": 1}, "q3": {"d3": 0}}
GOOD = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}, "q3": {"d3": 1.0}}
POOR = {"q1": {"d2": 2.0, "d1": 1.0}, "q9": {"d1": 1.0}}


def test_means_are_over_every_judged_query() -> None:
    scored = score(QRELS, {"good": GOOD, "poor": POOR}, [NDCG])
    # good: 1, 1, and 0 where nothing is relevant; poor: found at rank 2, and two queries that it lacks
    assert scored.mean("good", NDCG) == pytest.approx(2 / 3)
    assert scored.mean("poor", NDCG) == pytest.approx(1 / np.log2(3) / 3)
    assert scored.best[NDCG] == ["good", "poor"]  # three queries tell nothing apart
    (pair,) = scored.pairs[NDCG]
    assert (pair.wins, pair.ties, pair.losses) == (2, 1, 0)
    assert scored.notes == [
        fact("run_lacks", run="poor", count=2, named=["q2", "q3"], of=3),
        fact("run_unjudged", run="poor", count=1, named=["q9"]),
        fact("nothing_relevant", count=1, queries=["q3"]),
    ]


class Meeting(dict[str, dict[str, float]]):
    """A run that waits, when it is first joined, until another one is joined too."""

    def __init__(self, run: dict[str, dict[str, float]], barrier: threading.Barrier) -> None:
        super().__init__(run)
        self._waits = [barrier.wait]

    def get(self, query: str, default: Any = None) -> Any:
        while self._waits:
            self._waits.pop()(timeout=20)
        return super().get(query, default)


def test_runs_are_scored_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, the first would wait for the second until the barrier breaks."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    barrier = threading.Barrier(2)
    scored = score(QRELS, {"good": Meeting(GOOD, barrier), "poor": Meeting(POOR, barrier)}, [NDCG])
    assert scored.mean("good", NDCG) == pytest.approx(2 / 3)


def test_answered_averages_as_trec_eval_does_by_default() -> None:
    scored = score(QRELS, {"good": GOOD, "poor": POOR}, [NDCG], answered=True)
    assert scored.queries == ["q1"]
    assert scored.mean("poor", NDCG) == pytest.approx(1 / np.log2(3))
    assert scored.notes[0] == fact("left_out", queries=2, judged=3)


def test_rel_moves_the_threshold() -> None:
    recall = Measure.parse("recall@10")
    assert score({"q": {"d1": 1, "d2": 2}}, {"r": {"q": {"d2": 1.0}}}, [recall]).mean("r", recall) == 0.5
    assert score({"q": {"d1": 1, "d2": 2}}, {"r": {"q": {"d2": 1.0}}}, [recall], rel=2).mean("r", recall) == 1.0


IDS = st.sampled_from([f"d{number}" for number in range(9)])
QUERIES = st.sampled_from([f"q{number}" for number in range(6)])
RUNS = st.dictionaries(QUERIES, st.dictionaries(IDS, st.sampled_from([0.0, 0.5, 1.0]) | st.floats(-9, 9), min_size=1))


@settings(max_examples=examples(40))
@given(
    st.dictionaries(QUERIES, st.dictionaries(IDS, st.integers(0, 3), min_size=1), min_size=1),
    RUNS,
    RUNS,
)
def test_values_are_those_of_pytrec_eval(judgments: dict[str, dict[str, int]], one: Any, other: Any) -> None:
    query = next(iter(judgments))
    runs = {"one": {**one, query: {"d1": 1.0}}, "other": {**other, query: {"d2": 1.0}}}
    scored = score(judgments, runs, [NDCG, MAP], precision="single")
    evaluator = pytrec_eval.RelevanceEvaluator(judgments, {"ndcg_cut.10", "map"})
    for name, run in runs.items():
        theirs = evaluator.evaluate(run)
        for measure, key in ((NDCG, "ndcg_cut_10"), (MAP, "map")):
            expected = [theirs[q][key] if q in theirs else 0.0 for q in judgments]
            assert scored.runs[name][measure] == pytest.approx(expected, abs=1e-9)
            assert scored.mean(name, measure) == pytest.approx(np.mean(expected), abs=1e-9)


def test_several_runs_are_tested_and_the_tests_agree_with_scipy() -> None:
    rng = np.random.default_rng(7)
    judgments = {f"q{number}": {"d1": 1} for number in range(60)}
    filler = {f"x{number}": 1 - number / 100 for number in range(9)}
    runs = {
        name: {query: {**filler, "d1": float(rng.choice([1.5, 0.95, 0.9], p=chances))} for query in judgments}
        for name, chances in (("strong", [0.9, 0.1, 0.0]), ("weak", [0.3, 0.4, 0.3]))
    }
    scored = score(judgments, runs, [NDCG])
    (pair,) = scored.pairs[NDCG]
    strong, weak = (scored.runs[name][NDCG] for name in ("strong", "weak"))
    exact = scipy_stats.permutation_test(
        (strong, weak),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        rng=rng,
    )
    assert pair.p == pytest.approx(exact.pvalue, abs=2e-3)
    assert pair.difference == pytest.approx(float(strong.mean() - weak.mean()))
    low, high = scored.intervals["weak"][NDCG]
    theirs = scipy_stats.bootstrap((weak,), np.mean, rng=rng, method="BCa").confidence_interval
    assert (low, high) == pytest.approx(
        (theirs.low, theirs.high), abs=0.02
    )  # means of few distinct values move in steps
    assert scored.best[NDCG] == ["strong"]


def test_csv_and_json_carry_every_digit() -> None:
    scored = score(QRELS, {"good": GOOD, "poor": POOR}, [NDCG, MAP])
    rows = list(csv.DictReader(io.StringIO(as_csv(scored, per_query=True))))
    assert len(rows) == 2 * 2 * (3 + 1)
    value = next(row for row in rows if (row["run"], row["measure"], row["query"]) == ("poor", "ndcg@10", "q1"))
    assert float(value["value"]) == 1 / np.log2(3)
    content = json.loads(as_json(scored, per_query=True))
    assert content["runs"]["poor"]["ndcg@10"]["queries"]["q1"] == 1 / np.log2(3)
    assert content["pairs"]["ndcg@10"][0]["a"] == "good"
    assert "queries" not in json.loads(as_json(scored))["runs"]["poor"]["ndcg@10"]


def test_one_query_has_no_interval_but_is_printed() -> None:
    scored = score({"q1": {"d1": 1}}, {"good": GOOD}, [NDCG])
    assert as_csv(scored).splitlines()[1] == "good,ndcg@10,all,1.0,,"
    assert json.loads(as_json(scored))["runs"]["good"]["ndcg@10"]["low"] is None


def test_runs_that_share_nothing_with_the_qrels_are_refused() -> None:
    with refuses(InputError, "other"):
        score(QRELS, {"good": GOOD, "other": {"x": {"d1": 1.0}}}, [NDCG])
    with refuses(InputError):
        score(
            {"q1": {"d1": 1}, "q2": {"d1": 1}},
            {"a": {"q1": {"d": 1.0}}, "b": {"q2": {"d": 1.0}}},
            [NDCG],
            answered=True,
        )


def test_runs_are_named_by_their_files() -> None:
    assert run_names([Path("a/bm25.trec.gz"), Path("b/minilm.run"), Path("c/x.txt")]) == ["bm25", "minilm", "x.txt"]
    assert run_names([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    with refuses(InputError, "a/run"):
        run_names([Path("a/run"), Path("a/run")])


@settings(max_examples=examples(40))
@given(
    st.dictionaries(
        QUERIES, st.dictionaries(IDS, st.sampled_from([0.0, 0.5, 1.0]) | st.floats(-9, 9), min_size=1), min_size=1
    ),
    st.dictionaries(QUERIES, st.dictionaries(IDS, st.integers(0, 3), min_size=1), min_size=1),
)
def test_a_ranking_written_here_scores_the_same_when_it_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]]
) -> None:
    from bakeoff.evaluation.ranked_grades import join
    from bakeoff.evaluation.score import score_queries

    rankings = {query: make_ranking(scores.items()) for query, scores in run.items()}
    queries = list(judgments)
    here = score_queries(join(rankings, judgments, queries), [NDCG, MAP])
    file = tmp_path_factory.getbasetemp() / "round.trec"
    file.write_text("".join(run_parts(rankings, "tag")))
    if not set(run) & set(judgments):
        return
    there = score(judgments, {"read": read_run(file)}, [NDCG, MAP]).runs["read"]
    for measure in (NDCG, MAP):
        assert there[measure] == pytest.approx(here[measure], abs=1e-9)


def test_the_precision_in_which_scores_are_sorted_is_chosen_and_named() -> None:
    """Two scores that differ in the ninth digit: equal in single precision, where the later id then comes first."""
    run, mrr = {"q": {"a": 1.0 + 1e-9, "b": 1.0}}, Measure.parse("mrr")
    double = score({"q": {"b": 1}}, {"r": run}, [mrr])
    single = score({"q": {"b": 1}}, {"r": run}, [mrr], precision="single")
    assert (double.mean("r", mrr), single.mean("r", mrr)) == (0.5, 1.0)
    assert [json.loads(as_json(scored))["precision"] for scored in (double, single)] == ["double", "single"]


def test_runs_with_equal_figures_have_equal_marks(tmp_path: Path) -> None:
    from bakeoff.cli.main import app
    from typer.testing import CliRunner

    (tmp_path / "q.qrels").write_text("".join(f"q{number} 0 d1 1\n" for number in range(8)))
    run = "".join(f"q{number} Q0 d1 1 2 x\nq{number} Q0 d2 2 1 x\n" for number in range(8))
    for name in ("a.trec", "b.trec"):
        (tmp_path / name).write_text(run)
    files = [str(tmp_path / name) for name in ("q.qrels", "a.trec", "b.trec")]
    done = CliRunner().invoke(app, ["score", *files, "-m", "mrr"])
    rows = [line for line in done.stdout.splitlines() if "1.0000" in line and "★" in line]
    assert len(rows) == 2, done.stdout


def test_the_files_of_a_result_score_as_its_matrix_says() -> None:
    """The built-in task counts grades from 2 on as relevant, which qrels can't say."""
    folder = Path(__file__).parents[2] / "results/reference"
    rows = {row.label: row for row in read_summary(folder).rows if row.ran}
    runs = {path.stem: path for path in (folder / "runs").glob("*.trec") if path.stem in rows}
    scored = score(folder / "judgments.qrels", runs, ["mrr", "p@5"])
    assert scored.rel == 2
    assert len(runs) > 3
    for name in runs:
        for measure in scored.measures:
            assert scored.mean(name, measure) == pytest.approx(rows[name].measures[str(measure)].mean, abs=1e-9)
    assert score(folder / "judgments.qrels", runs, ["mrr"], rel=1).rel == 1
