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
from bakeoff.extensions.production.probe import Metric, ProbeQueries, probe, recalls, stored_queries
from bakeoff.extensions.storelab.vector_sample import synthetic
from bakeoff.search.existing import EXISTING
from bakeoff.search.existing.base import ExistingIndex
from bakeoff.search.hits import Hits
from bakeoff.search.stores.pgvector import PgVector
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

N, D = 2000, 24
BEFORE, AFTER = synthetic(N, D, 50, seed=1), synthetic(N, D, 50, seed=2)


class Table(ExistingIndex):
    """Exact answers from a table, of which some can be lost: what recall says of them is known."""

    name = "table"

    def __init__(self, names: list[str], vectors: Vectors, metric: Metric, lost: int = 0) -> None:
        super().__init__(existing="table")
        self.names, self.vectors, self.measure, self.lost = names, vectors, metric, lost
        self.entries, self.dimensions = vectors.shape

    def search(self, vector: Vectors, k: int) -> Hits:
        both = self.vectors @ vector
        norms = np.linalg.norm(self.vectors, axis=1)
        scores = {
            "ip": both,
            "cosine": both / norms,
            "l2": -np.linalg.norm(self.vectors - vector, axis=1),
        }[self.measure]
        order = np.argsort(-scores, kind="stable")[self.lost : self.lost + k]
        return Hits([self.names[at] for at in order], [float(scores[at]) for at in order])

    def blocks(self, size: int = 300) -> Iterator[tuple[list[str], Vectors]]:
        for start in range(0, self.entries, size):
            yield self.names[start : start + size], self.vectors[start : start + size]


def _table(metric: Metric, lost: int = 0) -> Table:
    rng = np.random.default_rng(3)
    vectors = (BEFORE.documents * rng.uniform(0.5, 2, (N, 1))).astype(np.float32)  # lengths differ: metrics do too
    return Table([f"e{at}" for at in range(N)], vectors, metric, lost)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_recall_by_hand(metric: Metric) -> None:
    """Exact answers have recall 1; a list that begins at the fourth place lacks 3 of the 10 nearest."""
    asked = ProbeQueries("given", BEFORE.queries)
    assert recalls(_table(metric), asked, 10, metric)[0].tolist() == [1.0] * 50
    assert recalls(_table(metric, lost=3), asked, 10, metric)[0] == pytest.approx([0.7] * 50)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_recall_does_not_depend_on_the_scale_of_the_vectors(metric: Metric, scale: float) -> None:
    """An index that answers with what is far away has recall 0, however short its vectors are."""
    index = _table(metric, lost=1000)
    index.vectors = (index.vectors * scale).astype(np.float32)
    asked = ProbeQueries("given", (BEFORE.queries * scale).astype(np.float32))
    assert recalls(index, asked, 10, metric)[0].tolist() == [0.0] * 50
    index.lost = 0
    assert recalls(index, asked, 10, metric)[0].tolist() == [1.0] * 50


def test_recall_of_one_everywhere_still_has_an_interval() -> None:
    """Fifty of fifty: Clopper and Pearson's lower end is 0.025^(1/50)."""
    asked = ProbeQueries("given", BEFORE.queries)
    figures = probe(_table("cosine"), asked, k=10, metric="cosine", min_recall=0.9).figures
    assert (figures["recall"], figures["high"]) == (1.0, 1.0)
    assert figures["low"] == pytest.approx(0.025 ** (1 / 50), abs=0.005)


def test_one_query_has_no_interval() -> None:
    check = probe(_table("ip"), ProbeQueries("given", BEFORE.queries[:1]), k=10, metric="ip", min_recall=0.9)
    assert "Recall@10 against exact search: 1.0000; 0 queries lost more than half." in check.sentences
    assert "NaN" not in check.to_openmetrics()


