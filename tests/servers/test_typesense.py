"""A real Typesense server through the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff.extensions.conformance.stores import IDS, VECTORS, OpenStore, StoreConformance
from bakeoff.extensions.stores.typesense import KEY, URL, Typesense
from bakeoff_providers.errors import Unavailable

from tests.servers import typesense_server

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        pytest.MonkeyPatch.context() as patch,
        typesense_server.typesense_server(tmp_path_factory.mktemp("typesense")) as url,
    ):
        patch.setenv(KEY, typesense_server.KEY)
        patch.setenv(URL, url)
        yield url


@pytest.mark.usefixtures("server")
class TestTypesense(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, server: str) -> OpenStore:
        return lambda folder, dimensions: Typesense(dimensions=dimensions, folder=folder)


def test_a_wrong_key_costs_the_row(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "wrong")
    with pytest.raises(Unavailable, match="401"):
        Typesense(dimensions=4, folder=tmp_path, url=server)


def test_without_a_server_it_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(Unavailable, match="TYPESENSE_URL"):
        Typesense(dimensions=4, folder=tmp_path)
    with pytest.raises(Unavailable, match="typesense"):
        Typesense(dimensions=4, folder=tmp_path, url="http://127.0.0.1:9")


def test_discarding_leaves_nothing_on_the_server(server: str, tmp_path: Path) -> None:
    store = Typesense(dimensions=16, folder=tmp_path, url=server)
    store.add(IDS[:10], VECTORS[:10])
    store.discard()
    again = Typesense(dimensions=16, folder=tmp_path, url=server)
    assert list(again.search(VECTORS[0], 5).ids) == []
    again.discard()
