"""What is particular to one store or to the pieces that stores are made of."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.filters import conditions, passes, token
from bakeoff.extensions.conformance.stores import DIMENSIONS, draw_clustered
from bakeoff.extensions.stores.duckdb_vss import DuckdbVss
from bakeoff.extensions.stores.pgvector import PgVector
from bakeoff.extensions.stores.qdrant import Qdrant
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import graph_bytes
from bakeoff.search.stores.chroma import Chroma
from bakeoff.search.stores.faiss import Faiss
from bakeoff.search.stores.numbered import IdMap
from bakeoff.search.stores.servers import listeners
from bakeoff_providers.errors import InputError, StoreError, Unavailable
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses
from tests.search.store_setups import chroma_server

SCALARS = st.one_of(st.text(max_size=3), st.integers(-3, 3), st.booleans())
FIELDS = st.sampled_from(["a", "b", "ü"])
METADATA = st.dictionaries(FIELDS, SCALARS)


def _faiss(folder: Path, index: str, rows: int = 600, **options: int) -> Faiss:
    store = Faiss(dimensions=DIMENSIONS, folder=folder, index=index, **options)
    store.add([str(row) for row in range(rows)], draw_clustered(rows), [{"even": row % 2 == 0} for row in range(rows)])
    return store


def test_an_unknown_faiss_index_is_an_input_error(tmp_path: Path) -> None:
    with refuses(InputError, "'Flatt'"):
        STORES.create("faiss", dimensions=4, folder=tmp_path, index="Flatt")


def test_too_few_documents_for_an_index_cost_its_row_only(tmp_path: Path) -> None:
    with refuses(StoreError, "40", "'IVF64,Flat'"):
        _faiss(tmp_path, "IVF64,Flat", 40)


@pytest.mark.parametrize(
    "index", ["PQ8x8", "IVF16,PQ8x8", "IVF16,SQ8", "HNSW16_SQ8", "OPQ8,IVF16,PQ8x8", "RaBitQ", "IVF16,RaBitQ,RFlat"]
)
def test_every_faiss_family_answers_full_lists_under_a_filter(tmp_path: Path, index: str) -> None:
    store = _faiss(tmp_path, index)
    for query in draw_clustered(5, seed=7):
        found = store.search(query, 20, {"even": True}).ids
        assert len(found) == 20
        assert all(int(item) % 2 == 0 for item in found)
    assert len(store.search(draw_clustered(1)[0], 600, {"even": True}).ids) == 300
    assert store.size_bytes() >= 0.8 * store.size_model().bytes(600)
    assert not store.capabilities.exact


@pytest.mark.parametrize("index", ["HNSW16", "IVF16,Flat"])
def test_a_filter_that_keeps_many_is_left_to_the_index(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bakeoff.search.stores.faiss.SCAN_BELOW", 10)
    store = _faiss(tmp_path, index)
    truth = draw_clustered(600)[::2] @ draw_clustered(5, seed=7).T
    for place, query in enumerate(draw_clustered(5, seed=7)):
        found = {int(item) // 2 for item in store.search(query, 10, {"even": True}).ids}
        assert len(found & set(np.argsort(-truth[:, place])[:10].tolist())) >= 8


@pytest.mark.parametrize("name", ["usearch", "hnswlib"])
def test_engines_without_filters_fetch_more_where_many_pass(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bakeoff.search.stores.numbered.SCAN_BELOW", 10)
    store = STORES.create(name, dimensions=DIMENSIONS, folder=tmp_path)
    store.add([str(row) for row in range(600)], draw_clustered(600), [{"rest": row % 3} for row in range(600)])
    truth = draw_clustered(600) @ draw_clustered(5, seed=7).T
    for place, query in enumerate(draw_clustered(5, seed=7)):
        found = [int(item) for item in store.search(query, 10, {"rest": 1}).ids]
        assert all(item % 3 == 1 for item in found)
        best = [int(row) for row in np.argsort(-truth[:, place]) if row % 3 == 1][:10]
        assert len(set(found) & set(best)) >= 9


def test_a_longer_candidate_list_finds_more(tmp_path: Path) -> None:
    vectors, queries = draw_clustered(3000, 64), draw_clustered(50, 64, seed=7)
    store = Faiss(dimensions=64, folder=tmp_path, index="IVF64,Flat")
    store.add([str(row) for row in range(3000)], vectors)
    truth = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]

    def found(probes: int) -> int:
        store.tune(nprobe=probes)
        return sum(
            len(set(store.search(query, 10).ids) & set(map(str, best)))
            for query, best in zip(queries, truth, strict=True)
        )

    assert found(1) < found(64) == 500


@pytest.mark.parametrize(("store", "variable"), [("pgvector", "PGVECTOR_URL"), ("qdrant", "QDRANT_URL")])
def test_a_password_in_a_line_up_is_refused(tmp_path: Path, store: str, variable: str) -> None:
    with refuses(InputError, "URL") as refused:
        STORES.create(store, dimensions=4, folder=tmp_path, url="http://me:secret@127.0.0.1:1/")
    assert variable in refused.value.remedy
    assert "secret" not in str(refused.value)


def test_a_server_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    for adapter, url in ((PgVector, "postgresql://127.0.0.1:1/x"), (Chroma, "http://127.0.0.1:1")):
        with pytest.raises(Unavailable):
            adapter(dimensions=4, folder=tmp_path, url=url)
    with refuses(Unavailable):
        Qdrant(dimensions=4, folder=tmp_path, url="http://127.0.0.1:1")


def test_a_server_that_goes_away_is_unavailable(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "chroma") as url:
        store = Chroma(dimensions=DIMENSIONS, folder=tmp_path, url=url)
        store.add(["a"], draw_clustered(1))
        assert listeners(url)
    with refuses(Unavailable, "chroma"):
        store.search(draw_clustered(1)[0], 1)


def test_unknown_kinds_of_index_are_input_errors(tmp_path: Path) -> None:
    for store, options in (
        ("pgvector", {"index": "hsnw"}),
        ("lancedb", {"index": "IVF"}),
        ("chroma", {"mode": "fast"}),
    ):
        with pytest.raises(InputError):
            STORES.create(store, dimensions=4, folder=tmp_path, **options)
    with refuses(InputError, "4000"):
        PgVector(dimensions=5000, folder=tmp_path)


def test_duckdb_finds_all_after_deletes_that_its_index_would_answer_short(tmp_path: Path) -> None:
    store = DuckdbVss(dimensions=DIMENSIONS, folder=tmp_path)
    store.add([str(row) for row in range(500)], draw_clustered(500))
    store.build()
    store.delete([str(row) for row in range(450)])
    assert len(store.search(draw_clustered(1)[0], 20).ids) == 20
    store.close()


def test_size_of_a_graph_by_hand() -> None:
    # 384 floats, 2 · 16 links of 4 bytes below, and a fifteenth of 16 links above
    model = graph_bytes(384, 16)
    assert model.per_document == pytest.approx(1536 + 128 + 16 * 4 / 15)
    assert model.bytes(1_000_000) == pytest.approx(1_668_266_666.67)


@given(METADATA, st.dictionaries(FIELDS, st.one_of(SCALARS, st.lists(st.integers(-3, 3), min_size=1)), max_size=2))
def test_tokens_and_the_definition_of_a_filter_agree(metadata: dict[str, object], where: dict[str, object]) -> None:
    filters = conditions(where)  # type: ignore[arg-type]
    id_map = IdMap()
    id_map.put(["x"], [metadata])  # type: ignore[list-item]
    assert bool(id_map.mask(filters)[0]) == passes(metadata, filters)


@given(st.tuples(FIELDS, SCALARS), st.tuples(FIELDS, SCALARS))
def test_different_values_have_different_tokens(a: tuple[str, object], b: tuple[str, object]) -> None:
    same = a[0] == b[0] and type(a[1]) is type(b[1]) and a[1] == b[1]
    assert (token(*a) == token(*b)) == same  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from("abcd"), METADATA), max_size=12))
def test_an_id_map_is_a_dictionary_that_survives_saving(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, dict[str, object]]]
) -> None:
    id_map, expected = IdMap(), {}
    for what, item, metadata in steps:
        if what == "put":
            id_map.put([item], [metadata])  # type: ignore[list-item]
            expected[item] = metadata
        else:
            id_map.drop([item])
            expected.pop(item, None)
    file = tmp_path_factory.mktemp("ids") / "file"
    id_map.save(file)
    for kept_ids in (id_map, IdMap.load(file)):
        assert len(kept_ids) == len(expected)
        assert sorted(kept_ids.ids_of(np.flatnonzero(kept_ids.mask(())))) == sorted(expected)
        wanted = conditions({"a": True})
        kept = sorted(item for item, metadata in expected.items() if metadata.get("a") is True)
        assert sorted(kept_ids.ids_of(np.flatnonzero(kept_ids.mask(wanted)))) == kept


def test_an_id_map_holds_few_bytes_for_each_vector() -> None:
    """Ids are there already; a dict, an array of names and a list for each took 144."""
    blocks = [[f"d{number}" for number in range(start, start + 10_000)] for start in range(0, 100_000, 10_000)]
    id_map = IdMap()
    tracemalloc.start()
    for block in blocks:
        id_map.put(block, [{}] * len(block))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 45 * 100_000
    assert id_map.ids_of(np.array([99_999, 5])) == ["d99999", "d5"]


def test_milvus_lite_warns_nobody_of_its_own_imports(tmp_path: Path) -> None:
    """In a process of its own, as the import that warns is done once."""
    pytest.importorskip("milvus_lite")
    code = (
        "import sys, pathlib\n"
        "from bakeoff.search.stores import STORES\n"
        "STORES.create('milvus', dimensions=4, folder=pathlib.Path(sys.argv[1])).discard()\n"
        "assert 'milvus_lite' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "pkg_resources" not in done.stderr
