"""What every store must do, as tests for our adapters and third parties'. Needs pytest.

class TestMyStore(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        return lambda folder, dimensions: MyStore(dimensions=dimensions, folder=folder)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, StoreError

from bakeoff.embedding.chunking import Chunk
from bakeoff.search.index import Index
from bakeoff.search.stores.base import Store

DIMENSIONS = 16


def draw_clustered(rows: int, dimensions: int = DIMENSIONS, seed: int = 0, clusters: int = 40) -> Vectors:
    """Draw unit vectors around a few centres, like text embeddings. Isotropic ones are unfair to every index."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1234).normal(size=(clusters, dimensions))
    vectors = centres[rng.integers(clusters, size=rows)] + 0.4 * rng.normal(size=(rows, dimensions))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


ROWS = 1000
IDS = [f"d{number}" for number in range(ROWS)]
VECTORS = draw_clustered(ROWS)
QUERIES = draw_clustered(8, seed=7)
METADATA: list[dict[str, Any]] = [
    {
        "language": ("de", "en", "fr")[number % 3],
        "even": number % 2 == 0,
        "digit": number % 10,
        "rare": number % 100 == 0,  # one in a hundred: 10 documents
        "tags": ["lists", "are", "not", "filterable"],
        "number": str(number % 10),
    }
    for number in range(ROWS)
]

# Names that pandas gives, that engines reserve, and that have a meaning in query languages.
ODD_FIELDS: dict[str, Any] = dict.fromkeys(
    ["Unnamed: 0", "", "a.b", "$x", "$or", "_id", "id", "vector", "text", "embedding", "chroma:document", "#x", "1",
     "x" * 300, "a b", "o'neil \"x\"; --", "ключ 日本", "line\nbreak", "rowid", "_distance", "null\0", "half \ud800",
     "metadata"],
    "odd",
)  # fmt: skip
ODD_VALUES: dict[str, Any] = {
    "none": None, "list": [1], "nan": float("nan"), "fraction": 1.5, "table": {"a": 1}, "huge": 10**30, "empty": "",
    "null character": "a\0b", "half a pair": "\ud800", "long": "y" * 5000,
}  # fmt: skip


def similarities(query: Vectors, vectors: Vectors = VECTORS) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Cosines in double precision, the reference for every store's scores."""
    return vectors.astype(np.float64) @ query.astype(np.float64)


def recall(store: Store, k: int, keep: list[bool] | None = None, where: Any = None) -> float:
    """Recall of the true k nearest, by score. Every list must be full and obey the filter."""
    kept = np.array(keep) if keep is not None else np.ones(ROWS, dtype=bool)
    hit = 0
    for query in QUERIES:
        truth = np.where(kept, similarities(query), -np.inf)
        hits = store.search(query, k, where)
        places = [int(item[1:]) for item in hits.ids]
        assert len(places) == len(set(places)) == min(k, int(kept.sum()))
        assert kept[places].all()
        hit += int((truth[places] >= np.sort(truth)[::-1][len(places) - 1] - 1e-6).sum())
    return hit / (len(QUERIES) * min(k, int(kept.sum())))


def recall_of(store: Store, held: Mapping[str, Vectors], k: int) -> float:
    """As `recall`, after changes. Every result must be a document that the store should contain."""
    ids, vectors, hit = list(held), np.array(list(held.values())), 0
    places = {item: place for place, item in enumerate(ids)}
    for query in QUERIES:
        truth = similarities(query, vectors)
        answers = [places[item] for item in store.search(query, k).ids]
        assert len(answers) == len(set(answers)) == k
        hit += int((truth[answers] >= np.sort(truth)[::-1][k - 1] - 1e-6).sum())
    return hit / (len(QUERIES) * k)


CHANGED = 30  # documents in one write
OpenStore = Callable[[Path, int], Store]  # a folder, which may hold a store already, and the dimensions


