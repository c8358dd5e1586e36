"""How options are read, under their names of today and of yesterday."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bakeoff.commands.options import key_values, parse_columns, parse_repeated, parse_settings, parse_value
from bakeoff.commands.renamed import current_names
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("-3", -3),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('"2"', "2"),
        ("HNSW32,Flat", "HNSW32,Flat"),
        ("nan", "nan"),
        ("[1", "[1"),
        ("", ""),
        ("http://127.0.0.1/v1?a=b", "http://127.0.0.1/v1?a=b"),
    ],
)
def test_a_value_is_read_as_what_it_looks_like(text: str, value: Any) -> None:
    read = parse_value(text)
    assert read == value
    assert type(read) is type(value)


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.lists(st.text())))
def test_json_is_understood(value: Any) -> None:
    assert parse_settings([f"key={json.dumps(value)}"], "key=1") == {"key": value}


def test_keys_and_values() -> None:
    assert key_values(["a=b=c", " d = e "]) == [("a", "b=c"), ("d", "e")]
    assert parse_repeated(["ef=16", "ef=32", "x=y"]) == {"ef": [16, 32], "x": ["y"]}
    assert parse_columns(["id=7"]) == {"id": "7"}
    for wrong in ("ef", "=1", ""):
        with pytest.raises(InputError, match="is not key=value") as caught:
            key_values([wrong])
        assert "ef=64" in caught.value.remedy
    with pytest.raises(InputError, match="a is set twice"):
        parse_settings(["a=1", "a=2"], "a=1")
    with pytest.raises(InputError, match="names no column"):
        parse_columns(["text="])


@pytest.mark.parametrize(
    ("old", "new", "notices"),
    [
        (["run", "--only", "bm25", "--only=fake"], ["run", "--contender", "bm25", "--contender", "fake"], 2),
        (["run", "films", "--weights", "a b.json"], ["run", "films", "--set", "weights_file=a b.json"], 1),
        (["run", "--no-use-best-weights"], ["run", "--set", "use_best_weights=false"], 1),
        (["run", "--calibrate-thresholds"], ["run", "--set", "calibrate_thresholds=true"], 1),
        (["load", "--only", "a"], ["loadtest", "--contender", "a"], 2),
        (["doctor", "--only", "fake"], ["doctor", "--provider", "fake"], 1),
        (["grade", "task", "--option", "a=1"], ["grade", "task", "--set", "a=1"], 1),
        (["score", "--only", "x"], ["score", "--only", "x"], 0),
        (["run", "--only"], ["run", "--only"], 0),
        (["run", "--", "--only", "--verbose"], ["run", "--", "--only", "--verbose"], 0),
        (["run", "load", "--verbose"], ["--verbose", "run", "load"], 0),
        (["--help"], ["--help"], 0),
        ([], [], 0),
    ],
)
def test_old_names_still_work_with_a_notice(old: list[str], new: list[str], notices: int) -> None:
    said: list[str] = []
    assert current_names(old, said.append) == new
    assert len(said) == notices
    assert all("is now called" in notice and "\n" not in notice for notice in said)
