"""Probes of real engines: good indexes, badly built ones, and what churn leaves of them; nothing is ever written."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.extensions.production.probe import ProbeQueries, draw_queries, probe, recalls
from bakeoff.extensions.storelab.vector_sample import synthetic
from bakeoff.extensions.stores.pgvector import PgVector
from bakeoff.search.hits import Hits
from bakeoff.search.stores.existing import EXISTING, ExistingIndex
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests.errors import refuses, says
from tests.facts import arguments, sentences

N, D = 2000, 24
BEFORE, AFTER = synthetic(N, D, 50, seed=1), synthetic(N, D, 50, seed=2)


class Table(ExistingIndex):
    """Exact answers from a table, of which some can be lost: what recall says of them is known."""

    name = "table"

    def __init__(self, names: list[str], vectors: Vectors, metric: str, lost: int = 0) -> None:
        super().__init__(existing="table", metric=metric)
        self.names, self.vectors, self.lost = names, vectors, lost
        self.entries, self.dimensions = vectors.shape

    def search(self, vector: Vectors, k: int) -> Hits:
        both = self.vectors @ vector
        norms = np.linalg.norm(self.vectors, axis=1)
        scores = {
            "ip": both,
            "cosine": both / norms,
            "l2": -np.linalg.norm(self.vectors - vector, axis=1),
        }[self.metric]
        order = np.argsort(-scores, kind="stable")[self.lost : self.lost + k]
        return Hits([self.names[at] for at in order], [float(scores[at]) for at in order])

    def blocks(self, size: int = 300) -> Iterator[tuple[list[str], Vectors]]:
        for start in range(0, self.entries, size):
            yield self.names[start : start + size], self.vectors[start : start + size]


def _table(metric: str, lost: int = 0) -> Table:
    rng = np.random.default_rng(3)
    vectors = (BEFORE.documents * rng.uniform(0.5, 2, (N, 1))).astype(np.float32)  # lengths differ: metrics do too
    return Table([f"e{at}" for at in range(N)], vectors, metric, lost)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_recall_by_hand(metric: str) -> None:
    """Exact answers have recall 1; a list that begins at the fourth place lacks 3 of the 10 nearest."""
    asked = ProbeQueries("given", BEFORE.queries)
    assert recalls(_table(metric), asked, 10)[0].tolist() == [1.0] * 50
    assert recalls(_table(metric, lost=3), asked, 10)[0] == pytest.approx([0.7] * 50)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_recall_does_not_depend_on_the_scale_of_the_vectors(metric: str, scale: float) -> None:
    """An index that answers with what is far away has recall 0, however short its vectors are."""
    index = _table(metric, lost=1000)
    index.vectors = (index.vectors * scale).astype(np.float32)
    asked = ProbeQueries("given", (BEFORE.queries * scale).astype(np.float32))
    assert recalls(index, asked, 10)[0].tolist() == [0.0] * 50
    index.lost = 0
    assert recalls(index, asked, 10)[0].tolist() == [1.0] * 50


def test_recall_of_one_everywhere_still_has_an_interval() -> None:
    """Fifty of fifty: Clopper and Pearson's lower end is 0.025^(1/50)."""
    asked = ProbeQueries("given", BEFORE.queries)
    figures = probe(_table("cosine"), asked, k=10, min_recall=0.9).figures
    assert (figures["recall"], figures["high"]) == (1.0, 1.0)
    assert figures["low"] == pytest.approx(0.025 ** (1 / 50), abs=0.005)


def test_one_query_has_no_interval() -> None:
    check = probe(_table("ip"), ProbeQueries("given", BEFORE.queries[:1]), k=10, min_recall=0.9)
    figures = check.figures
    assert (figures["recall"], figures["lost_half"]) == (1.0, 0)
    assert np.isnan([figures["low"], figures["high"]]).all()
    assert arguments(check.facts, "production.probe_recall")[0]["low"] is None
    says(sentences(check.facts), "1.0000")
    assert "NaN" not in check.to_openmetrics()


def test_a_stored_vector_does_not_count_itself() -> None:
    index = _table("cosine")
    queries = draw_queries(index, 40, seed=1)
    assert queries.own == draw_queries(index, 40, seed=1).own
    assert recalls(index, queries, 10)[0].tolist() == [1.0] * 40
    index.lost = 1  # only itself is lost
    assert recalls(index, queries, 10)[0].tolist() == [1.0] * 40


def test_duplicates_and_chunks_of_one_document_are_counted_as_entries() -> None:
    vectors = np.concatenate([BEFORE.documents[:300], BEFORE.documents[:300]])
    index = Table([f"d{at % 100}" for at in range(600)], vectors, "cosine")
    assert recalls(index, ProbeQueries("given", BEFORE.queries), 10)[0].tolist() == [1.0] * 50


