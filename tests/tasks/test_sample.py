from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import bakeoff
import numpy as np
import pytest
import scipy.stats
from bakeoff.core.arrays import Values
from bakeoff.core.task import Document, Drawn, Query, Task, document_ids
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.corpus_size import study as corpus_size
from bakeoff.extensions.corpus_size.study import corpus_sizes, order_changes, usual_sizes
from bakeoff.running.settings import Settings
from bakeoff.statistics.averaging import PerQuery, averaging_of
from bakeoff.tasks.load import draw_sample
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
from tests.facts import arguments

TASK = Task(
    name="t",
    documents=[Document(f"d{number}", f"word{number % 7} number {number}") for number in range(200)],
    queries=[Query(id=f"q{number}", text=f"word{number} number") for number in range(5)],
    judgments={f"q{number}": {f"d{number}": 1, f"d{number + 100}": 0} for number in range(5)},
)


def test_a_sample_keeps_what_is_judged_and_is_part_of_a_larger_one() -> None:
    small, large = draw_sample(TASK, 30, 1), draw_sample(TASK, 90, 1)
    judged = {document for grades in TASK.judgments.values() for document in grades}
    assert judged < set(document_ids(small.documents)) < set(document_ids(large.documents))
    assert (len(small.documents), len(large.documents), small.drawn_from) == (30, 90, 200)
    order = [name for name in document_ids(TASK.documents) if name in set(document_ids(small.documents))]
    assert document_ids(small.documents) == order
    assert document_ids(draw_sample(TASK, 30, 2).documents) != order
    assert len({task.fingerprint() for task in (TASK, small, large)}) == 3
    assert draw_sample(TASK, 200, 1) is TASK
    with refuses(InputError, "10", place="--sample-documents"):
        draw_sample(TASK, 9, 1)


def test_a_run_over_a_sample_says_so_in_its_head(tmp_path: Path) -> None:
    evaluated = bakeoff.evaluate({"bm25": "bm25"}, TASK, settings=Settings(sample_documents=50))
    assert evaluated.result.summary.task.drawn_from == 200
    (sampled,) = arguments(evaluated.result.summary.warnings, "sampled_documents")
    assert (sampled["documents"], sampled["drawn_from"]) == (50, 200)


def _lineup(folder: Path, queries: str) -> bakeoff.Lineup:
    documents = "".join(f"{document.id},{document.text}\n" for document in TASK.documents)
    (folder / "corpus.csv").write_text("id,text\n" + documents)
    (folder / "queries.csv").write_text(queries)
    (folder / "judgments.csv").write_text(
        "query,document,grade\n"
        + "".join(f"{q},{d},{g}\n" for q, grades in TASK.judgments.items() for d, g in grades.items())
    )
    (folder / "lineup.toml").write_text(
        'task = { format = "tables", documents = "corpus.csv", queries = "queries.csv", '
        'judgments = "judgments.csv" }\n'
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    )
    return bakeoff.Lineup.read(folder / "lineup.toml")


def test_sizes_are_nested_runs_and_their_scores_those_of_a_run(tmp_path: Path) -> None:
    lineup = _lineup(tmp_path, "id,text\n" + "".join(f"{q.id},{q.text}\n" for q in TASK.queries))
    found = corpus_sizes(lineup, Settings(), (20, 60), 10_000)
    assert found.sizes == [20, 60, 200]
    alone = bakeoff.run(lineup, Settings(sample_documents=60)).ran[0]
    assert found.rows[0].points[1].mean == pytest.approx(float(alone.scores[lineup.primary].mean()))
    assert found.weighting == ""
    with refuses(InputError, "10", place="--sizes"):
        corpus_sizes(lineup, Settings(), (5,))


def test_a_task_whose_documents_all_have_a_grade_has_no_samples(tmp_path: Path) -> None:
    lineup = _lineup(tmp_path, "id,text\n" + "".join(f"{q.id},{q.text}\n" for q in TASK.queries))
    graded = "".join(f"q0,{document.id},0\n" for document in TASK.documents if document.id not in TASK.judgments["q0"])
    with (tmp_path / "judgments.csv").open("a") as file:
        file.write(graded)
    with refuses(InputError, "200"):
        corpus_sizes(lineup, Settings())


@pytest.mark.slow
def test_only_the_corpus_of_one_size_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lineup = _lineup(tmp_path, "id,text\n" + "".join(f"{q.id},{q.text}\n" for q in TASK.queries))
    there: list[int] = []

    def counted(*args: Any) -> Any:
        gc.collect()
        there.append(sum(isinstance(one, Task) for one in gc.get_objects()))
        return bakeoff.run(*args)

    monkeypatch.setattr(corpus_size, "run", counted)
    corpus_sizes(lineup, Settings(), (20, 60))
    assert len(set(there)) == 1  # as many before the last size as before the first
    assert len(there) == 3


def test_queries_that_stand_for_traffic_count_by_it_at_every_size(tmp_path: Path) -> None:
    weights = [0.3, 0.3, 0.2, 0.1, 0.1]
    drawn = [("head", 2), ("head", 2), ("tail", 40), ("tail", 40), ("tail", 40)]
    rows = [
        f"{query.id},{query.text},{stratum},{weight},{size}\n"
        for query, weight, (stratum, size) in zip(TASK.queries, weights, drawn, strict=True)
    ]
    lineup = _lineup(tmp_path, "id,text,category,weight,stratum_queries\n" + "".join(rows))
    found = corpus_sizes(lineup, Settings(), (20, 60), 10_000)
    says(found.weighting)
    for row in found.rows:
        for point in row.points:
            ran = bakeoff.run(lineup, Settings(sample_documents=point.documents)).ran
            (values,) = (each.scores[lineup.primary] for each in ran if each.contender.label == row.label)
            assert point.mean == pytest.approx(float(np.dot(weights, values)))


