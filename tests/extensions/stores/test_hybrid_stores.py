"""Hybrid search in the engines themselves; those that need a larger package are in tests/servers."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from bakeoff.extensions.stores.lancedb import LanceDB
from bakeoff.extensions.stores.pgvector import PgVector
from bakeoff.extensions.stores.qdrant import Qdrant, WordWeights
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import HybridStore

from tests.extensions.stores.hybrid_suite import HybridSuite, OpenHybrid, opener


class TestPostgres(HybridSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls, postgres: str) -> OpenHybrid:
        return opener(PgVector, url=postgres)


class TestLanceDB(HybridSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls) -> OpenHybrid:
        return opener(LanceDB)


class TestQdrant(HybridSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls) -> OpenHybrid:
        return opener(Qdrant)


def test_what_a_store_says_it_can_is_what_it_is() -> None:
    for name in STORES.builtin:
        store = STORES.get(name)
        assert ("hybrid" in store.search_kinds) == issubclass(store, HybridStore)


def test_word_weights_are_those_of_bm25_without_rarity() -> None:
    """By hand: k1 1.2, b .75, an average of 256 words; "ship" twice in a text of three words."""
    (numbers, weights), other = WordWeights().of_documents(["ships, a ship and doors", "a door"])
    length = 0.25 + 0.75 * 3 / 256
    assert sorted(weights) == pytest.approx(sorted([2.2 / (1 + 1.2 * length), 2 * 2.2 / (2 + 1.2 * length)]))
    assert len(set(numbers) & set(other[0])) == 1
    asked = WordWeights().of_query("the ship of ships")
    assert set(asked[0]) <= set(numbers)
    assert asked[1] == [1.0]
    assert not math.isnan(sum(weights))
    assert Counter(map(type, numbers)) == {int: 2}
