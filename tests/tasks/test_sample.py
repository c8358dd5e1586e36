from __future__ import annotations

from pathlib import Path

import bakeoff
import numpy as np
import pytest
from bakeoff.core.task import Document, Query, Task, document_ids
from bakeoff.results.corpus_size import corpus_sizes, order_changes, usual_sizes
from bakeoff.running.settings import Settings
from bakeoff.tasks.sample import sampled
from bakeoff_providers.errors import InputError

TASK = Task(
    name="t",
    documents=[Document(f"d{number}", f"word{number % 7} number {number}") for number in range(200)],
    queries=[Query(id=f"q{number}", text=f"word{number} number") for number in range(5)],
    judgments={f"q{number}": {f"d{number}": 1, f"d{number + 100}": 0} for number in range(5)},
)


def test_a_sample_keeps_what_is_judged_and_is_part_of_a_larger_one() -> None:
    small, large = sampled(TASK, 30, 1), sampled(TASK, 90, 1)
    judged = {document for grades in TASK.judgments.values() for document in grades}
    assert judged < set(document_ids(small.documents)) < set(document_ids(large.documents))
    assert (len(small.documents), len(large.documents), small.drawn_from) == (30, 90, 200)
    order = [name for name in document_ids(TASK.documents) if name in set(document_ids(small.documents))]
    assert document_ids(small.documents) == order
    assert document_ids(sampled(TASK, 30, 2).documents) != order
    assert len({task.fingerprint() for task in (TASK, small, large)}) == 3
    assert sampled(TASK, 200, 1) is TASK
    with pytest.raises(InputError, match="can't hold the 10 that have a grade"):
        sampled(TASK, 9, 1)


def test_a_run_over_a_sample_says_so_in_its_head(tmp_path: Path) -> None:
    evaluated = bakeoff.evaluate({"bm25": "bm25"}, TASK, settings=Settings(sample_documents=50))
    assert evaluated.result.summary.task.drawn_from == 200
    assert "50 of 200 documents" in evaluated.result.summary.warnings[0]


def test_sizes_are_nested_runs_and_their_scores_those_of_a_run(tmp_path: Path) -> None:
    file = tmp_path / "corpus.csv"
    file.write_text("id,text\n" + "".join(f"{document.id},{document.text}\n" for document in TASK.documents))
    (tmp_path / "queries.csv").write_text("id,text\n" + "".join(f"{q.id},{q.text}\n" for q in TASK.queries))
    (tmp_path / "judgments.csv").write_text(
        "query,document,grade\n"
        + "".join(f"{q},{d},{g}\n" for q, grades in TASK.judgments.items() for d, g in grades.items())
    )
    (tmp_path / "lineup.toml").write_text(
        'task = { format = "tables", documents = "corpus.csv", queries = "queries.csv", '
        'judgments = "judgments.csv" }\n'
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    )
    lineup = bakeoff.Lineup.read(tmp_path / "lineup.toml")
    found = corpus_sizes(lineup, Settings(), (20, 60), 10_000)
    assert found.sizes == [20, 60, 200]
    alone = bakeoff.run(lineup, Settings(sample_documents=60)).ran[0]
    assert found.rows[0].points[1].mean == pytest.approx(float(alone.scores[lineup.primary].mean()))
    with pytest.raises(InputError, match="sizes must be from 10"):
        corpus_sizes(lineup, Settings(), (5,))


def test_usual_sizes_climb_by_threes_and_hold_what_is_judged() -> None:
    assert usual_sizes(1_000_000, 500) == [30_000, 100_000, 300_000]
    assert usual_sizes(5_183, 283) == [300, 1_000, 3_000]
    assert usual_sizes(5_183, 2_000) == [3_000]


def test_who_overtakes_whom_is_named_with_how_sure_it_is() -> None:
    rng = np.random.default_rng(0)
    falling = np.stack([np.full(50, 0.8), np.full(50, 0.3)]) + rng.normal(0, 0.05, (2, 50))
    steady = np.full((2, 50), 0.5) + rng.normal(0, 0.05, (2, 50))
    (sentence,) = order_changes({"falling": falling, "steady": steady}, (100, 1000))
    assert sentence.startswith("steady is behind falling with 100 documents")
    assert sentence.endswith("shown at both sizes.")
    assert not order_changes({"falling": falling, "lower": falling - 0.1}, (100, 1000))