def test_a_stored_vector_does_not_count_itself() -> None:
    index = _table("cosine")
    queries = stored_queries(index, 40, seed=1)
    assert queries.own == stored_queries(index, 40, seed=1).own
    assert recalls(index, queries, 10, "cosine")[0].tolist() == [1.0] * 40
    index.lost = 1  # only itself is lost
    assert recalls(index, queries, 10, "cosine")[0].tolist() == [1.0] * 40


def test_duplicates_and_chunks_of_one_document_are_counted_as_entries() -> None:
    vectors = np.concatenate([BEFORE.documents[:300], BEFORE.documents[:300]])
    index = Table([f"d{at % 100}" for at in range(600)], vectors, "cosine")
    assert recalls(index, ProbeQueries("given", BEFORE.queries), 10, "cosine")[0].tolist() == [1.0] * 50


def test_other_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match="the queries have 5 dimensions, the index 24"):
        recalls(_table("ip"), ProbeQueries("given", np.ones((2, 5), dtype=np.float32)), 10, "ip")


def _probed(store: str, metric: Metric = "cosine", **where: str) -> dict[str, Any]:
    index = EXISTING.get(store)(**where)
    try:
        figures = probe(index, stored_queries(index, 100, 1), k=10, metric=metric, min_recall=0.95).figures
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


FEW = 120  # these engines commit point by point
STRETCHED = np.asarray(
    BEFORE.documents[:FEW] * np.random.default_rng(4).uniform(0.2, 3, (FEW, 1)), dtype=np.float32
)  # lengths differ, so that a distance which minds them finds others than the cosine


def _qdrant(folder: Path, good: bool) -> dict[str, str]:
    """The embedded engine compares with all, so only its distance can be the wrong one."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    distance = models.Distance.COSINE if good else models.Distance.EUCLID
    client.create_collection("docs", vectors_config=models.VectorParams(size=D, distance=distance))
    client.upsert("docs", [models.PointStruct(id=at, vector=row) for at, row in enumerate(STRETCHED.tolist())])
    client.close()
    return {"existing": str(folder), "collection": "docs"}


def _sqlite_vec(folder: Path, good: bool) -> dict[str, str]:
    """vec0 is exact; L2 is its default, which is not what a search by cosine wants."""
    import apsw
    import sqlite_vec

    connection = apsw.Connection(str(folder / "docs.sqlite"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    distance = " distance_metric=cosine" if good else ""
    connection.execute(f"create virtual table docs using vec0(embedding float[{D}]{distance})")
    with connection:
        for at, vector in enumerate(STRETCHED):
            connection.execute("insert into docs (rowid, embedding) values (?, ?)", (at, vector.tobytes()))
    connection.close()
    return {"existing": str(folder / "docs.sqlite"), "id": "rowid"}


@pytest.mark.parametrize("maker", [_faiss, _lancedb, _qdrant, _sqlite_vec], ids=lambda maker: maker.__name__.strip("_"))
def test_indexes_in_files_built_badly_are_found_and_not_touched(
    tmp_path: Path, maker: Callable[[Path, bool], dict[str, str]]
) -> None:
    store = maker.__name__.strip("_")
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    good, bad = maker(tmp_path / "good", True), maker(tmp_path / "bad", False)
    state = _hash(tmp_path)
    assert _probed(store, "cosine", **good)["recall"] > 0.95
    assert _probed(store, "cosine", **bad)["recall"] < 0.85
    assert _hash(tmp_path) == state


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
    assert "below the limit of 0.99" in lossy.stdout
    assert isinstance(run(app, ["probe", "faiss", "none.faiss"]).exception, InputError)
    assert run(app, ["probe", "chroma", "http://127.0.0.1:9"]).exit_code == 3
    assert run(app, ["probe", "pgvector", "postgresql://127.0.0.1:9/none"]).exit_code == 3
    assert isinstance(run(app, ["probe", "faiss", "flat.faiss", "--task", "wikipedia"]).exception, InputError)
