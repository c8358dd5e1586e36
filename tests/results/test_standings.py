"""Standings, equivalence and plans, over scores that are ordered by hand and a result that was saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.matrix import keys, matrix
from bakeoff.results.plan_queries import plan_queries
from bakeoff.results.result import load
from bakeoff.results.save import save
from bakeoff.results.schema import Detailed, Row, Value
from bakeoff.results.standings import restated, standing_sections, with_standings
from bakeoff.results.verdict import decide
from bakeoff.running.runner import run
from bakeoff.statistics.averaging import PerQuery
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

NDCG = Measure.parse("ndcg@10")


def test_better_equivalent_and_undecided_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    best = rng.uniform(0.4, 0.9, 100)
    scores = {
        "best": best,
        "alike": best - 0.001 + rng.normal(0, 0.002, 100),
        "open": best - 0.02 + rng.normal(0, 0.3, 100),
        "bad": best - 0.2,
    }
    rows = [
        Row(label=label, row_type="dense", measures={"ndcg@10": Value(float(v.mean()))}) for label, v in scores.items()
    ]
    verdict = with_standings(decide(scores, NDCG, rows, PerQuery(42)), scores, 0.02, PerQuery())
    assert {label: standing.relation for label, standing in verdict.standings.items()} == {
        "best": "best",
        "alike": "equivalent",
        "open": "undecided",
        "bad": "worse",
    }
    assert verdict.sentences[-1] == (
        "alike is as good as best within 0.02 (two one-sided tests, Holm, 5%); for open it is undecided."
    )
    assert sum(standing.probability for standing in verdict.standings.values()) == pytest.approx(1)
    (section,) = standing_sections(verdict)
    assert [row[0] for row in section.rows][-1] == "bad"
    assert section.notes[0].endswith("on average. Undecided: neither a difference nor equivalence is shown.")
    assert (
        with_standings(decide({"best": best}, NDCG, rows[:1], PerQuery(42)), {"best": best}, 0.02, PerQuery()).standings
        == {}
    )


def test_rows_that_answer_alike_are_not_undecided() -> None:
    values = np.random.default_rng(1).uniform(0.4, 0.9, 20)
    scores = {"one": values, "other": values.copy(), "worse": values - 0.3}
    rows = [
        Row(label=label, row_type="dense", measures={"ndcg@10": Value(float(v.mean()))}) for label, v in scores.items()
    ]
    verdict = with_standings(decide(scores, NDCG, rows, PerQuery(42)), scores, None, PerQuery())
    assert {label: s.relation for label, s in verdict.standings.items()} == {
        "one": "best",
        "other": "same",
        "worse": "worse",
    }
    (section,) = standing_sections(verdict)
    assert "the same score on every query" in {row[3] for row in section.rows}
    assert section.notes[0].endswith("on average; rows that score alike share their wins.")  # and no row is undecided


@pytest.mark.parametrize(("queries", "relation"), [(3, "same"), (400, "equivalent")])
def test_three_queries_without_a_difference_do_not_show_equivalence(queries: int, relation: str) -> None:
    """0.98³ is 0.94 and 0.98⁴⁰⁰ is 0.0003: so likely is it not to meet a loss that is as large as the margin."""
    values = np.random.default_rng(2).uniform(0.4, 0.9, queries)
    scores = {"one": values, "other": values.copy()}
    rows = [
        Row(label=label, row_type="dense", measures={"ndcg@10": Value(float(v.mean()))}) for label, v in scores.items()
    ]
    verdict = with_standings(decide(scores, NDCG, rows, PerQuery(42)), scores, 0.02, PerQuery())
    assert verdict.standings["other"].relation == relation
    assert verdict.standings["other"].p_equivalent == pytest.approx(0.98**queries, abs=0.01)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("standings")
    words = ["copper", "lake", "forest", "rail", "boat", "stone", "river", "mill"]
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{n}", "title": "", "text": "{words[n % 8]} {words[n % 3]} {n}"}}\n' for n in range(24))
    )
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "q{n}", "text": "{words[n % 8]} {n}"}}\n' for n in range(12))
    )
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\t{n + 8}\t1\n" for n in range(12))
    )
    (folder / "lineup.toml").write_text(
        'task = {format = "beir", folder = "."}\nmeasures = ["ndcg@10"]\nequivalent_within = 0.01\n'
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = ["faiss", "chroma"]\n'
    )
    return save(run(Lineup.read(folder / "lineup.toml")), folder / "results")


def test_a_margin_in_the_line_up_is_in_the_result_and_another_can_be_asked_for(result: Path) -> None:
    summary = load(result).summary
    assert summary.verdict.equivalent_within == 0.01
    assert "Against the best" in [section.title for section in summary.sections]
    wide = restated(result, 0.9)
    # Twelve queries of scores between 0 and 1 lie within 0.9 of each other for sure.
    relations = {standing.relation for standing in wide.verdict.standings.values()}
    assert relations == {"best", "equivalent"}
    assert sum("two one-sided tests" in sentence for sentence in wide.verdict.sentences) == 1
    assert [section.title for section in wide.sections].count("Against the best") == 1
    marks = [line.cells["ndcg@10"].marks for line in matrix(wide).lines if line.type == "ran"]
    assert sum("≡" in mark for mark in marks) >= 1
    assert all("%" in mark for mark in marks)
    shared = "% beside a row: how often it would be the best over resampled queries; rows that score alike share it"
    assert shared in keys(wide)


def test_a_margin_leaves_equal_figures_with_equal_marks(result: Path) -> None:
    """Both rows of tfidf rank alike; whoever shows the best's figure has the best's mark, within a margin too."""
    for margin in (0.0001, 0.9):
        cells = [line.cells["ndcg@10"] for line in matrix(restated(result, margin)).lines if line.type == "ran"]
        marks = {
            cell.figure: {other.marks.split()[0] for other in cells if other.figure == cell.figure} for cell in cells
        }
        assert all(len(different) == 1 for different in marks.values())
        assert marks[max(marks)] == {"★"}


def test_what_differs_by_less_than_is_shown_has_the_mark_of_the_best_within_a_margin(result: Path) -> None:
    """A difference of 0.0001 on every query is significant, within 0.01, and the same figure."""
    from msgspec.structs import replace

    summary = restated(result, 0.9)
    best, other = sorted(summary.ran, key=lambda row: -row.measures["ndcg@10"].mean)[:2]
    value = best.measures["ndcg@10"]
    shifted = replace(value, mean=value.mean - 1e-9)
    rows = [
        replace(row, measures={**row.measures, "ndcg@10": shifted}, ties={**row.ties, "ndcg@10": False})
        if row.label == other.label
        else row
        for row in summary.rows
    ]
    cells = {line.row.label: line.cells["ndcg@10"] for line in matrix(replace(summary, rows=rows)).lines}
    assert cells[other.label].figure == cells[best.label].figure
    assert cells[other.label].marks.startswith("★")


def test_the_commands_take_a_margin(result: Path) -> None:
    shown = CliRunner().invoke(app, ["show", str(result), "--equivalent-within", "0.9"])
    assert shown.exit_code == 0
    assert "within 0.9 (two one-sided tests" in " ".join(shown.output.split())
    compared = CliRunner().invoke(app, ["compare", str(result), "--equivalent-within", "0.9"])
    assert compared.exit_code == 0
    assert "3 are equivalent within 0.9" in " ".join(compared.output.split())


def test_queries_are_planned_from_a_result(result: Path) -> None:
    planned = CliRunner().invoke(
        app, ["plan-queries", str(result), "--difference", "0.05", "--width", "0.1", "--contenders", "2"]
    )
    assert planned.exit_code == 0, planned.output
    assert "12 queries are there already" in " ".join(planned.output.split())
    alone = plan_queries([load(result)], difference=0.05, contenders=2)
    again = plan_queries(variance=alone.variance, difference=0.05, contenders=2)
    assert (alone.for_power, alone.have) == (again.for_power, 12)
    assert alone.for_power is not None
    assert alone.still(alone.for_power) == max(0, alone.for_power - 12)
    with pytest.raises(InputError, match="nothing to plan for"):
        plan_queries(variance=0.1)
    with pytest.raises(InputError, match="nothing to plan from"):
        plan_queries(width=0.1)


def test_a_model_in_several_stores_is_planned_for_once(result: Path) -> None:
    """tfidf answers alike from two stores: two contenders, and half of the variance of their difference."""
    found = load(result)
    d = found.values("bm25") - found.values("tfidf+faiss")
    assert (found.values("tfidf+faiss") == found.values("tfidf+chroma")).all()
    planned = plan_queries([found], difference=0.05, width=0.1)
    assert planned.contenders == 2
    assert planned.variance == pytest.approx(float(d.var(ddof=1)) / 2)
    given = plan_queries(variance=float(d.var(ddof=1)) / 2, difference=0.05, width=0.1)
    assert (planned.for_power, planned.for_width) == (given.for_power, given.for_width)
    alike = replace(found, detailed=_only(found.detailed, ("tfidf+faiss", "tfidf+chroma")))
    with pytest.raises(InputError, match="every contender scores alike"):
        plan_queries([alike], difference=0.05)


def test_contenders_that_differ_by_the_same_on_every_query_plan_nothing(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """.3, .7 and .1 everywhere: what is left beside contenders and queries is rounding."""
    found = load(result)
    constant = dict(zip(found.labels, (0.3, 0.7, 0.1), strict=False))
    monkeypatch.setattr(type(found), "values", lambda self, label, name=None: np.full(20, constant.get(label, 0.5)))
    with pytest.raises(InputError, match="differ by the same amount on every query"):
        plan_queries([found], difference=0.05)


def _only(detailed: Detailed, labels: tuple[str, ...]) -> Detailed:
    return msgspec.structs.replace(detailed, contenders=[one for one in detailed.contenders if one.label in labels])
