"""The conformance suite over every store in every setup that matters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff.search.stores import STORES
from bakeoff.search.stores.conformance import OpenStore, StoreConformance

from tests.search.store_setups import ELSEWHERE, SETUPS, Setup, opener, running_servers


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, str]]:
    """In a folder of its own: PostgreSQL's user may not enter pytest's."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, running_servers(Path(folder)) as urls:
        yield urls


@pytest.fixture(scope="class", params=SETUPS, ids=str)
def setup(request: pytest.FixtureRequest) -> Setup:
    chosen: Setup = request.param
    return chosen


class TestStores(StoreConformance):
    """Real engines and real servers."""

    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, setup: Setup, servers: dict[str, str]) -> OpenStore:
        return opener(setup, servers)

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
