"""The conformance suite over every store in every setup that matters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from bakeoff.extensions.conformance.stores import (
    DIMENSIONS,
    IDS,
    METADATA,
    VECTORS,
    OpenStore,
    StoreConformance,
    recall,
)
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store

from tests.errors import refuses
from tests.search.lying import BY_ANSWERS, BY_COUNT, Liar
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
    with refuses(AssertionError, f"{share:.3f}"):
        StoreConformance().test_the_nearest_are_found(store)


@pytest.mark.parametrize("how", [*BY_COUNT, *BY_ANSWERS])
def test_the_suite_catches_a_store_that_lies(how: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """By one of the four tests of what is held, what is found, its order and its scores."""
    suite, folders = StoreConformance(), iter(range(10))

    def opened(_: Path, dimensions: int) -> Store:
        return Liar(dimensions=dimensions, folder=tmp_path_factory.mktemp(f"liar{next(folders)}"), how=how)

    store = opened(Path(), DIMENSIONS)
    store.add(IDS, VECTORS, METADATA)
    tests: list[Callable[[], None]] = [
        partial(suite.test_the_store_counts_what_it_holds, store, opened, Path()),
        partial(suite.test_the_nearest_are_found, store),
        partial(suite.test_the_ranking_is_the_one_that_exact_scores_give, store, 1e-5),
        partial(suite.test_scores_are_cosinesimilarities, store, 1e-5),
    ]
    assert any(_fails(test) for test in tests)


def _fails(test: Callable[[], None]) -> bool:
    try:
        test()
    except (AssertionError, IndexError):
        return True
    return False


def test_the_suite_passes_the_same_store_when_it_is_honest(tmp_path: Path) -> None:
    suite, store = StoreConformance(), Liar(dimensions=DIMENSIONS, folder=tmp_path)
    store.add(IDS, VECTORS, METADATA)
    assert store.count() == len(IDS)
    suite.test_the_nearest_are_found(store)
    suite.test_the_ranking_is_the_one_that_exact_scores_give(store, 1e-5)
    suite.test_scores_are_cosinesimilarities(store, 1e-5)
