"""What every store must do, asked of each of them with the same vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.stores import STORES
from harness.stores.base import Store
from providers.base import Vectors
from providers.errors import InputError


def _unit(rows: int, dimensions: int = 16, seed: int = 0) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimensions))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture(params=STORES.names())
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = STORES.create(request.param, dimensions=16, folder=tmp_path)
    yield made
    made.close()


def test_scores_are_cosine_similarities(store: Store) -> None:
    vectors, query = _unit(50), _unit(1, seed=1)[0]
    ids = [f"d{number}" for number in range(50)]
    store.add(ids, vectors)
    hits = store.search(query, 10)
    truth = dict(zip(ids, (vectors.astype(np.float64) @ query).tolist(), strict=True))
    best = sorted(truth, key=lambda item: -truth[item])[:10]
    assert set(hits.ids) == set(best)
    for item, score in zip(hits.ids, hits.scores, strict=True):
        assert score == pytest.approx(truth[item], abs=1e-5)


def test_k_beyond_the_size_answers_all(store: Store) -> None:
    store.add(["a", "b"], _unit(2))
    assert sorted(store.search(_unit(1, seed=1)[0], 10).ids) == ["a", "b"]


def test_unicode_ids_and_equal_vectors(store: Store) -> None:
    ids = ["ß", "日本", "a b", "é#1"]
    store.add(ids, np.repeat(_unit(1), 4, axis=0))
    assert sorted(store.search(_unit(1)[0], 4).ids) == sorted(ids)


def test_more_than_one_batch(store: Store) -> None:
    vectors = _unit(6000)
    store.add([str(number) for number in range(6000)], vectors)
    assert store.search(vectors[5999], 1).ids[0] == "5999"
    assert store.size_bytes() >= 6000 * 16 * 4


def test_an_unknown_faiss_index_is_an_input_error(tmp_path: Path) -> None:
    options: dict[str, Any] = {"index": "Flatt"}
    with pytest.raises(InputError, match="does not know the index 'Flatt'"):
        STORES.create("faiss", dimensions=4, folder=tmp_path, **options)
