"""A result folder, read back as plain tables and data frames."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import polars as pl
import pytest
from bakeoff.core.facts import Failure, fact
from bakeoff.core.figures import Timing
from bakeoff.core.machine import Machine
from bakeoff.results import schema
from bakeoff.results.result import Result, load
from bakeoff_providers.errors import InputError, Unavailable

from tests.errors import refuses

NDCG = 1 / math.log2(3)  # the only relevant document is second
NO_KEY = Failure(kind="unavailable", error="Unavailable", lacks=[fact("key_unset", variables=["OPENAI_API_KEY"])])


def _answer(*ids: str, ndcg: float) -> schema.QueryResult:
    grades = [{"d1": 1}.get(document) for document in ids]
    scores = [1.0 / (rank + 1) for rank in range(len(ids))]
    return schema.QueryResult(ids=list(ids), scores=scores, grades=grades, measures={"ndcg@10": ndcg})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two contenders of which the second is better, one that did not run, one baseline."""
    ndcg = {"low": NDCG, "high": 1.0, "oracle": 1.0}
    rows = [
        schema.Row(label=label, row_type=kind, measures={"ndcg@10": schema.Value(mean=ndcg[label])})
        for label, kind in (("low", "dense"), ("high", "dense"), ("oracle", "baseline"))
    ]
    rows.append(schema.Row(label="lost", row_type="dense", not_run=NO_KEY))
    summary = schema.Summary(
        name="small",
        started="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        lineup={"depth": 2},
        task=schema.TaskInfo(
            name="small", kind="graded", fingerprint="0" * 16, documents=2, chunks=2, queries=1, rel=1
        ),
        machine=msgspec.convert(_machine(), Machine),
        matrix_measures=["ndcg@10"],
        rows=rows,
        verdict=schema.Verdict(
            measure="ndcg@10", leader="high", best_set=["high"], situation="clear", action="take and stop", take="high"
        ),
    )
    answers = {"low": _answer("d2", "d1", ndcg=NDCG), "high": _answer("d1", "d2", ndcg=1.0)}
    detailed = schema.Detailed(
        queries={"q1": schema.QueryInfo(text="where?", category="places", grades={"d1": 1})},
        titles={"d1": "one", "d2": "two"},
        contenders=[
            schema.ContenderResult(label=label, queries={"q1": answer}, timing=Timing())
            for label, answer in answers.items()
        ],
        baselines={},
    )
    schema.write(tmp_path / "result", summary, detailed, {})
    return tmp_path / "result"


def _machine() -> dict[str, Any]:
    """Every field that a machine needs, empty."""
    empty: dict[type, Any] = {str: "", int: 1, float: 0.0}
    return {field.encode_name: empty.get(field.type, {}) for field in msgspec.structs.fields(Machine) if field.required}


def test_the_matrix_has_one_record_per_row_the_best_first(folder: Path) -> None:
    matrix = load(folder).matrix()
    assert [(row["contender"], row["ndcg@10"], row["not_run"]) for row in matrix] == [
        ("high", 1.0, None),
        ("low", NDCG, None),
        ("oracle", 1.0, None),
        ("lost", None, "key_unset"),
    ]


def test_the_scores_have_one_record_per_contender_and_query(folder: Path) -> None:
    assert load(folder).scores() == [
        {"contender": "low", "query": "q1", "category": "places", "ndcg@10": NDCG},
        {"contender": "high", "query": "q1", "category": "places", "ndcg@10": 1.0},
    ]


def test_values_of_a_measure_that_was_not_stored_come_from_the_rankings(folder: Path) -> None:
    result = load(folder)
    assert result.values("low").tolist() == [NDCG]  # the measure that decided
    assert result.values("low", "mrr").tolist() == [0.5]
    with refuses(InputError, "2", file="result"):
        result.values("low", "p@5")
    with refuses(InputError, "lost", file="result"):
        result.values("lost")
    with pytest.raises(InputError) as wrong:
        result.values("hihg")
    assert wrong.value.remedy == "did you mean 'high'?"


def test_data_frames_hold_the_same_tables(folder: Path) -> None:
    result = load(folder)
    frame = result.to_pandas("scores")
    assert isinstance(frame, pd.DataFrame)
    assert frame.set_index("contender")["ndcg@10"].to_dict() == {"low": NDCG, "high": 1.0}
    other = result.to_polars()
    assert isinstance(other, pl.DataFrame)
    assert other["contender"].to_list() == ["high", "low", "oracle", "lost"]
    assert other["ndcg@10"].to_list() == [1.0, NDCG, 1.0, None]
    with pytest.raises(InputError) as wrong:
        result.to_polars("score")  # type: ignore[arg-type]
    assert wrong.value.remedy == "did you mean 'scores'?"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_names_its_install(folder: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # how Python marks what can't be imported
    result = load(folder)
    with refuses(Unavailable, f"bakeoff[{library}]"):
        getattr(result, f"to_{library}")()


def test_a_result_is_called_as_its_folder_or_as_it_is_told(folder: Path) -> None:
    assert load(folder).name == "result"
    assert load(str(folder), name="before").name == "before"
    with refuses(InputError, "metrics_summary.json"):
        load(folder.parent)


def test_fields_are_those_of_the_schema(folder: Path) -> None:
    result = load(folder)
    assert isinstance(result, Result)
    assert (result.summary.name, list(result.detailed.titles)) == ("small", ["d1", "d2"])
