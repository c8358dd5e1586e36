"""Vectors in bytes and bits as the engines themselves keep them: real sizes, and rankings held to our own rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from bakeoff.core.facts import fact
from bakeoff.extensions.conformance.stores import draw_clustered
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store, bit_codes, bit_similarity, int8_codes, signs
from bakeoff.search.variants import Precision, Variant
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

ROWS, DIMENSIONS = 1024, 256  # sqlite-vec keeps 1,024 vectors to a block
DOCUMENTS, QUERIES = draw_clustered(ROWS, DIMENSIONS), draw_clustered(12, DIMENSIONS, seed=7)
IDS = [str(row) for row in range(ROWS)]
METADATA = [{"even": row % 2 == 0} for row in range(ROWS)]
CODES_ONLY: list[tuple[str, Precision, dict[str, Any]]] = [
    ("faiss", "int8", {}),
    ("faiss", "binary", {}),
    ("faiss", "int8", {"index": "HNSW16"}),
    ("faiss", "binary", {"index": "HNSW16"}),
    ("faiss", "int8", {"index": "IVF16,Flat"}),
    ("usearch", "int8", {}),
    ("usearch", "binary", {}),
    ("sqlite_vec", "int8", {}),
    ("sqlite_vec", "binary", {}),
    ("lancedb", "binary", {"index": "none"}),
    ("pgvector", "binary", {"index": "hnsw"}),
]
BESIDE: list[tuple[str, Precision, dict[str, Any]]] = [
    ("qdrant", "int8", {}),
    ("qdrant", "binary", {}),
    ("lancedb", "int8", {}),
]
NONE: list[tuple[str, Precision, dict[str, Any]]] = [
    ("chroma", "int8", {}),
    ("chroma", "binary", {}),
    ("hnswlib", "int8", {}),
    ("hnswlib", "binary", {}),
    ("duckdb_vss", "int8", {}),
    ("duckdb_vss", "binary", {}),
    ("pgvector", "int8", {}),
    ("qdrant", "int8", {"url": ":memory:"}),
    ("faiss", "binary", {"index": "IVF16,Flat"}),
    ("faiss", "int8", {"index": "PQ8x8"}),
    ("lancedb", "int8", {"index": "IVF_PQ"}),
]


def _filled(store: str, options: dict[str, Any], vectors: Any, folder: Path) -> Store:
    folder.mkdir()
    opened = STORES.create(store, dimensions=DIMENSIONS, folder=folder, **options)
    opened.add(IDS, vectors, METADATA)
    opened.build()
    opened.persist()
    return opened


def _given(precision: Precision) -> Any:
    """What a run puts into an engine with types of its own: vectors for bytes, signs for bits."""
    fitted = Variant(precision=precision).fit(DOCUMENTS)
    return fitted.documents(DOCUMENTS) if precision == "binary" else DOCUMENTS


def _address(store: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"url": request.getfixturevalue("postgres")} if store == "pgvector" else {}


@pytest.mark.parametrize(("name", "precision", "options"), [*CODES_ONLY, *BESIDE])
def test_rankings_are_those_of_our_own_rounding(
    name: str, precision: Precision, options: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Bytes: 9 of 10 of the same nearest and scores within .01. Bits: Hamming distance to the digit, all of them."""
    held = STORES.get(name).holding(precision, options | _address(name, request))
    assert held.precision == precision
    fitted = Variant(precision=precision).fit(DOCUMENTS)
    reference, asked = fitted.documents(DOCUMENTS), fitted.queries(QUERIES)
    store = _filled(name, dict(held.options), _given(precision), tmp_path / "store")
    graph = name in ("usearch", "qdrant") or "HNSW" in str(options) or options.get("index") == "hnsw"
    allowed = 0.01 if precision == "int8" else 1e-5
    shares = []
    for where, passing in ((None, np.ones(ROWS, bool)), ({"even": True}, np.arange(ROWS) % 2 == 0)):
        for query in asked:
            truth = np.where(passing, reference @ query, -2.0)
            hits = store.search(query, 10, where)
            places = [int(item) for item in hits.ids]
            assert len(set(places)) == 10
            assert passing[places].all()
            np.testing.assert_allclose(hits.scores, truth[places], atol=allowed)
            last = np.sort(truth)[-10] - (1e-6 if precision == "binary" else 0)
            shares.append(float(np.mean(truth[places] >= last)))
    assert np.mean(shares) >= (0.9 if precision == "int8" or graph else 1)
    store.discard()