def _check_recall(store: Store, share: float) -> None:
    """Recall must be 1, or at least 0.9 for an approximate index."""
    least = 1 if store.capabilities.exact else 0.9
    assert share >= least, f"recall@10 is {share:.3f}, at least {least} expected"


class StoreConformance:
    """Subclass it and define how to open the store. `loss` is the allowed error of a score."""

    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        """How to open the store in a folder, and to open it again."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def loss(cls) -> float:
        """Allowed error of a similarity."""
        return 1e-5

    @pytest.fixture(scope="class")
    @classmethod
    def loses_under_writes(cls) -> bool:
        """Whether the index is known to lose documents while others change, until it is built again."""
        return False

    @pytest.fixture(scope="class")
    @classmethod
    def full_store(cls, open_store: OpenStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
        """All documents, with the index built. Read only."""
        store = open_store(tmp_path_factory.mktemp("filled"), DIMENSIONS)
        store.add(IDS, VECTORS, METADATA)
        store.build()
        yield store
        store.discard()

    @pytest.fixture
    def fresh(self, open_store: OpenStore, tmp_path: Path) -> Iterator[Store]:
        """Three hundred documents, enough to train any index. Tests may change it."""
        store = open_store(tmp_path, DIMENSIONS)
        store.add(IDS[:300], VECTORS[:300], METADATA[:300])
        store.build()
        yield store
        store.discard()

    def test_the_nearest_are_found(self, full_store: Store) -> None:
        _check_recall(full_store, recall(full_store, 10))

    def test_scores_are_cosinesimilarities(self, full_store: Store, loss: float) -> None:
        for query in QUERIES:
            hits = full_store.search(query, 10)
            truth = similarities(query)
            for item, score in zip(hits.ids, hits.scores, strict=True):
                assert score == pytest.approx(truth[int(item[1:])], abs=loss)

    def test_the_store_counts_what_it_holds(self, full_store: Store, open_store: OpenStore, tmp_path: Path) -> None:
        """By the engine's own count, also after replacements and deletions."""
        assert full_store.count() == ROWS
        store = open_store(tmp_path, DIMENSIONS)
        store.add(IDS[:300], VECTORS[:300])
        store.add(IDS[:20], VECTORS[300:320])
        store.delete([*IDS[:5], "nobody"])
        store.build()
        assert store.count() == 295
        store.discard()

    def test_length_does_not_matter(self, full_store: Store) -> None:
        for query in QUERIES[:5]:
            long, unit = full_store.search(7 * query, 5), full_store.search(query, 5)
            assert sorted(long.ids) == sorted(unit.ids)
            assert sorted(long.scores) == pytest.approx(sorted(unit.scores), abs=1e-5)

    @pytest.mark.parametrize(
        "where",
        [
            {"rare": True},
            {"language": "de"},
            {"language": ["de", "fr"], "even": False},
            {"digit": [1, 2, 3], "language": "en"},
            {"digit": 7, "even": False, "language": ["de", "en"]},
        ],
    )
    def test_a_filtered_search_answers_the_k_nearest_that_pass(self, full_store: Store, where: dict[str, Any]) -> None:
        wanted = {field: value if isinstance(value, list) else [value] for field, value in where.items()}
        keep = [all(document[field] in values for field, values in wanted.items()) for document in METADATA]
        _check_recall(full_store, recall(full_store, 10, keep, where))

    def test_a_rare_filter_answers_all_that_pass(self, full_store: Store) -> None:
        hits = full_store.search(QUERIES[0], 50, {"rare": True})
        assert sorted(hits.ids) == sorted(f"d{number}" for number in range(0, ROWS, 100))

    @pytest.mark.parametrize(
        "where",
        [
            {"digit": "7"},
            {"number": 7},
            {"even": 1},
            {"digit": True},
            {"none": "x"},
            {"language": "it"},
            {"tags": "are"},
        ],
    )
    def test_kinds_of_values_are_kept_apart(self, full_store: Store, where: dict[str, Any]) -> None:
        assert list(full_store.search(QUERIES[0], 5, where).ids) == []

    @pytest.mark.parametrize("where", [{"digit": 1.5}, {"digit": []}, {"digit": [1, "1"]}, {"": 1}, {"digit": None}])
    def test_a_filter_that_makes_no_sense_is_refused(self, full_store: Store, where: dict[str, Any]) -> None:
        with pytest.raises(InputError, match="filter"):
            full_store.search(QUERIES[0], 5, where)

    def test_k_beyond_the_size_answers_all(self, full_store: Store) -> None:
        assert sorted(full_store.search(QUERIES[0], 3 * ROWS).ids) == sorted(IDS)

    def test_another_dimension_is_refused(self, full_store: Store) -> None:
        with pytest.raises(InputError, match="16 dimensions, not of 8"):
            full_store.search(QUERIES[0][:8], 5)
        with pytest.raises(InputError, match="16 dimensions, not of 8"):
            full_store.add(["x"], VECTORS[:1, :8])

    @pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
    def test_zeros_and_nan_are_refused(self, full_store: Store, value: float) -> None:
        wrong = np.full(DIMENSIONS, value, dtype=np.float32)
        with pytest.raises(InputError, match="zero"):
            full_store.search(wrong, 5)
        with pytest.raises(InputError, match="the vector of 'x' is zero, NaN or infinite"):
            full_store.add(["x"], wrong[None])

    def test_duplicate_ids_in_one_call_are_refused(self, full_store: Store) -> None:
        with pytest.raises(InputError, match="duplicate ids"):
            full_store.add(["x", "x"], VECTORS[:2])

    def test_readers_at_the_same_time_get_the_same(self, full_store: Store) -> None:
        def ask(place: int) -> list[str]:
            where = {"language": "de"} if place % 2 else None
            return sorted(full_store.search(QUERIES[place % len(QUERIES)], 10, where).ids)

        alone = [ask(place) for place in range(50)]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(ask, range(50)))
        assert together == alone

    def test_an_empty_store_answers_nothing(self, open_store: OpenStore, tmp_path: Path) -> None:
        store = open_store(tmp_path, DIMENSIONS)
        assert list(store.search(QUERIES[0], 5).ids) == []
        assert list(store.search(QUERIES[0], 5, {"language": "de"}).ids) == []
        store.delete(["nobody"])
        store.discard()

    def test_equal_vectors_are_ranked_by_id_wherever_the_cut_is(self, open_store: OpenStore, tmp_path: Path) -> None:
        store = open_store(tmp_path, DIMENSIONS)
        vectors = VECTORS[:300].copy()
        vectors[100:140] = vectors[100]
        store.add(IDS[:300], vectors)
        store.build()
        index = Index([Chunk(item, item, "") for item in IDS[:300]], depth=10)
        ranking = index.ranking(store.search(vectors[100], index.fetch_size()), lambda k: store.search(vectors[100], k))
        assert ranking.ids == tuple(sorted(IDS[100:140])[:10])
        assert len(set(ranking.scores)) == 1
        store.discard()

    def test_the_ranking_is_the_one_that_exact_scores_give(self, full_store: Store, loss: float) -> None:
        """An exact store has the exact ranking. An approximate one has its results in that order."""
        index = Index([Chunk(item, item, "") for item in IDS], depth=20)
        for query in QUERIES[:5]:
            truth = dict(zip(IDS, similarities(query).tolist(), strict=True))
            ranking = index.ranking(full_store.search(query, index.fetch_size()), partial(full_store.search, query))
            exact = [truth[item] for item in ranking.ids]
            assert len(exact) == 20
            assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
            assert exact == pytest.approx(sorted(exact, reverse=True), abs=2 * loss)
            if full_store.capabilities.exact:
                assert exact == pytest.approx(sorted(truth.values(), reverse=True)[:20], abs=1e-5)

    def test_ids_of_every_kind(self, fresh: Store) -> None:
        """Letters of all scripts, quotes, spaces, a million and its neighbours, and numbers that a float can't hold."""
        ids = ["ß", "日本", "a b", "é#1", "o'neil \"x\"; --", "\\", "%_", "1000000", "999999", "1000001",
               "9007199254740992", "9007199254740993", "x" * 500]  # fmt: skip
        vectors = draw_clustered(len(ids), seed=3)
        fresh.add(ids, vectors, [{"who's": item} for item in ids])
        for item, vector in zip(ids, vectors, strict=True):
            assert item in fresh.search(vector, 20).ids
            assert list(fresh.search(vector, 20, {"who's": item}).ids) == [item]
        fresh.delete(ids)
        assert not set(ids) & set(fresh.search(vectors[0], 400).ids)

    def test_metadata_of_every_kind(self, open_store: OpenStore, tmp_path: Path) -> None:
        """Any column name. Names that the engine refuses are left out and reported; the rest can be filtered by."""
        store, odd = open_store(tmp_path, DIMENSIONS), {**ODD_FIELDS, **ODD_VALUES}
        store.add(IDS[:300], VECTORS[:300], [*({**odd, "language": item} for item in IDS[:20]), *METADATA[20:300]])
        store.build()
        assert list(store.search(VECTORS[5], 3, {"language": "d5"}).ids) == ["d5"]
        kept = {field: value for field, value in ODD_FIELDS.items() if field and field not in store.left_out}
        assert len(kept) >= 10
        assert sorted(store.search(VECTORS[5], 50, kept).ids) == sorted(IDS[:20])
        for field in ODD_FIELDS.keys() - kept.keys():
            with pytest.raises((InputError, StoreError)):
                store.search(VECTORS[5], 3, {field: "odd"})
        note = store.note_left_out()
        assert note is not None
        assert note.arguments["count"] == len(store.left_out)
        store.discard()

    def test_adding_again_replaces_vector_and_metadata(self, fresh: Store) -> None:
        fresh.add(["d5", "new"], VECTORS[[7, 8]], [{"language": "it"}, {"language": "it"}])
        assert sorted(fresh.search(VECTORS[5], 400).ids) == sorted([*IDS[:300], "new"])
        assert {"d5", "d7"} <= set(fresh.search(VECTORS[7], 5).ids)
        assert sorted(fresh.search(VECTORS[7], 10, {"language": "it"}).ids) == ["d5", "new"]
        assert "d5" not in fresh.search(VECTORS[5], 400, {"language": METADATA[5]["language"]}).ids
        assert list(fresh.search(VECTORS[5], 10, {"language": "it", "digit": 5}).ids) == []

    def test_deleted_documents_are_gone_and_k_is_still_k(self, fresh: Store) -> None:
        gone = IDS[:280]
        fresh.delete([*gone, "nobody"])
        assert sorted(fresh.search(VECTORS[0], 20).ids) == sorted(IDS[280:300])
        assert sorted(fresh.search(VECTORS[0], 400).ids) == sorted(IDS[280:300])
        fresh.add(["d0"], VECTORS[:1], METADATA[:1])
        assert fresh.search(VECTORS[0], 1).ids[0] == "d0"

    def test_what_changes_is_found_and_hides_nothing_else(
        self, open_store: OpenStore, tmp_path: Path, loses_under_writes: bool
    ) -> None:
        """Small writes that delete, replace and add two of five documents each, then a rebuild."""
        store, present = open_store(tmp_path, DIMENSIONS), ROWS // 2
        held = dict(zip(IDS[:present], VECTORS[:present], strict=True))
        store.add(list(held), VECTORS[:present])
        store.build()
        for start in range(0, 2 * present // 5, CHANGED):
            gone, replaced, new = (IDS[place + start :][:CHANGED] for place in (0, present // 2, present))
            others, news = (VECTORS[place + start :][:CHANGED] for place in (present + present // 2, present))
            store.delete(gone)
            store.add(replaced, others)
            store.add(new, news)
            held |= dict(zip(replaced + new, [*others, *news], strict=True))
            held = {item: vector for item, vector in held.items() if item not in gone}
        changed = recall_of(store, held, 10)
        store.build()
        again = recall_of(store, held, 10)
        least = 1 if store.capabilities.exact else 0.9
        store.discard()
        _check_recall(store, again)
        assert (changed < least) == loses_under_writes, f"recall@10 after the writes is {changed:.3f}"

    def test_what_was_persisted_is_there_again(self, fresh: Store, open_store: OpenStore, tmp_path: Path) -> None:
        fresh.delete(["d1"])
        fresh.add(["d2"], VECTORS[3:4], [{"language": "it"}])
        if not fresh.capabilities.persistent:  # declared as in-memory; a second one is empty
            other = open_store(tmp_path, DIMENSIONS)
            assert list(other.search(QUERIES[0], 10).ids) == []
            other.discard()
            return
        expected = sorted(fresh.search(QUERIES[0], 10).ids)
        fresh.persist()
        fresh.close()
        again = open_store(tmp_path, DIMENSIONS)
        assert sorted(again.search(QUERIES[0], 10).ids) == expected
        assert sorted(again.search(QUERIES[0], 400).ids) == sorted(set(IDS[:300]) - {"d1"})
        assert list(again.search(VECTORS[3], 5, {"language": "it"}).ids) == ["d2"]
        again.add(["later"], VECTORS[400:401])
        assert "later" in again.search(VECTORS[400], 5).ids
        again.close()

    def test_query_parameters_change_without_building_again(self, full_store: Store) -> None:
        for parameter, values in full_store.tunings().items():
            before = getattr(full_store, parameter)
            for value in (values[0], values[-1]):
                full_store.tune(**{parameter: value})
                assert len(full_store.search(QUERIES[0], 10).ids) == 10
            full_store.tune(**{parameter: before})
        with pytest.raises(InputError, match="no query parameter 'speed'"):
            full_store.tune(speed=2)

    def test_query_parameters_do_what_they_say(self, open_store: OpenStore, tmp_path: Path) -> None:
        """On isotropic vectors, where every index is weak: a higher value finds more, a lower one less."""
        rng = np.random.default_rng(5)
        vectors, queries = (np.asarray(rng.normal(size=(rows, 256)), dtype=np.float32) for rows in (1200, 40))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        store = open_store(tmp_path, 256)
        for parameter, values in store.tunings().items():
            if not store.search(queries[0], 1).ids:
                store.add([str(row) for row in range(1200)], vectors)
                store.build()
            truth = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]

            def hits_with(value: Any, name: str = parameter, truth: Any = truth) -> int:
                store.tune(**{name: value})
                return sum(
                    len(set(store.search(query, 10).ids) & set(map(str, best)))
                    for query, best in zip(queries, truth, strict=True)
                )

            for _ in range(2):
                few, many = hits_with(values[0]), hits_with(values[-1])
                assert few < many, f"{parameter} {values[0]} finds {few} of 400, {parameter} {values[-1]} {many}"
        store.discard()

    def test_the_size_is_at_least_that_of_its_construction(self, full_store: Store) -> None:
        model = full_store.size_model()
        assert model.bytes(2 * ROWS) - model.bytes(ROWS) == pytest.approx(ROWS * model.per_document)
        size = full_store.size_bytes()
        least = 0.8 * model.bytes(ROWS)
        assert size is None or size >= least, f"{size} bytes, at least {least:.0f} expected"
        assert all(pid > 0 for pid in full_store.processes())
        assert bool(full_store.processes()) == (not full_store.capabilities.in_process)

    def test_grids_and_query_options_name_parameters_that_the_store_takes(self, full_store: Store) -> None:
        """A sweep must not confuse build options with query options."""
        build, parameters = full_store.grid(ROWS, DIMENSIONS), inspect.signature(type(full_store)).parameters
        assert {*build, *full_store.tunings(), *full_store.query_options, *full_store.named_by_value} <= set(parameters)
        assert not set(build) & set(full_store.query_options)
        assert set(full_store.tunings()) <= set(full_store.query_options)
        assert full_store.label({}) == full_store.name
