"""A real Redis with its search module through the conformance suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff.extensions.conformance.stores import IDS, VECTORS, OpenStore, StoreConformance
from bakeoff.extensions.stores.redis import URL, Redis
from bakeoff_providers.errors import Unavailable

from tests.servers.redis_server import FOLDER, redis_server

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if FOLDER not in os.environ:
        pytest.skip(f"{FOLDER} names no folder of Debian's packages: python -m tests.servers.redis_server FOLDER")
    with redis_server(Path(os.environ[FOLDER]), tmp_path_factory.mktemp("redis")) as url:
        yield url


class TestGraph(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, server: str) -> OpenStore:
        return lambda folder, dimensions: Redis(dimensions=dimensions, folder=folder, url=server)


class TestFlat(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, server: str) -> OpenStore:
        return lambda folder, dimensions: Redis(dimensions=dimensions, folder=folder, url=server, index="FLAT")


def test_discarding_leaves_nothing_on_the_server(server: str, tmp_path: Path) -> None:
    import redis

    store = Redis(dimensions=16, folder=tmp_path, url=server)
    store.add(IDS[:10], VECTORS[:10])
    with redis.Redis.from_url(server) as client:
        before = client.dbsize()
        store.discard()
        assert client.dbsize() == before - 10


def test_without_a_server_it_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(Unavailable, match="REDIS_URL"):
        Redis(dimensions=4, folder=tmp_path)
    with pytest.raises(Unavailable, match="redis"):
        Redis(dimensions=4, folder=tmp_path, url="redis://127.0.0.1:9")