@pytest.mark.parametrize(("name", "precision", "options"), CODES_ONLY)
def test_the_size_is_that_of_the_codes(
    name: str, precision: Precision, options: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What an engine keeps besides the vectors (ids, links) stays; of the vectors' bytes at least 9 in 10 go."""
    address = _address(name, request)
    held = STORES.get(name).holding(precision, options | address)
    plain = _filled(name, options | address, DOCUMENTS, tmp_path / "plain")
    small = _filled(name, dict(held.options), _given(precision), tmp_path / "small")
    sizes = [store.size_bytes() or 0 for store in (plain, small)]
    saved = ROWS * (4 * DIMENSIONS - Variant(precision=precision).bytes_each(DIMENSIONS))
    assert sizes[0] - sizes[1] >= 0.9 * saved
    assert small.size_model().per_document < 0.6 * plain.size_model().per_document
    if name == "faiss" and not options:  # nothing but vectors
        assert sizes[1] <= {"int8": 0.3, "binary": 0.06}[precision] * sizes[0]
    plain.discard()
    small.discard()


@pytest.mark.parametrize("index", ["hnsw", "ivfflat"])
def test_pgvector_indexes_halves_where_a_full_index_takes_no_more(index: str, postgres: str, tmp_path: Path) -> None:
    """2,048 numbers are too many for an index of 32-bit ones: the column keeps them, the index has 16 bits of each."""
    dimensions = 2048
    documents, queries = draw_clustered(300, dimensions), draw_clustered(5, dimensions, seed=7)
    store = STORES.create("pgvector", dimensions=dimensions, folder=tmp_path, url=postgres, index=index, lists=4)
    store.add(IDS[:300], documents)
    store.build()
    with psycopg.connect(postgres) as connection:
        indexes = [row[0] for row in connection.execute("select indexdef from pg_indexes").fetchall()]
    assert [f"USING {index}" in made for made in indexes if "halfvec(2048)" in made] == [True]
    for query in queries:
        truth = documents @ query
        hits = store.search(query, 10)
        np.testing.assert_allclose(hits.scores, truth[[int(item) for item in hits.ids]], atol=0.002)
        assert np.mean([truth[int(item)] >= np.sort(truth)[-10] - 0.002 for item in hits.ids]) >= 0.9
    assert store.size_model().per_document >= (4 + 2) * dimensions  # whole in the table, halves in the index
    store.discard()


@pytest.mark.parametrize(("name", "precision", "options"), BESIDE)
def test_codes_beside_the_vectors_are_said_to_be(name: str, precision: Precision, options: dict[str, Any]) -> None:
    held = STORES.get(name).holding(precision, options)
    assert held.precision == precision
    assert held.note == fact("keeps_originals", store=name, precision=precision)


@pytest.mark.parametrize(("name", "precision", "options"), NONE)
def test_a_store_without_such_a_type_says_so(name: str, precision: Precision, options: dict[str, Any]) -> None:
    held = STORES.get(name).holding(precision, options)
    assert (held.precision, held.options) == ("float32", options)
    assert held.note is not None
    assert (held.note.id, held.note.arguments["precision"]) == ("no_such_precision", precision)


@pytest.mark.parametrize("name", list(STORES.builtin))
def test_plain_vectors_need_no_note(name: str) -> None:
    held = STORES.get(name).holding("float32", {"ef": 3})
    assert (held.options, held.precision, held.note) == ({"ef": 3}, "float32", None)


@pytest.mark.parametrize(
    ("name", "options"),
    [("faiss", {"index": "BHNSW16"}), ("usearch", {"dtype": "b1"}), ("sqlite_vec", {"type": "bit"})],
)
def test_bits_are_there_again_after_opening_and_can_be_replaced(
    name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """With dimensions that fill no whole byte."""
    vectors = draw_clustered(60, 13)
    store = STORES.create(name, dimensions=13, folder=tmp_path, **options)
    store.add(IDS[:60], vectors)
    store.build()
    store.delete(["0"])
    store.add(["1"], vectors[2:3])
    before = store.search(vectors[2], 60)
    store.persist()
    store.close()
    again = STORES.create(name, dimensions=13, folder=tmp_path, **options)
    after = again.search(vectors[2], 60)
    assert sorted(after.ids) == sorted(before.ids) == sorted(IDS[1:60])
    scores = dict(zip(after.ids, after.scores, strict=True))
    assert scores["1"] == scores["2"] == pytest.approx(1)
    again.discard()


def test_unknown_types_are_refused(tmp_path: Path) -> None:
    for name, option in (("sqlite_vec", "type"), ("lancedb", "type"), ("qdrant", "quantization")):
        with refuses(InputError, option, "'bytes'"):
            STORES.create(name, dimensions=8, folder=tmp_path, **{option: "bytes"})
    with refuses(InputError, "IVF_PQ"):
        STORES.create("lancedb", dimensions=8, folder=tmp_path, type="bit", index="IVF_PQ")


@given(st.integers(1, 40), st.integers(0, 1000))
def test_codes_stand_for_their_vectors(dimensions: int, seed: int) -> None:
    a, b = np.random.default_rng(seed).normal(size=(2, dimensions)).astype(np.float32)
    differing = int(np.unpackbits(bit_codes(a) ^ bit_codes(b)).sum())
    product = float(signs(bit_codes(a), dimensions) @ signs(bit_codes(b), dimensions))
    assert bit_similarity(differing, dimensions) == pytest.approx(product, abs=1e-5)
    codes = int8_codes(a).astype(np.float64)
    assert np.abs(codes).max() == 127
    assert np.abs(codes * np.abs(a).max() / 127 - a).max() <= np.abs(a).max() / 254 + 1e-6
