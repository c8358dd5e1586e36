"""Exact search against a full sort in float64."""

from __future__ import annotations

import numpy as np
import pytest

from harness import exact
from harness.exact import exact_topk


@pytest.mark.parametrize("k", [1, 3, 7, 50])
def test_it_finds_what_a_full_sort_finds(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "BLOCK_CELLS", 100)  # several blocks
    rng = np.random.default_rng(1)
    documents, queries = rng.normal(size=(40, 8)).astype(np.float32), rng.normal(size=(9, 8)).astype(np.float32)
    places, scores = exact_topk(queries, documents, k)
    full = queries.astype(np.float64) @ documents.astype(np.float64).T
    expected = np.argsort(-full, axis=1)[:, : min(k, 40)]
    assert (places == expected).all()
    assert scores == pytest.approx(np.take_along_axis(full, expected, axis=1), abs=1e-5)


def test_equal_ones_stay_in_the_order_of_the_documents() -> None:
    documents = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    places, scores = exact_topk(np.array([[1.0, 0.0]], dtype=np.float32), documents, 4)
    assert places.tolist() == [[1, 2, 3, 0]]
    assert scores.tolist() == [[1.0, 1.0, 1.0, 0.0]]
