"""What a store that ranks by words and vectors in one query must do, over a real engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from bakeoff.extensions.conformance.stores import DIMENSIONS, draw_clustered
from bakeoff.search.stores.base import HybridStore

OpenHybrid = Callable[[Path], HybridStore]
ROWS = 400
IDS = [f"d{row}" for row in range(ROWS)]
VECTORS = draw_clustered(ROWS)
TEXTS = [f"harbours and ships number{row}, common" for row in range(ROWS)]
TEXTS[7] = "A ferry goes from Zanzibar to Dar es Salaam; common"
TEXTS[8] = "zanzibar's spices, and Zanzibar's doors, and more of Zanzibar"
METADATA = [{"even": row % 2 == 0} for row in range(ROWS)]
AWAY = -VECTORS[7] - VECTORS[8]  # a query whose vector is far from the two documents that have its word
FAR = np.asarray(AWAY / np.linalg.norm(AWAY), dtype=np.float32)


class HybridSuite:
    """Subclass it and say how the store is opened."""

    @pytest.fixture(scope="class")
    @classmethod
    def open_hybrid(cls) -> OpenHybrid:
        """How to open the store in a folder, with `search` "hybrid"."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def filled(cls, open_hybrid: OpenHybrid, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HybridStore]:
        """All documents, the index built; only read from."""
        store = open_hybrid(tmp_path_factory.mktemp("hybrid"))
        store.add_texts(IDS, VECTORS, TEXTS, METADATA)
        store.build()
        yield store
        store.discard()

    def test_words_find_what_vectors_do_not(self, filled: HybridStore) -> None:
        assert not {"d7", "d8"} & set(filled.search(FAR, 100).ids)
        hits = filled.search_hybrid("Where is Zanzibar?", FAR, 5)
        assert {"d7", "d8"} <= set(hits.ids)
        assert len(hits.ids) == 5

    def test_the_first_of_both_rankings_is_first(self, filled: HybridStore) -> None:
        """d7 is nearest to itself, and one of two with the word: only it is high in both lists."""
        hits = filled.search_hybrid("a ferry to zanzibar", VECTORS[7], 10)
        best = max(zip(hits.scores, hits.ids, strict=True))
        assert best[1] == "d7"
        assert best[0] == pytest.approx(2 / 61, abs=0.001)  # two places, each 1 / (60 + place)

    def test_stems_and_cases_are_one_word(self, filled: HybridStore) -> None:
        assert set(filled.search_hybrid("FERRIES", FAR, 3).ids) & {"d7"}

    def test_a_word_of_many_is_enough(self, filled: HybridStore) -> None:
        assert "d8" in filled.search_hybrid("spices volcanoes teapots glaciers", FAR, 3).ids

    @pytest.mark.parametrize(
        "text", ["", "the of and", "xyzzy", "' OR 1=1; --", 'a & b | !c:* (d) "e" <-> f\\', "\x00?"]
    )
    def test_without_known_words_the_vectors_decide(self, filled: HybridStore, text: str) -> None:
        nearest = set(filled.search(VECTORS[3], 20).ids)
        hits = filled.search_hybrid(text, VECTORS[3], 5)
        assert len(hits.ids) == 5
        assert set(hits.ids) <= nearest

    def test_filters_hold_for_both_rankings(self, filled: HybridStore) -> None:
        hits = filled.search_hybrid("zanzibar", FAR, 20, {"even": False})
        assert "d7" in hits.ids
        assert all(int(item[1:]) % 2 == 1 for item in hits.ids)
        assert len(hits.ids) == 20

    def test_replaced_and_deleted_texts_are_gone(self, open_hybrid: OpenHybrid, tmp_path: Path) -> None:
        store = open_hybrid(tmp_path)
        store.add_texts(IDS[:300], VECTORS[:300], TEXTS[:300], METADATA[:300])
        store.build()
        store.add_texts(["d7"], VECTORS[7:8], ["nothing of the sort"])
        store.delete(["d8"])
        store.add_texts(["new"], VECTORS[7:8], ["by dhow to Zanzibar"])
        hits = store.search_hybrid("zanzibar", FAR, 3)
        assert "new" in hits.ids
        assert not {"d7", "d8"} & set(hits.ids)
        store.discard()

    def test_an_empty_store_answers_nothing(self, open_hybrid: OpenHybrid, tmp_path: Path) -> None:
        store = open_hybrid(tmp_path)
        assert list(store.search_hybrid("zanzibar", FAR, 3).ids) == []
        store.discard()


def opener(create: Callable[..., HybridStore], **options: object) -> OpenHybrid:
    """Opens with `search` "hybrid"."""
    return lambda folder: create(dimensions=DIMENSIONS, folder=folder, search="hybrid", **options)
