"""A line-up from end to end, on a task small enough to be worked out by hand."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from bakeoff.core.facts import Failure, fact, quote
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.report.exports import markdown
from bakeoff.report.words import failure_words
from bakeoff.results.save import save
from bakeoff.results.schema import read_detailed, read_summary
from bakeoff.results.summary import summarise
from bakeoff.running.runner import NotRun, Settings, run
from bakeoff.search.stores.faiss import Faiss
from bakeoff.systems.embedding import EmbeddingRow

from tests.errors import says
from tests.facts import arguments
from tests.native_task import GRADES, native_files, write_lineup


@pytest.fixture
def lineup_file(tmp_path: Path) -> Path:
    return write_lineup(
        tmp_path,
        native_files(category=lambda query: "x" if query == "q1" else "y"),
        head='measures = ["p@1", "recall@10", "mrr", "ndcg@10"]\nrounds = 2',
        task='name = "own"\ntargets = { "p@1" = 0.5, "mrr" = 0.9 }',
        contenders='[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "fake"\nstore = ["faiss", "chroma"]\n'
        '[[contender]]\nprovider = "voyage"\nstore = "faiss"\n',
    )


def test_scores_are_what_hand_work_says(lineup_file: Path) -> None:
    outcome = run(Lineup.read(lineup_file))
    bm25 = outcome.scores["bm25"]
    # q1 finds its one document first; q2 finds d2, and d1 and d3 follow by id; q3 has no relevant document and scores 0
    assert bm25["p@1"] == [1, 1, 0]
    assert bm25["recall@10"] == [1, 1, 0]
    assert bm25["mrr"] == [1, 1, 0]
    ideal = 2 / np.log2(2) + 1 / np.log2(3)
    assert bm25["ndcg@10"] == pytest.approx([1, (2 + 1 / np.log2(4)) / ideal, 0])


def test_the_scales_are_the_ceiling_and_the_expectation(lineup_file: Path) -> None:
    baselines = {
        name: {str(measure): values for measure, values in scores.items()}
        for name, scores in run(Lineup.read(lineup_file)).baselines.items()
    }
    assert baselines["oracle"]["ndcg@10"].tolist() == [1, 1, 0]
    # p@1 of a random order of three documents: 1/3, 2/3 and 0 relevant ones
    assert baselines["random"]["p@1"] == pytest.approx([1 / 3, 2 / 3, 0])
    # mean reciprocal rank of one relevant among three: (1 + 1/2 + 1/3) / 3
    assert baselines["random"]["mrr"][0] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_the_same_vectors_rank_alike_in_every_exact_store(lineup_file: Path) -> None:
    faiss, chroma = (row for row in run(Lineup.read(lineup_file)).ran if isinstance(row.contender, EmbeddingRow))
    assert {query: ranking.ids for query, ranking in faiss.rankings.items()} == {
        query: ranking.ids for query, ranking in chroma.rankings.items()
    }
    assert faiss.stable
    assert chroma.stable


def test_a_contender_that_cannot_run_keeps_its_row(lineup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    outcome = run(Lineup.read(lineup_file))
    (lost,) = outcome.not_run
    assert lost.contender.label == "voyage+faiss"
    says(failure_words(lost.failure), "VOYAGE_API_KEY")


def test_warnings_name_what_weakens_the_result(lineup_file: Path) -> None:
    warnings = run(Lineup.read(lineup_file)).warnings
    assert [one["documents"] for one in arguments(warnings, "k_beyond_corpus")] == [3]
    assert arguments(warnings, "without_relevant") == [{"queries": ["q3"]}]


def test_the_result_is_complete_and_the_reports_come_from_it_alone(lineup_file: Path, tmp_path: Path) -> None:
    folder = save(run(Lineup.read(lineup_file)), tmp_path / "results")
    render(folder)
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert {"metrics_summary.json", "detailed_results.json", "matrix.md", "evaluation_report.html"} <= files
    assert {"runs/bm25.trec", "runs/fake+faiss.trec", "runs/fake+chroma.trec"} <= files
    assert not list((tmp_path / "results").glob(".*"))
    summary = read_summary(folder)
    assert markdown(summary) == (folder / "matrix.md").read_text()
    rows = {row.label: row for row in summary.rows}
    assert rows["bm25"].measures["p@1"].mean == pytest.approx(2 / 3)
    assert rows["bm25"].categories["x"]["p@1"] == 1
    assert rows["bm25"].categories["y"]["p@1"] == 0.5
    assert rows["bm25"].targets == {"p@1": True, "mrr": False}
    assert rows["oracle"].measures["p@1"].mean == pytest.approx(2 / 3)
    detailed = read_detailed(folder)
    (bm25,) = [contender for contender in detailed.contenders if contender.label == "bm25"]
    assert bm25.queries["q2"].ids == ["2", "1", "3"]
    assert bm25.queries["q2"].matched == 1
    assert bm25.queries["q2"].grades == [2, 0, 1]
    assert len(bm25.timing.search_ns) == 2 * 3


def test_a_result_is_never_written_over(lineup_file: Path, tmp_path: Path) -> None:
    outcome = run(Lineup.read(lineup_file).narrow(["bm25"]))
    first, second = save(outcome, tmp_path / "results"), save(outcome, tmp_path / "results")
    assert (first / "metrics_summary.json").is_file()
    assert second.name == f"{first.name}-2"


def test_a_name_does_not_lead_out_of_the_folder(lineup_file: Path, tmp_path: Path) -> None:
    outcome = run(replace(Lineup.read(lineup_file).narrow(["bm25"]), name="../../../x"))
    before = {*tmp_path.rglob("*")}
    folder = save(outcome, tmp_path / "a" / "results")
    assert folder.resolve().parent == (tmp_path / "a" / "results").resolve()
    assert not [path for path in {*tmp_path.rglob("*")} - before if not path.is_relative_to(tmp_path / "a")]


def test_keys_do_not_reach_a_result(lineup_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2-hunter2")
    outcome = run(Lineup.read(lineup_file).narrow(["bm25"]))
    failure = Failure(kind="raised", error="RuntimeError", text="the server said hunter2-hunter2")
    failed = NotRun(replace(outcome.contenders[0].contender, label="other"), failure)
    folder = save(
        replace(
            outcome,
            contenders=(*outcome.contenders, failed),
            warnings=(quote("hunter2-hunter2"), fact("not_made", part="breakdowns", reason="hunter2-hunter2")),
        ),
        tmp_path,
        command="bakeoff run --set url=postgresql://me:swordfish@db/",
    )
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"hunter2" not in written
    assert b"swordfish" not in written


def test_the_run_files_score_the_same_in_trec_eval(lineup_file: Path, tmp_path: Path) -> None:
    folder = save(run(Lineup.read(lineup_file)), tmp_path / "results")
    detailed = read_detailed(folder)
    evaluator = pytrec_eval.RelevanceEvaluator(GRADES, {"recip_rank", "ndcg_cut.10", "P.1", "recall.10"})
    names = {"mrr": "recip_rank", "ndcg@10": "ndcg_cut_10", "p@1": "P_1", "recall@10": "recall_10"}
    for contender in detailed.contenders:
        with (folder / "runs" / f"{contender.label}.trec").open() as file:
            theirs = evaluator.evaluate(pytrec_eval.parse_run(file))
        for query, result in contender.queries.items():
            for ours, name in names.items():
                assert result.measures[ours] == pytest.approx(theirs.get(query, {}).get(name, 0.0), abs=1e-9)


def test_a_second_run_embeds_no_document_again(lineup_file: Path, tmp_path: Path) -> None:
    lineup = Lineup.read(lineup_file).narrow(["fake"], ["faiss"])
    settings = Settings(cache=tmp_path / "vectors")
    first, second = run(lineup, settings), run(lineup, settings)
    from bakeoff_providers.base import Role

    requests = []
    for outcome in (first, second):
        (row,) = outcome.ran
        assert row.search is not None
        assert row.search.embedding is not None
        requests.append(row.search.embedding.usage[Role.DOCUMENT].requests)
    assert requests == [1, 0]
    assert first.scores == second.scores


def test_building_is_counted_in_seconds(lineup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Faiss.build

    def slowly(store: Faiss) -> None:
        time.sleep(0.2)
        build(store)

    monkeypatch.setattr(Faiss, "build", slowly)
    start = time.perf_counter()
    summary = summarise(run(Lineup.read(lineup_file).narrow(["fake"], ["faiss"])))
    (row,) = summary.ran
    assert row.build_seconds is not None
    assert 0.2 <= row.build_seconds <= time.perf_counter() - start
