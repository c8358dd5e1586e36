"""Exact search against a full sort, whatever the block sizes, and recall by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from bakeoff.calls.key_index import Places
from bakeoff.core.progress import Advance, showing
from bakeoff.embedding import vector_rows
from bakeoff.extensions.storelab.vector_sample import synthetic
from bakeoff.search import brute_force
from bakeoff_providers.base import Vectors
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits


@given(
    rows=st.integers(1, 200), queries=st.integers(1, 9), k=st.integers(1, 60), block=st.integers(1, 50),
    together=st.integers(1, 4), levels=st.integers(1, 4), seed=st.integers(0, 5),
)  # fmt: skip
def test_it_finds_what_a_full_sort_finds(
    rows: int, queries: int, k: int, block: int, together: int, levels: int, seed: int
) -> None:
    """Small whole numbers: sums are exact, and ties are everywhere."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-levels, levels + 1, size=(rows, 3)).astype(np.float32)
    asked = rng.integers(-levels, levels + 1, size=(queries, 3)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brute_force, "BLOCK", block)
        patch.setattr(brute_force, "FIRST", 1 + block // 2)
        patch.setattr(brute_force, "QUERIES", together)
        found, scores = brute_force.nearest(asked, vectors, k)
    truth = asked @ vectors.T
    kept = min(k, rows)
    assert found.shape == scores.shape == (queries, kept)
    assert (scores == -np.sort(-truth, axis=1)[:, :kept]).all()
    assert (np.take_along_axis(truth, found, axis=1) == scores).all()
    for row, values in zip(found.tolist(), scores.tolist(), strict=True):
        assert len(set(row)) == kept
        assert list(zip(values, row, strict=True)) == sorted(zip(values, row, strict=True), key=lambda p: (-p[0], p[1]))


def test_no_documents_and_no_queries() -> None:
    nothing = np.empty((0, 3), dtype=np.float32)
    some = np.ones((2, 3), dtype=np.float32)
    assert brute_force.nearest(some, nothing, 5)[0].shape == (2, 0)
    assert brute_force.nearest(nothing, some, 5)[0].shape == (0, 2)


def test_it_agrees_with_faiss() -> None:
    import faiss

    bed = synthetic(20_000, 48, 300)
    index = faiss.IndexFlatIP(48)
    index.add(bed.documents)
    scores, rows = index.search(bed.queries, 100)
    found, similarities = brute_force.nearest(bed.queries, bed.documents, 100)
    assert similarities == pytest.approx(scores, abs=1e-5)
    assert (np.sort(found, axis=1) == np.sort(rows, axis=1)).mean() > 0.999


@pytest.mark.parametrize(
    ("scores", "last", "wanted", "expected"),
    [
        ([0.9, 0.8, 0.7], 0.7, 3, 1.0),
        ([0.9, 0.7, 0.7], 0.7, 3, 1.0),  # another document than the exact third, of the same score
        ([0.9, 0.8, 0.6], 0.7, 3, 2 / 3),
        ([0.9], 0.7, 4, 0.25),  # a short list
        ([0.7, 0.7, 0.7, 0.7], 0.7, 3, 1.0),
        ([], 0.7, 3, 0.0),
        ([], 0.0, 0, 1.0),  # nothing to find
        ([0.6999999], 0.7, 1, 1.0),  # the seventh digit is noise
        ([0.699995], 0.7, 1, 0.0),  # the sixth is not
    ],
)
def test_recall_counts_ties_by_score(scores: list[float], last: float, wanted: int, expected: float) -> None:
    unlisted = np.zeros(len(scores), dtype=bool)
    assert brute_force.recall(np.array(scores), last, wanted, unlisted) == pytest.approx(expected)


@given(
    returned=st.lists(st.tuples(st.floats(-1, 1), st.booleans()), max_size=10),
    last=st.floats(-1, 1),
    wanted=st.integers(1, 10),
)
def test_recall_is_never_less_than_by_id(returned: list[tuple[float, bool]], last: float, wanted: int) -> None:
    """Whatever a second product of the same vectors gives for a document that exact search listed."""
    scores, listed = (np.array(column) for column in zip(*returned, strict=True)) if returned else (np.empty(0),) * 2
    by_id = min(int(listed.sum()), wanted) / wanted
    by_score = min(int((scores >= last).sum()), wanted) / wanted
    assert brute_force.recall(scores, last, wanted, listed.astype(bool)) >= max(by_id, by_score)


def test_the_nearest_of_parts_are_the_nearest_of_all() -> None:
    first, second = [
        (np.array([[0, 2], [1, 0]]), np.array([[9.0, 5.0], [7.0, 3.0]], dtype=np.float32)),
        (np.array([[5, 4], [4, 5]]), np.array([[9.0, 7.0], [8.0, 1.0]], dtype=np.float32)),
    ]
    for parts in ([first, second], [second, first]):
        best = brute_force.Merging(3)
        for part in parts:
            best.add(*part)
        assert best.found
        assert best.found[0].tolist() == [[0, 5, 4], [4, 1, 0]]  # of equal ones the earlier row
        assert best.found[1].tolist() == [[9, 9, 7], [8, 7, 3]]


@pytest.mark.parametrize(
    ("rows", "k", "bounds"),
    [
        (0, 5, [0]),
        (10, 5, [0, 10]),
        (1024, 5, [0, 1024]),
        (1025, 5, [0, 1024, 1025]),
        (9000, 2000, [0, 2000, 6096, 9000]),
    ],
)
def test_where_one_product_ends_and_the_next_begins(rows: int, k: int, bounds: list[int]) -> None:
    """1,024 documents first, or k; then 4,096 at a time."""
    assert brute_force.block_bounds(rows, k) == bounds


def test_a_part_of_the_rows_is_searched_under_their_own_numbers() -> None:
    vectors = np.array([[9.0], [1.0], [3.0], [2.0], [8.0]], dtype=np.float32)
    rows, scores = brute_force.nearest_within(np.ones((1, 1), dtype=np.float32), vectors, 9, [1, 2, 4])
    assert rows.tolist() == [[2, 3, 1]]
    assert scores.tolist() == [[3, 2, 1]]


def test_progress_ends_where_the_searched_rows_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three queries, two at a time, over the rows 1 to 4 of 5: twice three rows."""
    monkeypatch.setattr(brute_force, "TOGETHER", 2)
    done = list[int]()

    @contextmanager
    def shown(_label: str, total: int) -> Iterator[Advance]:
        assert total == 6
        yield done.append

    with showing(shown):
        brute_force.nearest_within(np.ones((3, 2), dtype=np.float32), np.ones((5, 2), dtype=np.float32), 2, [1, 2, 4])
    assert sum(done) == 6


def test_documents_are_read_once_whatever_the_number_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brute_force, "QUERIES", 2)
    monkeypatch.setattr(brute_force, "BLOCK", 4)
    monkeypatch.setattr(brute_force, "FIRST", 3)
    monkeypatch.setattr(vector_rows, "KEPT_BYTES", 0)
    rng = np.random.default_rng(0)
    vectors, queries = (rng.standard_normal((n, 3)).astype(np.float32) for n in (12, 7))
    read = list[list[int]]()

    class Noted:
        def take(self, places: Places) -> Vectors:
            read.append(places.tolist())
            return np.asarray(vectors[places])

    rows, _ = brute_force.nearest(queries, vector_rows.VectorRows(Noted(), np.arange(12), (), 3), 2)
    assert read == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10], [11]]
    assert rows.tolist() == np.argsort(-(queries @ vectors.T), axis=1)[:, :2].tolist()


@pytest.mark.parametrize("queries", [1, 3, 1025])
def test_bits_do_not_depend_on_the_number_of_threads(queries: int) -> None:
    """At the real size of a block, also with a query that is alone in its group; Ray's tasks have one thread."""
    rng = np.random.default_rng(0)
    documents, asked = (rng.standard_normal((n, 384)).astype(np.float32) for n in (brute_force.BLOCK + 1024, queries))
    found = set()
    for threads in (1, 3, 7):
        with threadpool_limits(threads):
            rows, scores = brute_force.nearest(asked, documents, 1000)
        found.add((rows.tobytes(), scores.tobytes()))
    assert len(found) == 1