def test_usual_sizes_climb_by_threes_and_hold_what_is_judged() -> None:
    assert usual_sizes(1_000_000, 500) == [30_000, 100_000, 300_000]
    assert usual_sizes(5_183, 283) == [300, 1_000, 3_000]
    assert usual_sizes(5_183, 2_000) == [3_000]


def _alternating(*means: float, spread: float = 0.1, queries: int = 10) -> Values:
    """Sizes × queries, whose means are these; the queries lie in turn above and below by the spread."""
    return np.array(means)[:, None] + np.where(np.arange(queries) % 2, spread, -spread)


def test_who_overtakes_whom_is_named_with_the_sizes_that_show_it() -> None:
    level = np.full((4, 60), 0.5)
    sizes = (100, 300, 1000, 3000)
    # every query at one side, but with 1,000 documents half of them at each
    sure = _alternating(0.8, 0.7, 0.499, 0.3, queries=60)
    (sentence,) = order_changes({"level": level, "sure": sure}, sizes, PerQuery())
    assert sentence == (
        "level is behind sure with 300 documents (-0.200) and ahead with 1,000 (+0.001): the queries show sure ahead "
        "with 300 and level ahead with 3,000."
    )
    assert not order_changes({"level": level, "above": sure + 0.3}, sizes, PerQuery())
    assert not order_changes({"level": level, "met": _alternating(0.7, 0.5, 0.5, 0.6, queries=60)}, sizes, PerQuery())


def test_a_change_that_both_ends_hide_is_found_there_and_back() -> None:
    found = order_changes(
        {"level": np.full((3, 10), 0.5), "there and back": _alternating(0.8, 0.49, 0.8)}, (100, 1000, 3000), PerQuery()
    )
    assert [sentence.partition(" (")[0] for sentence in found] == [
        "level is behind there and back with 100 documents",
        "there and back is behind level with 1,000 documents",
    ]
    says(found[0], "100")
    says(found[1], "3,000")


def test_what_is_claimed_of_overtaking_is_corrected_over_all_of_it() -> None:
    """A lead that is shown by itself is not, where Holm's correction over two sizes makes its p twice as large."""
    table = _alternating(0.9, 0.49, queries=6)
    (sentence,) = order_changes({"level": np.full((2, 6), 0.5), "turned": table}, (100, 1000), PerQuery())
    assert sentence.endswith("(+0.010): the queries show neither ahead.")


def test_who_overtakes_whom_is_told_by_traffic() -> None:
    strata = ["head"] * 10 + ["tail"] * 40
    drawn = [Drawn(0.08 if stratum == "head" else 0.005, stratum, 1000) for stratum in strata]
    rng = np.random.default_rng(0)
    level = np.full((2, 50), 0.5) + rng.normal(0, 0.01, (2, 50))
    turned = level.copy()
    turned[0] -= 0.1
    turned[1, :10] += 0.2  # where most of the traffic is
    turned[1, 10:] -= 0.2
    tables = {"level": level, "turned": turned}
    assert not order_changes(tables, (100, 1000), PerQuery())
    (sentence,) = order_changes(tables, (100, 1000), averaging_of(drawn, 1))
    says(sentence, "100 documents", "-0.100", "1,000", "+0.120")


def test_a_geometric_mean_is_shown_as_such_at_every_size(tmp_path: Path) -> None:
    lineup = _lineup(tmp_path, "id,text\n" + "".join(f"{q.id},{q.text}\n" for q in TASK.queries))
    lineup = replace(lineup, primary=Measure.parse("gm_map"))
    found = corpus_sizes(lineup, Settings(), (20, 60))
    for row in found.rows:
        for point in row.points:
            ran = bakeoff.run(lineup, Settings(sample_documents=point.documents)).ran
            (values,) = (each.scores[lineup.primary] for each in ran if each.contender.label == row.label)
            assert point.mean == pytest.approx(scipy.stats.gmean(np.exp(values)))
            if point.low is not None and point.high is not None:
                assert point.low <= point.mean <= point.high


def test_a_measure_without_bounds_has_no_estimate_beyond(tmp_path: Path) -> None:
    """DCG below 1 is no score from 0 to 1: log odds would say that it never reaches 1."""
    lineup = _lineup(tmp_path, "id,text\n" + "".join(f"{q.id},{q.text}\n" for q in TASK.queries))
    found = corpus_sizes(replace(lineup, primary=Measure.parse("dcg@10")), Settings(), (20, 40, 60), 10_000)
    assert [row.estimate for row in found.rows] == [None] * len(found.rows)


def test_a_model_in_two_stores_overtakes_once() -> None:
    """Seven queries at one side: p = 2 / 2^7, and nothing at the other; four tests, of which two are distinct."""
    table = _alternating(0.9, 0.49, queries=7)
    tables = {"level": np.full((2, 7), 0.5), "faiss": table, "chroma": table.copy()}
    alone = order_changes({name: tables[name] for name in ("level", "faiss")}, (100, 1000), PerQuery())
    both = order_changes(tables, (100, 1000), PerQuery())
    assert both == [*alone, alone[0].replace("faiss", "chroma")]
