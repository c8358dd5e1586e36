"""Rows in bytes and bits show what their stores really keep, and limits go by it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bakeoff.core.facts import fact
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.picks import Limits, is_within
from bakeoff.results.rows import RowMaker
from bakeoff.results.schema import Row
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.statistics.averaging import PerQuery

from tests.facts import ids
from tests.running.beir_task import beir_task

LINEUP = """
name = "small"
task = { format = "beir", folder = "task" }
rounds = 1
measures = ["ndcg@10"]

[[contender]]
provider = "fake"
store = "faiss"
precision = ["float32", "int8", "binary"]

[[contender]]
provider = "fake"
store = "hnswlib"
precision = ["float32", "int8"]

[[contender]]
provider = "fake"
store = "qdrant"
precision = "binary"
"""
DOCUMENTS = 300


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Row]:
    folder = tmp_path_factory.mktemp("rows")
    beir_task(folder / "task")
    (folder / "lineup.toml").write_text(LINEUP)
    outcome = run(Lineup.read(folder / "lineup.toml"), Settings(cache=None))
    return {row.label: row for row in RowMaker(outcome.task, outcome.machine, PerQuery(42)).of(outcome.ran)}


def test_faiss_rows_have_the_size_of_their_codes(rows: Mapping[str, Row]) -> None:
    plain, small, bits = (rows[f"fake{precision}+faiss"] for precision in ("", "@int8", "@binary"))
    dimensions = plain.dimensions
    assert dimensions is not None
    assert [row.vector_bytes for row in (plain, small, bits)] == [4 * dimensions, dimensions, dimensions / 8]
    assert plain.index_bytes == pytest.approx(DOCUMENTS * 4 * dimensions, rel=0.01)
    assert small.index_bytes == pytest.approx((DOCUMENTS + 8) * dimensions, rel=0.02)  # with a range per dimension
    assert bits.index_bytes == pytest.approx(DOCUMENTS * dimensions / 8, rel=0.05)
    said = {id_ for row in (plain, small, bits) for id_ in ids(row.warnings)}
    assert not said & {"no_such_precision", "keeps_originals"}


def test_a_row_is_measured_against_exact_search_over_its_own_precision(rows: Mapping[str, Row]) -> None:
    assert rows["fake+faiss"].loss is None
    for label in ("fake@int8+faiss", "fake@binary+faiss"):
        loss = rows[label].loss
        assert loss is not None
        assert loss.recall >= 0.95
        assert abs(loss.ndcg_lost) < 0.02


def test_rows_whose_store_keeps_more_say_so(rows: Mapping[str, Row]) -> None:
    lacks = fact("no_such_precision", store="hnswlib", precision="int8")
    assert lacks in rows["fake@int8+hnswlib"].warnings
    assert rows["fake@int8+hnswlib"].vector_bytes == rows["fake+hnswlib"].vector_bytes
    assert rows["fake@int8+hnswlib"].index_bytes == rows["fake+hnswlib"].index_bytes
    beside = fact("keeps_originals", store="qdrant", precision="binary")
    assert beside in rows["fake@binary+qdrant"].warnings


def test_a_limit_on_the_index_goes_by_the_real_size(rows: Mapping[str, Row]) -> None:
    plain, small, bits = (rows[f"fake{precision}+faiss"] for precision in ("", "@int8", "@binary"))
    assert plain.index_bytes is not None
    limits = Limits(index_mb=0.3 * plain.index_bytes / 1e6)
    assert [is_within(row, limits) for row in (plain, small, bits)] == [False, True, True]
