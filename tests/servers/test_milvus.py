"""Milvus's engine from the wheel milvus-lite, through the conformance and the hybrid suite."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from bakeoff.extensions.conformance.stores import DIMENSIONS, IDS, VECTORS, OpenStore, StoreConformance
from bakeoff.extensions.stores.milvus import Milvus
from bakeoff_providers.errors import InputError, Unavailable

from tests.extensions.stores.hybrid_suite import HybridSuite, OpenHybrid, opener

pytestmark = pytest.mark.servers


class TestFlat(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        return lambda folder, dimensions: Milvus(dimensions=dimensions, folder=folder)


class TestHybrid(HybridSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls) -> OpenHybrid:
        return opener(Milvus)


def test_an_index_that_only_servers_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'HNSW'"):
        Milvus(dimensions=4, folder=tmp_path, index="HNSW")


def test_a_server_that_is_not_there_costs_its_row(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="milvus"):
        Milvus(dimensions=4, folder=tmp_path, url="http://127.0.0.1:9")


def test_the_engine_leaves_no_logs_behind(tmp_path: Path) -> None:
    """It would write one set of files to the system's folder at each start."""
    places = (Path(tempfile.gettempdir()), Path("/tmp"))
    before = {file for place in places for file in place.glob("milvus.*.log.*")}
    store = Milvus(dimensions=DIMENSIONS, folder=tmp_path)
    (engine,) = store.processes()
    store.add(IDS[:10], VECTORS[:10])
    assert list(store.search(VECTORS[0], 1).ids) == ["d0"]
    store.discard()
    after = {file for place in places for file in place.glob("milvus.*.log.*")}
    assert not [file for file in after - before if file.name.endswith(f".{engine}")]
    assert "GLOG_log_dir" not in os.environ
