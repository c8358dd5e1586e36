"""The page of `corpus-size`: a log axis, intervals, and an estimate that can't be taken for a measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bakeoff.extensions.corpus_size.commands import cells, chart, heads, render, sentences
from bakeoff.extensions.corpus_size.growth import Extrapolation
from bakeoff.extensions.corpus_size.study import CorpusSizes, Growth, SizePoint

HOSTILE = "<script>alert(1)</script>"


def _found(target: int | None) -> CorpusSizes:
    estimate = Extrapolation(100_000, 0.4, 0.2, 0.6) if target else None
    rows = [
        Growth("lower", [SizePoint(100, 0.6, 0.5, 0.7), SizePoint(1000, 0.5, 0.4, 0.6)], estimate),
        Growth(HOSTILE, [SizePoint(100, 0.7, 0.6, 0.8), SizePoint(1000, 0.6, None, None)], estimate),
    ]
    return CorpusSizes(
        name="sizes", task="shop", measure="ndcg@10", queries=50, seed=42, sizes=[100, 1000], rows=rows, changes=[],
        target=target,
    )  # fmt: skip


def _layers(found: CorpusSizes) -> list[dict[str, Any]]:
    """Each with its own records, which altair may have put above them."""
    (panel,) = chart(found).panels
    drawn = panel.to_dict(validate=False)
    shared = drawn.get("datasets", {})
    layers = [{"data": drawn.get("data"), **layer} for layer in drawn["layer"]]
    return [{**layer, "records": layer["data"].get("values") or shared[layer["data"]["name"]]} for layer in layers]


def test_the_best_is_first_and_an_estimate_has_its_own_column() -> None:
    *measured, estimate = [head.name for head in heads(_found(100_000))]
    assert measured == ["contender", "100", "1,000"]
    assert "100,000" in estimate
    assert cells(_found(100_000)) == [
        [HOSTILE, "0.700 [0.600, 0.800]", "0.600", "0.400 [0.200, 0.600]"],
        ["lower", "0.600 [0.500, 0.700]", "0.500 [0.400, 0.600]", "0.400 [0.200, 0.600]"],
    ]
    assert [len(row) for row in cells(_found(None))] == [3, 3]
    assert any(sentence.startswith("Estimates: ") for sentence in sentences(_found(100_000)))
    assert not any("stimate" in sentence for sentence in sentences(_found(None)))


def test_the_chart_has_a_log_axis_bands_and_dashes_beyond_what_was_measured() -> None:
    plain, beyond = _layers(_found(None)), _layers(_found(100_000))
    assert all(layer["encoding"]["x"]["scale"]["type"] == "log" for layer in plain)
    band = plain[0]
    assert (band["mark"]["type"], band["encoding"]["y2"]["field"]) == ("area", "high")
    assert {record["what"] for layer in plain for record in layer["records"]} == {"measured"}
    dashed = [layer for layer in beyond if layer["mark"]["type"] == "line" and "strokeDash" in layer["mark"]]
    assert [[record["documents"] for record in layer["records"]] for layer in dashed] == [[1000, 100_000]] * 2
    (text,) = (layer for layer in beyond if layer["mark"]["type"] == "text")
    (record,) = text["records"]
    assert record["documents"] == 100_000
    assert "100,000" in record["what"]


@pytest.mark.parametrize("target", [None, 100_000])
def test_the_page_is_one_file_in_which_names_are_text(tmp_path: Path, target: int | None) -> None:
    assert render(_found(target), tmp_path / "sizes.html") == []
    written = (tmp_path / "sizes.html").read_text()
    assert HOSTILE not in written
    assert "&lt;script&gt;alert(1)" in written
    policy = written.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src &#39;none&#39;") or policy.startswith("default-src 'none'")
    specs = json.loads(written.partition('id="specs">')[2].partition("</script>")[0])
    assert len(specs) == 1
    assert ("100,000" in written) == (target is not None)
