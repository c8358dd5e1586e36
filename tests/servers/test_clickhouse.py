"""ClickHouse's engine from the wheel chdb-core, through the conformance suite."""

from __future__ import annotations

import pytest
from bakeoff.extensions.conformance.stores import OpenStore, StoreConformance
from bakeoff.extensions.stores.clickhouse import ClickHouse

pytestmark = pytest.mark.servers


class TestGraph(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        return lambda folder, dimensions: ClickHouse(dimensions=dimensions, folder=folder)


class TestExact(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        return lambda folder, dimensions: ClickHouse(dimensions=dimensions, folder=folder, index="none")


class TestBytes(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        return lambda folder, dimensions: ClickHouse(dimensions=dimensions, folder=folder, quantization="i8")

    @pytest.fixture(scope="class")
    @classmethod
    def loss(cls) -> float:
        return 0.02