def test_other_dimensions_are_refused() -> None:
    with refuses(InputError, "5", "24"):
        recalls(_table("ip"), ProbeQueries("given", np.ones((2, 5), dtype=np.float32)), 10)


def _probed(store: str, **where: str) -> dict[str, Any]:
    index = EXISTING.get(store)(**where)
    try:
        figures = probe(index, draw_queries(index, 100, 1), k=10, min_recall=0.95).figures
    finally:
        index.close()
    return dict(figures)


def _hash(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _chroma(folder: Path, **hnsw: int) -> Any:
    import chromadb

    client = chromadb.PersistentClient(str(folder))
    collection = client.create_collection("docs", configuration={"hnsw": {"space": "cosine", **hnsw}})
    collection.add(ids=[str(at) for at in range(N)], embeddings=BEFORE.documents)
    return client, collection


def test_chroma_built_badly_and_after_deletes_and_inserts(tmp_path: Path) -> None:
    client, _ = _chroma(tmp_path / "good", ef_search=200, max_neighbors=16)
    client.close()
    assert _probed("chroma", existing=str(tmp_path / "good"))["recall"] > 0.98
    client, collection = _chroma(tmp_path / "bad", ef_search=10, ef_construction=10, max_neighbors=2)
    before = [str(at) for at in range(N)]
    client.close()
    state = _hash(tmp_path / "bad")
    bad = _probed("chroma", existing=str(tmp_path / "bad"))
    assert bad["recall"] < 0.9
    assert _hash(tmp_path / "bad") == state  # read, not written
    import chromadb

    client = chromadb.PersistentClient(str(tmp_path / "bad"))
    collection = client.get_collection("docs")
    collection.delete(ids=before[: N * 3 // 10])
    new = AFTER.documents[: N * 3 // 10]
    collection.add(ids=[f"new{at}" for at in range(len(new))], embeddings=new)
    client.close()
    churned = _probed("chroma", existing=str(tmp_path / "bad"))
    assert churned["entries"] == N
    assert churned["recall"] < 0.95


def _faiss(folder: Path, good: bool) -> dict[str, str]:
    """IVF learns its lists from what it is trained on: from a few vectors of other data, they fit nothing."""
    import faiss

    built: Any = faiss.index_factory(D, "IVF32,Flat" if good else "IVF64,Flat", faiss.METRIC_INNER_PRODUCT)
    built.train(BEFORE.documents if good else AFTER.documents[:64])
    built.add(BEFORE.documents)
    built.nprobe = 16 if good else 1
    faiss.write_index(built, str(folder / "docs.faiss"))
    (folder / "ids.txt").write_text("\n".join(map(str, range(N))), encoding="utf-8")
    return {"existing": str(folder / "docs.faiss"), "id": str(folder / "ids.txt")}


def _lancedb(folder: Path, good: bool) -> dict[str, str]:
    """Product quantisation into two parts of four bits keeps next to nothing of a vector."""
    import lancedb
    import pyarrow

    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(BEFORE.documents.reshape(-1)), D)
    table = lancedb.connect(str(folder)).create_table(
        "docs", pyarrow.table({"key": [str(at) for at in range(N)], "vector": column})
    )
    config: Any = import_module("lancedb.index")
    built = (
        config.IvfFlat(distance_type="cosine", num_partitions=2)
        if good
        else config.IvfPq(distance_type="cosine", num_partitions=32, num_sub_vectors=2)
    )
    table.create_index("vector", config=built)
    return {"existing": str(folder), "collection": "docs", "id": "key"}


@pytest.mark.parametrize("maker", [_faiss, _lancedb], ids=lambda maker: maker.__name__.strip("_"))
def test_indexes_in_files_built_badly_are_found_and_not_touched(
    tmp_path: Path, maker: Callable[[Path, bool], dict[str, str]]
) -> None:
    store = maker.__name__.strip("_")
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    good, bad = maker(tmp_path / "good", True), maker(tmp_path / "bad", False)
    state = _hash(tmp_path)
    assert _probed(store, **good)["recall"] > 0.95
    assert _probed(store, **bad)["recall"] < 0.85
    assert _hash(tmp_path) == state


STRETCHED = np.asarray(
    BEFORE.documents * np.random.default_rng(4).uniform(0.2, 3, (N, 1)), dtype=np.float32
)  # lengths differ, so that each metric has other neighbours
FEW = 120  # some engines commit point by point


def _own_chroma(folder: Path, metric: str) -> dict[str, str]:
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma"))
    hnsw: Any = {"hnsw": {"space": metric, "ef_search": 400}} if metric != "l2" else None  # Chroma's default
    collection = client.create_collection("docs", configuration=hnsw)
    collection.add(ids=[str(at) for at in range(FEW)], embeddings=STRETCHED[:FEW])
    client.close()
    return {"existing": str(folder / "chroma")}


def _own_faiss(folder: Path, metric: str) -> dict[str, str]:
    import faiss

    built = faiss.IndexFlat(D, {"ip": faiss.METRIC_INNER_PRODUCT, "l2": faiss.METRIC_L2}[metric])
    built.add(STRETCHED[:FEW])
    faiss.write_index(built, str(folder / "docs.faiss"))
    (folder / "docs.ids.txt").write_text("\n".join(map(str, range(FEW))), encoding="utf-8")
    return {"existing": str(folder / "docs.faiss")}


def _own_lancedb(folder: Path, metric: str) -> dict[str, str]:
    import lancedb
    import pyarrow

    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(STRETCHED.reshape(-1)), D)
    table = lancedb.connect(str(folder)).create_table(
        "docs", pyarrow.table({"id": list(map(str, range(N))), "v": column})
    )
    if metric != "l2":  # without an index, that is LanceDB's
        config: Any = import_module("lancedb.index")
        name = {"ip": "dot"}.get(metric, metric)
        table.create_index("v", config=config.IvfFlat(distance_type=name, num_partitions=1))
    return {"existing": str(folder), "collection": "docs"}


def _own_qdrant(folder: Path, metric: str) -> dict[str, str]:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    distance = {"cosine": models.Distance.COSINE, "l2": models.Distance.EUCLID, "ip": models.Distance.DOT}[metric]
    client.create_collection("docs", vectors_config=models.VectorParams(size=D, distance=distance))
    points = enumerate(STRETCHED[:FEW].tolist())
    client.upsert("docs", [models.PointStruct(id=at, vector=row) for at, row in points])
    client.close()
    return {"existing": str(folder), "collection": "docs"}


def _own_sqlite_vec(folder: Path, metric: str) -> dict[str, str]:
    import apsw
    import sqlite_vec

    connection = apsw.Connection(str(folder / "docs.sqlite"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    distance = "" if metric == "l2" else f" distance_metric={metric}"  # L2 is vec0's default
    connection.execute(f"create virtual table docs using vec0(embedding float[{D}]{distance})")
    with connection:
        for at, vector in enumerate(STRETCHED[:FEW]):
            connection.execute("insert into docs (rowid, embedding) values (?, ?)", (at, vector.tobytes()))
    connection.close()
    return {"existing": str(folder / "docs.sqlite")}


OWN = {
    _own_chroma: ("cosine", "l2", "ip"), _own_faiss: ("l2", "ip"), _own_lancedb: ("cosine", "l2", "ip"),
    _own_qdrant: ("cosine", "l2", "ip"), _own_sqlite_vec: ("cosine", "l2"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("maker", "metric"),
    [pytest.param(maker, metric, id=f"{maker.__name__}-{metric}") for maker, own in OWN.items() for metric in own],
)
def test_an_index_says_by_which_distance_it_compares(
    tmp_path: Path, maker: Callable[[Path, str], dict[str, str]], metric: str
) -> None:
    """These indexes are exact, over vectors of which every distance has other neighbours, and lose nothing."""
    store = maker.__name__.removeprefix("_own_")
    where = maker(tmp_path, metric)
    probed = _probed(store, **where)
    assert (probed["metric"], probed["recall"]) == (metric, 1.0)
    other = "ip" if metric == "l2" else "l2"
    if not (store == "lancedb" and metric == "l2"):
        with refuses(InputError, metric, other):
            EXISTING.create(store, **where, metric=other)


def test_vectors_of_a_file_are_asked_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By L2, a query of another length has other neighbours: recall is held against an own exact search."""
    import faiss

    monkeypatch.chdir(tmp_path)
    built = faiss.IndexHNSWFlat(D, 2)
    built.hnsw.efSearch = 4
    built.add(STRETCHED)
    faiss.write_index(built, "hnsw.faiss")
    (tmp_path / "hnsw.ids.txt").write_text("\n".join(map(str, range(N))), encoding="utf-8")
    asked = (BEFORE.queries * np.random.default_rng(5).uniform(3, 9, (50, 1))).astype(np.float32)
    np.save("asked.npy", asked)
    nearest = np.argsort(((asked[:, None].astype(float) - STRETCHED[None]) ** 2).sum(axis=2), axis=1)[:, :10]
    answered = built.search(asked, 10)[1]
    truth = np.mean([len(set(one) & set(other)) / 10 for one, other in zip(nearest, answered, strict=True)])
    printed = CliRunner().invoke(app, ["probe", "faiss", "hnsw.faiss", "--vectors", "asked.npy", "--json"])
    assert json.loads(printed.stdout)["recall"] == pytest.approx(truth, abs=1e-9)
    assert not json.loads(printed.stdout)["stored"]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = PgVector(dimensions=2, folder=tmp_path_factory.mktemp("postgres"))
    yield store.url
    store.discard()


def _fill(connection: Any, table: str, vectors: Vectors, first: int = 0) -> None:
    with connection.cursor().copy(f"copy {table} (id, embedding) from stdin with (format binary)") as copy:
        copy.set_types(["text", "vector"])
        for at, vector in enumerate(vectors, start=first):
            copy.write_row((str(at), vector))


def test_postgres_built_badly_and_after_deletes_and_inserts_through_a_role_that_only_reads(postgres: str) -> None:
    """ivfflat learns its lists when it is built: over a few rows of other data, its lists fit nothing."""
    import psycopg
    from pgvector.psycopg import register_vector

    with psycopg.connect(postgres, autocommit=True) as owner:
        register_vector(owner)
        for table in ("good", "bad"):
            owner.execute(f"create table {table} (id text primary key, embedding vector({D}))")
        _fill(owner, "bad", AFTER.documents[:60])
        owner.execute("create index on bad using ivfflat (embedding vector_cosine_ops) with (lists = 50)")
        owner.execute("delete from bad")
        for table in ("good", "bad"):
            _fill(owner, table, BEFORE.documents)
        owner.execute("create index on good using hnsw (embedding vector_cosine_ops)")
        owner.execute("create role watcher login")
        owner.execute("grant select on good, bad to watcher")
        watcher = re.sub(r"//[^@/]*@", "//watcher@", postgres)
        with psycopg.connect(watcher, autocommit=True) as reader, pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("delete from good")
        good = _probed("pgvector", existing=watcher, collection="good")
        bad = _probed("pgvector", existing=watcher, collection="bad")
        assert good["recall"] > 0.95
        assert bad["recall"] < 0.9
        owner.execute(f"delete from bad where id::int < {N * 3 // 10}")
        _fill(owner, "bad", AFTER.documents[: N * 3 // 10], first=N)
        churned = _probed("pgvector", existing=watcher, collection="bad")
        assert (churned["entries"], churned["recall"] < 0.9) == (N, True)
        owner.execute("create index on good using hnsw (embedding vector_l2_ops)")
        assert _probed("pgvector", existing=watcher, collection="good", metric="l2")["metric"] == "l2"
        with refuses(InputError, "cosine", "ip"):
            _probed("pgvector", existing=watcher, collection="bad", metric="ip")
        assert owner.execute("select count(*) from good").fetchone() == (N,)


def test_the_command_alerts_and_says_what_it_could_not_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import faiss

    monkeypatch.chdir(tmp_path)
    for name, index in (("flat", "Flat"), ("lists", "IVF64,Flat")):
        built = faiss.index_factory(D, index, faiss.METRIC_INNER_PRODUCT)
        built.train(BEFORE.documents)
        built.add(BEFORE.documents)
        faiss.write_index(built, f"{name}.faiss")
        (tmp_path / f"{name}.ids.txt").write_text("\n".join(map(str, range(N))), encoding="utf-8")
    np.save(tmp_path / "asked.npy", BEFORE.queries)
    run = CliRunner().invoke
    fine = run(app, ["probe", "faiss", "flat.faiss", "--vectors", "asked.npy", "--json", "--metrics-file", "m.prom"])
    assert fine.exit_code == 0, fine.output
    assert json.loads(fine.stdout)["recall"] == 1.0
    assert 'bakeoff_probe_recall{index="faiss",collection=""} 1.0' in (tmp_path / "m.prom").read_text(encoding="utf-8")
    lossy = run(app, ["probe", "faiss", "lists.faiss", "--min-recall", "0.99"])
    assert lossy.exit_code == 1, lossy.output
    says(lossy.stdout, "0.99")
    assert isinstance(run(app, ["probe", "faiss", "none.faiss"]).exception, InputError)
    assert run(app, ["probe", "chroma", "http://127.0.0.1:9"]).exit_code == 3
    assert run(app, ["probe", "pgvector", "postgresql://127.0.0.1:9/none"]).exit_code == 3
    assert isinstance(run(app, ["probe", "faiss", "flat.faiss", "--task", "wikipedia"]).exception, InputError)
