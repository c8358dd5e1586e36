"""A real Milvus server through the conformance suite: `make test-milvus` starts one in a network of its own."""

from __future__ import annotations

import os

import pytest
from bakeoff.extensions.conformance.stores import OpenStore, StoreConformance
from bakeoff.extensions.stores.milvus import URL, Milvus

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(URL not in os.environ, reason="MILVUS_URL names no server: make test-milvus"),
]


@pytest.fixture(scope="module", params=["FLAT", "HNSW", "IVF_FLAT"])
def index(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class TestServer(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, index: str) -> OpenStore:
        lists = {"lists": 16} if index == "IVF_FLAT" else {}
        return lambda folder, dimensions: Milvus(dimensions=dimensions, folder=folder, index=index, **lists)  # type: ignore[arg-type]
