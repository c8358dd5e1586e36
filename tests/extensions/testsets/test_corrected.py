"""People's grades on a random sample set a model's grades right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.files import read_json
from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.testsets.corrected import correct, sample_pairs
from bakeoff.extensions.testsets.new_task import write_task
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.tasks.formats.native import QueryFile
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests.errors import refuses, says
from tests.facts import arguments
from tests.native_task import annotate, native_files, write_files

P1 = Measure.parse("p@1")
Rankings = dict[str, dict[str, Ranking]]
Grades = dict[str, dict[str, int]]


def _world(queries: int, by_people: int) -> tuple[Rankings, Grades, Grades, Grades]:
    """A is right on 6 of 10 queries, B on the 4 others; the model also takes B's wrong answers for right on 8 of 10."""
    rng = np.random.default_rng(5)
    names = [f"q{at}" for at in range(queries)]
    truth = {query: {"a": int(rng.random() < 0.6)} for query in names}
    for row in truth.values():
        row["b"] = 1 - row["a"]
    model = {query: {"a": row["a"], "b": max(row["b"], int(rng.random() < 0.8))} for query, row in truth.items()}
    rankings = {
        label: {query: Ranking((document,), (1.0,)) for query in names} for label, document in (("A", "a"), ("B", "b"))
    }
    people = {query: truth[query] for query in names[:by_people]}
    return rankings, people, model, truth


def test_the_model_crowns_the_wrong_one_and_people_set_it_right() -> None:
    rankings, people, model, truth = _world(600, 100)
    correction = correct(rankings, people, model, P1)
    assert (correction.queries, correction.by_people) == (600, 100)
    (pair,) = correction.pairs
    true = float(np.mean([row["a"] - row["b"] for row in truth.values()]))
    assert true > 0.1
    assert pair.model_alone.high < 0  # the model is sure of the contrary
    assert pair.corrected.low < true < pair.corrected.high
    assert pair.corrected.high - pair.corrected.low < pair.people.high - pair.people.low
    assert pair.people.value == pytest.approx(np.mean([row["a"] - row["b"] for row in people.values()]))


def test_a_pool_that_people_graded_in_part_does_not_count() -> None:
    rankings, people, model, _ = _world(100, 20)
    people["q0"] = {"a": 1}
    with refuses(InputError, "19") as error:
        correct(rankings, people, model, P1)
    assert "--sample 20" in error.value.remedy


def test_a_sample_is_of_queries_with_their_whole_pools() -> None:
    pairs = [(f"q{at}", document) for at in range(50) for document in "xyz"]
    drawn = sample_pairs(pairs, 20)
    assert len(drawn) == 60
    assert len({query for query, _ in drawn}) == 20
    assert drawn == sample_pairs(pairs, 20) != pairs[:60]


def test_the_command_shows_people_corrected_and_the_model_by_name(tmp_path: Path) -> None:
    words = {"1": "copper", "2": "lake", "3": "forest"}
    queries = {f"q{at}": f"{words[str(at % 3 + 1)]} {at}" for at in range(40)}
    write_files(tmp_path, native_files(queries=queries, grades={}))
    path = write_task(tmp_path / "task", tmp_path / "articles.json", read_json(tmp_path / "queries.json", QueryFile))
    truth = {query: {page: 3 * (word in text) for page, word in words.items()} for query, text in queries.items()}
    annotate(tmp_path, "model", {query: dict.fromkeys(row, 3) for query, row in truth.items()}, "model")
    lineup = tmp_path / "lineup.toml"
    lineup.write_text(
        f'task = "{path}"\nmeasures = ["p@1"]\n[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    )
    command = ["grade", "corrected", str(path), "--lineup", str(lineup)]
    refused = CliRunner().invoke(app, command)
    says(str(refused.exception or refused.output), "0 queries")
    annotate(tmp_path, "ann", {query: truth[query] for query in list(truth)[:24]})
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    says(shown.output, "24", "40")
    says(shown.output, "[95%]")
    folder = TaskFolder.open(str(path))
    folder.write_truth()
    outcome = run(Lineup.read(lineup))
    assert arguments(outcome.warnings, "graded_by_model") == [{"by_model": 48, "grades": 120}]
