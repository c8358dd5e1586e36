"""A line-up that is written reads back as the same line-up, also after a result has carried it as JSON."""

from __future__ import annotations

import datetime
import math
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w
from bakeoff.core.paths import default_lineup, lineup_file, lineup_names
from bakeoff.core.toml_values import json_safe, toml_value
from bakeoff.lineup.lineup import Lineup, lineup_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)  # TOML has every character but lone surrogates
PRINTED = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8)
NAMES = st.one_of(
    st.sampled_from(["x+y", "a@64", "a@int8", "faiss", "+", "@", "a b", "ä/ö", "1", "\x7f\x00", 'a"b\\', "$toml"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**80), max_value=2**80),
    st.floats(allow_nan=False),
    TEXT,
    st.datetimes(),
    st.datetimes(timezones=st.timezones().map(lambda _: datetime.UTC)),
    st.dates(),
    st.times(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TABLES = st.dictionaries(NAMES, VALUES, max_size=3)


@st.composite
def dense(draw: st.DrawFn) -> dict[str, Any]:
    store = st.one_of(
        st.sampled_from(["faiss", "chroma"]),
        st.fixed_dictionaries({"name": st.just("faiss")}, optional={"label": TEXT, "options": STORE_OPTIONS}),
    )
    size = st.integers(1, 2000)
    precision = st.sampled_from(["float32", "int8", "binary"])
    settings_ = {
        "model": TEXT,
        "label": TEXT,
        "field": TEXT,
        "dimensions": st.one_of(size, st.lists(size, max_size=2, unique=True)),
        "precision": st.one_of(precision, st.lists(precision, min_size=1, max_size=2, unique=True)),
    }
    stores = st.one_of(store, st.lists(store, min_size=1, max_size=3))
    entry = draw(st.fixed_dictionaries({"store": stores}, optional=settings_))
    provider = draw(st.sampled_from(["fake", "tfidf", "own"]))
    options = {"fake": {"dimensions": st.integers(1, 65_536)}, "own": {"mine": VALUES}}.get(provider, {})
    return entry | {"provider": provider, "options": draw(st.fixed_dictionaries({}, optional=options))}


STORE_OPTIONS = st.fixed_dictionaries({}, optional={"index": TEXT, "k_factor": st.floats(1, 10_000)})
LEXICAL = st.fixed_dictionaries({"ranker": st.just("bm25")}, optional={"label": TEXT, "field": TEXT})


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    file_by_file: bool = draw(st.booleans())
    seeds: list[int] = draw(st.lists(st.integers(-3, 12), max_size=3))
    label = {"label": draw(NAMES)}
    if seeds and file_by_file:
        return label | {"answers": {str(seed): draw(TEXT) for seed in seeds}}
    parts = st.one_of(st.sampled_from(["v1/", "gru-", "1", "2", "11", "-", ".npy"]), TEXT.map(_no_seed))
    pattern = "".join(draw(st.lists(parts, min_size=1, max_size=4)))
    if not seeds:
        return label | {"answers": _no_seed(pattern) or "a"}
    at = draw(st.integers(0, len(pattern)))
    return label | {"answers": f"{pattern[:at]}{{seed}}{pattern[at:]}", "seeds": seeds}


def _no_seed(text: str) -> str:
    return text.replace("{seed}", "")


CATEGORIES = st.dictionaries(
    NAMES, st.one_of(TEXT, st.fixed_dictionaries({}, optional={"about": TEXT, "templates": st.lists(TEXT)})), max_size=2
)
FILES = st.fixed_dictionaries(
    {
        "task": st.one_of(TEXT, TABLES),
        "contender": st.lists(st.one_of(dense(), LEXICAL, answers()), min_size=1, max_size=4),
    },
    optional={
        "name": PRINTED,
        "measures": st.lists(st.sampled_from(["p@5", "ndcg(gain=exp)@10", "p(rel=2)@5", "mrr"]), min_size=1),
        "primary": st.sampled_from(["ndcg@10", "map(over=found)@10"]),
        "depth": st.integers(1, 10**6),
        "rounds": st.integers(1, 9),
        "seed": st.integers(0, 2**63 - 1),
        "equivalent_within": st.sampled_from([0.01, 0.02, 0.5]),
        "overrides": TABLES,
        "categories": CATEGORIES,
    },
)
FUSION = st.fixed_dictionaries(
    {"label": NAMES, "c": st.floats(0, 1e9)}, optional={"top_n": st.integers(1, 10**6)}
)  # its parts come from the line-up


def _read(folder: Path, text: str) -> Lineup:
    path = folder / "lineup.toml"
    path.write_bytes(text.encode())
    return Lineup.read(path)


def _file(content: dict[str, Any]) -> str:
    """The file as an independent library spells it."""
    return tomli_w.dumps(content)


@pytest.mark.slow
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=FILES, fusions=st.lists(FUSION, max_size=2), weights=st.lists(st.floats(0.1, 9), min_size=2, max_size=2))
def test_what_is_written_reads_back_the_same(
    tmp_path: Path, content: dict[str, Any], fusions: list[dict[str, Any]], weights: list[float]
) -> None:
    for number, entry in enumerate(content["contender"]):  # two rows must not share a label
        entry["label"] = f"{entry.get('label', '')}{number}"
        if isinstance(entry.get("store"), list):
            entry["store"] = _distinct(entry["store"])
    lineup = _read(tmp_path, _file(content))
    if len(lineup.contenders) > 1:
        parts = [contender.label for contender in lineup.contenders[:2]]
        content["fusion"] = [
            fusion | {"label": f"{fusion['label']} fused {number}", "of": parts, "weights": weights}
            for number, fusion in enumerate(fusions)
        ]
        lineup = _read(tmp_path, _file(content))
    stored = msgspec.json.decode(msgspec.json.encode(lineup.to_dict()))
    for carried in (lineup.to_dict(), stored):
        again = _read(tmp_path, lineup_text(carried))
        assert again == lineup
        assert [row.shares for row in again.contenders] == [row.shares for row in lineup.contenders]
        assert again.to_dict() == lineup.to_dict()


def _distinct(stores: list[Any]) -> list[Any]:
    """The same store twice in one entry would give two rows of one name."""
    named = [{"name": store} if isinstance(store, str) else store for store in stores]
    return [store | {"label": f"{store.get('label', '')}{number}"} for number, store in enumerate(named)]


@given(VALUES)
def test_every_value_survives_toml_and_json(value: Any) -> None:
    assert tomllib.loads(f"x = {toml_value(json_safe(value))}")["x"] == value
    stored = msgspec.json.decode(msgspec.json.encode(json_safe(value)))
    assert tomllib.loads(f"x = {toml_value(stored)}")["x"] == value


def test_what_json_has_no_word_for() -> None:
    moment = datetime.datetime(2026, 11, 16, 9, 30, tzinfo=datetime.UTC)
    assert json_safe({"a": 1, "b": [2.5, "x", True]}) == {"a": 1, "b": [2.5, "x", True]}
    assert json_safe([math.inf, 2**64, moment]) == [
        {"$toml": "inf"},
        {"$toml": "18446744073709551616"},
        {"$toml": "2026-11-16T09:30:00+00:00"},
    ]
    assert math.isnan(tomllib.loads(f"x = {toml_value(json_safe(math.nan))}")["x"])


ROWS = [
    ('answers = "v1/gru-{seed}.npy"\nseeds = [1, 2]', 'answers = "v1/gru-{seed}.npy"'),
    ('answers = "{seed}/gru-{seed}.npy"\nseeds = [3, 4]', 'answers = "{seed}/gru-{seed}.npy"'),
    ('answers = "{seed}/v1.npy"\nseeds = [1, 2]\nlabel = "a"', 'answers = { "1" = "1/v1.npy", "2" = "2/v1.npy" }'),
    ('provider = "fake"\nlabel = "x+y"\nstore = "faiss"', 'label = "x+y"'),
    ('provider = "fake"\nstore = { name = "faiss", label = "x+y" }', 'store = { "name" = "faiss", "label" = "x+y" }'),
    ('provider = "fake"\nlabel = "a@64"\ndimensions = 64\nstore = "faiss"', 'label = "a@64"'),
]


@pytest.mark.parametrize(("row", "written"), ROWS)
def test_labels_and_patterns_come_back_as_they_were(tmp_path: Path, row: str, written: str) -> None:
    lineup = _read(tmp_path, f'task = "wikipedia"\n[[contender]]\n{row}\n')
    text = lineup_text(lineup.to_dict())
    assert written in text.splitlines()
    assert _read(tmp_path, text) == lineup


@pytest.mark.parametrize("name", ["bakeoff", *lineup_names()])
def test_the_shipped_line_ups_come_back(tmp_path: Path, name: str) -> None:
    lineup = Lineup.read(default_lineup() if name == "bakeoff" else lineup_file(Path(name)))
    again = _read(tmp_path, lineup_text(lineup.to_dict()))
    assert again.contenders == lineup.contenders
    assert again.to_dict() == lineup.to_dict()
