from __future__ import annotations

import numpy as np
import pytest
from bakeoff.search.variants import Variant
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses


def _unit(rows: int, dimensions: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimensions))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def test_truncation_keeps_the_first_dimensions_at_unit_length() -> None:
    vectors = np.array([[0.6, 0.0, 0.8], [0.48, 0.64, 0.6]], dtype=np.float32)
    kept = Variant(2).fit(vectors).documents(vectors)
    np.testing.assert_allclose(kept, [[1.0, 0.0], [0.6, 0.8]], atol=1e-6)


def test_binary_similarity_is_hamming() -> None:
    a, b = _unit(1, 64, 1), _unit(1, 64, 2)
    fitted = Variant(precision="binary").fit(a)
    hamming = int(np.count_nonzero((a >= 0) != (b >= 0)))
    assert float((fitted.documents(a) @ fitted.queries(b).T)[0, 0]) == pytest.approx(1 - 2 * hamming / 64, abs=1e-6)


def test_int8_is_what_faiss_decodes() -> None:
    """FAISS's 8-bit quantiser is the independent implementation: ranges by dimension, 255 steps, their middle."""
    import faiss

    vectors = _unit(500, 32, 3)
    index = faiss.IndexScalarQuantizer(32, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    index.sq.rangestat = faiss.ScalarQuantizer.RS_minmax
    index.sq.rangestat_arg = 0.0
    index.train(vectors)
    index.add(vectors)
    theirs = index.reconstruct_n(0, 500)
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(Variant(precision="int8").fit(vectors).documents(vectors), theirs, atol=1e-6)


def test_int8_moves_a_value_by_at_most_half_a_step() -> None:
    vectors = _unit(200, 16, 4)
    fitted = Variant(precision="int8").fit(vectors)
    step = (vectors.max(axis=0) - vectors.min(axis=0)) / 255
    assert (np.abs(fitted._round(vectors) - vectors) <= step / 2 + 1e-6).all()


@given(st.integers(1, 8), st.sampled_from(["float32", "int8", "binary"]))
def test_everything_that_comes_out_has_unit_length(dimensions: int, precision: str) -> None:
    vectors = _unit(20, 8, 5)
    fitted = Variant(dimensions, precision).fit(vectors)  # type: ignore[arg-type]
    for made in (fitted.documents(vectors), fitted.queries(vectors)):
        np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
        assert made.shape == (20, dimensions)


def test_bytes_and_names() -> None:
    assert Variant(256, "int8").bytes_each(1024) == 256
    assert Variant(None, "binary").bytes_each(1024) == 128
    assert [str(Variant()), str(Variant(256)), str(Variant(256, "int8"))] == ["", "256", "256-int8"]


def test_more_dimensions_than_there_are() -> None:
    with refuses(InputError, "9", "8"):
        Variant(9).fit(_unit(1, 8, 0))
