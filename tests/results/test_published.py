"""What is struck out of a result are texts: never a figure, a key or a name, and never the result itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bakeoff.core.facts import Failure, quote
from bakeoff.core.figures import Timing
from bakeoff.core.machine import Machine
from bakeoff.results import schema
from bakeoff.results.schema import DETAILED, SUMMARY

FIGURE = 0.1 + 0.2  # 0.30000000000000004 in JSON


def _summary(said: str = "", command: str = "bakeoff run") -> schema.Summary:
    standing = schema.Standing(mark="leads", p=FIGURE, behind_least=0.0, behind_most=FIGURE)
    return schema.Summary(
        name="evaluation",
        started="2026-01-01T00:00:00+00:00",
        seconds=FIGURE,
        lineup={
            "contenders": [
                {"label": "mine+pgvector", "provider": "own", "store": "pgvector", "options": {"name": said}},
                {"label": "lost", "retriever": {"headers": {"Authorization": said}}},
            ],
            "measures": ["recall@10"],
            "depth": 10,
            "rounds": 1,
            "seed": 42,
        },
        task=schema.TaskInfo(
            name="wikipedia", kind="graded", fingerprint="0" * 32, documents=1, chunks=1, queries=1, rel=1,
            categories=["category"],
        ),
        machine=Machine(
            cpu="c", cores=1, memory_gb=1.0, system="s", python="3", versions={"numpy": "2"}, threads={},
            load_before=FIGURE,
        ),
        matrix_measures=["recall@10"],
        rows=[
            schema.Row(
                label="mine+pgvector", row_type="dense", store="pgvector", measures={"recall@10": schema.Value(FIGURE)}
            ),
            schema.Row(label="random", row_type="baseline", measures={"recall@10": schema.Value(FIGURE)}),
            schema.Row(label="lost", row_type="retriever", not_run=Failure(kind="failed", error="Own", text=said)),
        ],
        verdict=schema.Verdict(
            measure="recall@10", leader="mine+pgvector", best_set=["mine+pgvector"], situation="not settled",
            action="take for now", take="mine+pgvector", standings={"mine+pgvector": standing},
        ),
        warnings=[quote(said)],
        command=command,
    )  # fmt: skip


def _detailed(said: str = "") -> schema.Detailed:
    answer = schema.QueryResult(ids=["00000000"], scores=[FIGURE], grades=[1], measures={"recall@10": FIGURE})
    query = schema.QueryInfo(text=f"where is {said}", category="category", grades={"00000000": 1})
    contender = schema.ContenderResult(
        label="mine+pgvector", queries={"a": answer}, timing=Timing(embed_ns=[100000000])
    )
    return schema.Detailed(
        queries={"a": query},
        titles={"00000000": f"on {said}", "label": said},
        contenders=[contender],
        baselines={"random": {"recall@10": [FIGURE]}},
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


@pytest.mark.parametrize(
    "word",
    [
        *("00000000", "30000000", "category", "measures", "recall@10", "contenders", "standings", "not settled"),
        *("baseline", "pgvector", "retriever", "mine+pgvector", "wikipedia", "queries\":{", "00000000000000000000"),
    ],
)  # fmt: skip
def test_a_secret_that_is_a_word_or_a_number_of_the_result_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", word)
    folder = schema.write(tmp_path / "result", _summary("gone"), _detailed("gone"), {})
    assert schema.read_summary(folder) == _summary("gone")
    assert schema.read_detailed(folder) == _detailed("gone")


@pytest.mark.parametrize("secret", ['pa"ss\\wo"rd', "line\nbreak\t12", "grün-und-blau", "plain-and-long-1", "00000000"])
def test_a_secret_is_struck_out_of_every_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    monkeypatch.setenv("DB_PASSWORD", secret)
    said = f"refused {secret} twice"
    folder = schema.write(tmp_path / "result", _summary(said, f"bakeoff run {secret}"), _detailed(said), {})
    for name in (SUMMARY, DETAILED):
        left = [text for text in _texts(json.loads((folder / name).read_bytes())) if secret in text]
        assert [text for text in left if text not in ("00000000", "0" * 32)] == []
    summary, detailed = schema.read_summary(folder), schema.read_detailed(folder)
    assert summary.rows[2].not_run == Failure(kind="failed", error="Own", text="refused *** twice")
    assert summary.lineup["contenders"][0]["options"] == {"name": "refused *** twice"}
    assert summary.lineup["contenders"][1]["retriever"]["headers"] == {"Authorization": "refused *** twice"}
    assert detailed.queries["a"].text == "where is refused *** twice"
    assert detailed.titles == {"00000000": "on refused *** twice", "label": "refused *** twice"}
    assert msgspec.structs.replace(summary, verdict=_summary().verdict).rows[0] == _summary().rows[0]
    assert detailed.contenders == _detailed().contenders


def test_half_a_character_costs_no_result(tmp_path: Path) -> None:
    command = "bakeoff run --out r\udce9sultats"  # what Python makes of a name in Latin-1
    folder = schema.write(tmp_path / "result", _summary("a \ud800 b", command), _detailed("\udce9"), {})
    assert schema.read_summary(folder).command == "bakeoff run --out r\\udce9sultats"
    assert schema.read_summary(folder).rows == _summary("a \\ud800 b").rows
    assert schema.read_detailed(folder).titles["label"] == "\\udce9"


def test_where_there_is_nothing_to_strike_out_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-is-not-in-there-1")
    folder = schema.write(tmp_path / "result", _summary("x"), _detailed("x"), {})
    assert (folder / DETAILED).read_bytes() == msgspec.json.encode(_detailed("x"))
