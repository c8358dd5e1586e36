"""The conformance suite over every store in every setup that matters."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.search.stores import STORES
from bakeoff.search.stores.conformance import DIMENSIONS, IDS, VECTORS, OpenStore, StoreConformance, recall

from tests.search.store_setups import ELSEWHERE, SETUPS, Setup, opener


@pytest.fixture(scope="class", params=SETUPS, ids=str)
def setup(request: pytest.FixtureRequest) -> Setup:
    chosen: Setup = request.param
    return chosen


class TestStores(StoreConformance):
    """Real engines and real servers."""

    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, setup: Setup, request: pytest.FixtureRequest) -> OpenStore:
        """The server that the setup asks for starts with the first test that needs it."""
        return opener(setup, request.getfixturevalue(setup.server) if setup.server else None)

    @pytest.fixture(scope="class")
    @classmethod
    def loss(cls, setup: Setup) -> float:
        return setup.loss

    @pytest.fixture(scope="class")
    @classmethod
    def loses_under_writes(cls, setup: Setup) -> bool:
        return setup.loses_under_writes


def test_every_built_in_store_has_a_setup() -> None:
    assert set(STORES.builtin) == {setup.store for setup in SETUPS} | set(ELSEWHERE)
    for test in ELSEWHERE.values():
        assert "StoreConformance" in (Path(__file__).parents[1] / "servers" / test).read_text()


def test_a_store_that_loses_documents_fails_with_its_recall(tmp_path: Path) -> None:
    """Every second document is missing, and with it about half of what is nearest."""
    store = STORES.create("faiss", dimensions=DIMENSIONS, folder=tmp_path)
    store.add(IDS[::2], VECTORS[::2])
    store.build()
    share = recall(store, 10)
    assert 0.3 < share < 0.7
    with pytest.raises(AssertionError, match=f"{share:.3f}"):
        StoreConformance().test_the_nearest_are_found(store)
