"""Fronts and sentences by hand; sweeps over real indexes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.figures import Percentiles
from bakeoff.extensions.storelab.sweep import StoreGrid, SweepPoint, draw, mark_fronts, sentences, sweep
from bakeoff.extensions.storelab.tables import markdown, sweep_sheet
from bakeoff.extensions.storelab.vector_sample import VectorSample, synthetic
from bakeoff.search.stores import STORES
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.examples import examples


@pytest.fixture(scope="module")
def sample() -> VectorSample:
    return synthetic(3000, 32, 60)


def _point(recall: float, p50: float | None, size: int | None, ef: int = 1, store: str = "s") -> SweepPoint:
    return SweepPoint(
        store=store, label=f"{store} G", build={"index": "G"}, query={"ef": ef}, exact=False, recall=recall,
        latency=Percentiles(100, p50), build_seconds=1, index_bytes=size, size_model_bytes=1,
    )  # fmt: skip


def test_fronts_by_hand() -> None:
    points = [
        _point(1.0, 5.0, 100),  # the best recall
        _point(0.9, 1.0, 100),  # faster; not smaller than the first, which has more recall
        _point(0.9, 2.0, 50),  # slower than the second for the same recall, but smaller
        _point(0.8, 3.0, 60),  # beaten by the third in everything
        _point(0.9, 2.5, 50),  # as small as the third, and slower
        _point(0.7, None, None),  # not known, so on no front
    ]
    points = mark_fronts(points)
    assert [point.fastest for point in points] == [True, True, False, False, False, False]
    assert [point.smallest for point in points] == [True, False, True, False, False, False]


def test_sentences_by_hand() -> None:
    points = [_point(0.95, 1.0, 7, 16), _point(0.992, 2.0, 7, 64), _point(0.999, 1.5, 7, 128)]
    points += [_point(0.5, 0.1, 3, 16, "lossy")]
    says(
        "\n".join(sentences(points, 0.99, 10)),
        "ef = 64",
        "0.99",
        "recall@10",
        "0.9920",
        "2.000 ms",
        "0.5000",
        "ef = 16",
        "ef = 128",
        "1.500 ms",
        "0.0",
        "MB",
    )


@pytest.mark.parametrize(
    ("index", "tuning"), [("IVF64,Flat", {"nprobe": [64]}), ("HNSW32", {"ef": [4000]})]
)  # fmt: skip
def test_an_index_that_searches_everything_misses_nothing(index: str, tuning: dict[str, list[int]]) -> None:
    """Vectors long enough for a row's product and a block's to differ in the last bits."""
    result = sweep(synthetic(3000, 384, 323), [StoreGrid("faiss", {"index": index}, tuning)], rounds=1)
    assert result.points[0].recall == 1


@given(dimensions=st.sampled_from([96, 384, 768]), probes=st.integers(1, 16), seed=st.integers(0, 20))
@settings(max_examples=examples(5), deadline=None)
def test_counting_by_score_never_gives_less_than_counting_by_id(dimensions: int, probes: int, seed: int) -> None:
    """An index that misses some: what it answers is compared with a full sort, id by id."""
    vectors = np.random.default_rng(seed).standard_normal((900, dimensions)) + 0.65
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    sample = VectorSample("own", unit[:800], unit[800:])
    grid = StoreGrid("faiss", {"index": "IVF16,Flat"}, {"nprobe": [probes]})
    (point,) = sweep(sample, [grid], rounds=1).points
    store = STORES.create("faiss", dimensions=dimensions, folder=Path(), index="IVF16,Flat", nprobe=probes)
    store.add(sample.ids, sample.documents)
    store.build()
    exact = np.argsort(-(sample.queries @ sample.documents.T), axis=1, kind="stable")[:, :10].astype(str).tolist()
    kept = [
        len(set(store.search(query, 10).ids) & set(rows)) for query, rows in zip(sample.queries, exact, strict=True)
    ]
    assert point.recall >= sum(kept) / (10 * len(kept)) - 1e-12


def test_more_probes_find_more_and_what_is_dominated_is_not_tried(sample: VectorSample) -> None:
    found = sweep(
        sample, [StoreGrid("faiss", {"index": "IVF32,Flat"}, {"nprobe": [1, 32, 40, 48]})], rounds=1, target=1
    )
    assert [point.query["nprobe"] for point in found.points] == [1, 32]
    assert found.pruned == 2
    assert found.points[0].recall < found.points[1].recall == 1
    assert found.points[1].latency.n == 60
    says(found.sentences[0], "IVF32", "nprobe = 32", "recall@10", "1.0000")


def test_the_stores_own_grid_is_walked_and_what_cannot_be_built_says_why(sample: VectorSample) -> None:
    found = sweep(sample.first(200), [StoreGrid("faiss"), StoreGrid("sqlite_vec")], k=5, rounds=1)
    exact = [point for point in found.points if point.exact]
    assert {point.label for point in exact} == {"faiss Flat", "sqlite_vec"}
    assert all(point.recall == 1 for point in exact)
    assert {"faiss HNSW16", "faiss HNSW32", "faiss SQ8"} <= {point.label for point in found.points}
    says(found.not_run["faiss IVF64,PQ4x8"], "'IVF64,PQ4x8'")
    says(found.warnings[0], "--synthetic", "--vectors")


def test_several_parameters_are_walked_together(sample: VectorSample) -> None:
    grid = StoreGrid("faiss", {"index": "IVF16,PQ8x8,RFlat"}, {"nprobe": [1, 16], "k_factor": [1, 20]})
    found = sweep(sample, [grid], rounds=1)
    recall = {(point.query["nprobe"], point.query["k_factor"]): point.recall for point in found.points}
    assert recall[16, 20] > max(recall[1, 1], recall[16, 1], recall[1, 20])


def test_the_sheet_shows_the_fronts_and_the_curves_are_drawn(sample: VectorSample, tmp_path: Path) -> None:
    found = sweep(sample, [StoreGrid("hnswlib", {"m": 8}, {"ef": [10, 100]})], rounds=1)
    text = markdown(sweep_sheet(found), draw(found, tmp_path))
    assert "| hnswlib m=8 | ef = " in text
    assert "![recall-size](recall-size.png)" in text
    for name in ("recall-latency.png", "recall-size.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_store_that_is_not_installed_costs_its_own_rows(
    sample: VectorSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(STORES.get("usearch"), "missing", classmethod(lambda cls, **_: "install bakeoff[usearch]"))
    swept = sweep(sample, [StoreGrid("usearch"), StoreGrid("faiss", {"index": "Flat"})], k=5, rounds=1)
    assert swept.not_run == {"usearch": "install bakeoff[usearch]"}
    assert {point.store for point in swept.points} == {"faiss"}


def test_an_option_that_the_store_does_not_have_is_refused(sample: VectorSample) -> None:
    with refuses(InputError, "'speed'"):
        sweep(sample, [StoreGrid("faiss", {"speed": 1})])
