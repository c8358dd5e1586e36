"""Milvus's engine from the wheel milvus-lite, through the conformance and the hybrid suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.search.stores.conformance import OpenStore, StoreConformance
from bakeoff.search.stores.milvus import Milvus
from bakeoff_providers.errors import InputError, Unavailable

from tests.search.hybrid_suite import HybridSuite, OpenHybrid, opener

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
    with pytest.raises(InputError, match="milvus-lite has no index 'HNSW'"):
        Milvus(dimensions=4, folder=tmp_path, index="HNSW")


def test_a_server_that_is_not_there_costs_its_row(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="milvus"):
        Milvus(dimensions=4, folder=tmp_path, url="http://127.0.0.1:9")
