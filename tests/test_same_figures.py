"""`bench/same_figures.py`: which differences it finds in two documents, and what it leaves out."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def bench() -> dict[str, Any]:
    folder = Path(__file__).parent.parent / "bench"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        return runpy.run_path(str(folder / "same_figures.py"))


def _paths(bench: dict[str, Any], before: Any, after: Any, *ignored: str) -> list[str]:
    patterns = [bench["as_pattern"](path) for path in ignored]
    return [path for path, _, _ in bench["differing"](before, after, patterns)]


def test_every_number_is_compared_by_what_names_it(bench: dict[str, Any]) -> None:
    before = {
        "rows": [{"label": "a", "low": 0.1}, {"label": "b", "low": 0.2}],
        "pairs": [{"a": "a", "b": "b", "p": 0.5}],
    }
    after = {"rows": [{"label": "b", "low": 0.2}, {"label": "a", "low": 0.1 + 1e-15}], "pairs": [{"a": "a", "b": "b"}]}
    assert _paths(bench, before, after) == ["rows/a/low", "pairs/a b/p"]
    assert _paths(bench, before, before) == []


def test_a_list_that_grew_differs_at_its_end(bench: dict[str, Any]) -> None:
    assert _paths(bench, {"ids": ["1", "2"]}, {"ids": ["1", "2", "3"]}) == ["ids/2"]


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ("rows/*/cost", ["rows/a/low"]),
        ("rows", []),
        ("cost/usd", ["rows/a/low"]),
        ("row", ["rows/a/cost/usd", "rows/a/low"]),
    ],
)
def test_a_path_is_ignored_by_whole_steps(bench: dict[str, Any], ignored: str, left: list[str]) -> None:
    before, after = ({"rows": [{"label": "a", "cost": {"usd": n}, "low": n}]} for n in (1, 2))
    assert _paths(bench, before, after, ignored) == left


def test_wording_is_told_from_its_numbers(bench: dict[str, Any]) -> None:
    before = {"said": ["a leads by 0.1 (p = 0.03)", "b is 3 × faster"]}
    assert _paths(bench, before, {"said": ["a is ahead by 0.1, p = 0.03", "b is 4 × faster"]}) == ["said/0/words"]
    assert _paths(bench, before, {"said": ["a is ahead by 0.1, p = 0.03"]}, "words") == []
    assert _paths(bench, before, {"said": ["a is ahead by 0.2, p = 0.03"]}, "words") == ["said/0"]


def test_another_name_is_no_wording(bench: dict[str, Any]) -> None:
    assert _paths(bench, {"best": "minilm+faiss"}, {"best": "use+faiss"}, "words") == ["best"]


def test_cells_of_a_table_are_compared_by_its_head(bench: dict[str, Any]) -> None:
    before, after = ({"head": ["Row", "gain", "gain per ms"], "rows": [["x", "1", n]]} for n in ("2", "3"))
    assert _paths(bench, {"sections": before}, {"sections": after}) == ["sections/rows/0/gain per ms"]


def test_a_dry_run_is_read_by_its_columns(bench: dict[str, Any]) -> None:
    text = """
rows            texts   requests          $   minutes   note
────────────────────────────────────────────────────────────
a+faiss, b         45         21   0.000086      <0.1   no key
c                   5          0    unknown         –

in total about $0.000086; no request was sent
"""
    plan = bench["plan_of"](bench["Output"](0, text, ""))
    assert plan["table"]["a+faiss, b"] == {
        "rows": "a+faiss, b", "texts": "45", "requests": "21", "$": "0.000086", "note": "no key",
    }  # fmt: skip
    assert plan["table"]["c"]["$"] == "unknown"
    assert plan["said"] == ["in total about $0.000086; no request was sent"]
