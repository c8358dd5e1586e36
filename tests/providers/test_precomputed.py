"""Vectors by id, from every kind of file, and what is said of files that do not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.precomputed import Precomputed

from tests.errors import refuses

IDS = ["d1", "d2", "d3"]
VECTORS = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def npy(folder: Path) -> dict[str, Any]:
    np.save(folder / "v.npy", VECTORS)
    (folder / "v.ids.txt").write_text("d1\nd2\nd3\n", encoding="utf-8")
    return {"path": str(folder / "v.npy")}


def npy_json(folder: Path) -> dict[str, Any]:
    np.save(folder / "v.npy", VECTORS)
    (folder / "names.json").write_text(json.dumps(IDS), encoding="utf-8")
    return {"path": str(folder / "v.npy"), "ids": str(folder / "names.json")}


def npy_npy(folder: Path) -> dict[str, Any]:
    np.save(folder / "v.npy", VECTORS.astype(np.float64))
    np.save(folder / "v.ids.npy", np.array(IDS))
    return {"path": str(folder / "v.npy")}


def npz(folder: Path) -> dict[str, Any]:
    np.savez(folder / "v.npz", ids=np.array(IDS), vectors=VECTORS.astype(np.float16))
    return {"path": str(folder / "v.npz")}


def parquet(folder: Path) -> dict[str, Any]:
    pq.write_table(pa.table({"id": IDS, "vector": VECTORS.tolist()}), folder / "v.parquet", row_group_size=2)
    return {"path": str(folder / "v.parquet")}


def parquet_fixed(folder: Path) -> dict[str, Any]:
    column = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 4)
    pq.write_table(pa.table({"docid": IDS, "emb": column, "text": IDS}), folder / "v.parquet")
    return {"path": str(folder / "v.parquet"), "id_column": "docid", "vector_column": "emb"}


@pytest.mark.parametrize("write", [npy, npy_json, npy_npy, npz, parquet, parquet_fixed])
def test_every_kind_of_file_gives_the_vectors_of_the_ids(
    tmp_path: Path, write: Callable[[Path], dict[str, Any]]
) -> None:
    provider = PROVIDERS.create("precomputed", **write(tmp_path))
    provider.ready()
    batch = provider.embed(["d3", "d1", "d3"], Role.DOCUMENT)
    assert batch.vectors.dtype == np.float32
    np.testing.assert_array_equal(batch.vectors, VECTORS[[2, 0, 2]])
    np.testing.assert_array_equal(provider.embed(["d2"], Role.QUERY).vectors, VECTORS[[1]])
    assert provider.embed([], Role.QUERY).vectors.shape == (0, 4)
    assert (provider.by_id, provider.local, provider.model) == (True, True, "v")


def test_documents_and_queries_may_have_a_file_each(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", ids=np.array([1, 2]), vectors=VECTORS[:2])
    np.savez(tmp_path / "q.npz", ids=np.array(["1"]), vectors=VECTORS[2:])
    provider = Precomputed(documents=str(tmp_path / "d.npz"), queries=str(tmp_path / "q.npz"), model="mine")
    provider.ready()
    np.testing.assert_array_equal(provider.embed(["1"], Role.DOCUMENT).vectors, VECTORS[:1])
    np.testing.assert_array_equal(provider.embed(["1"], Role.QUERY).vectors, VECTORS[2:])
    assert provider.identity(Role.QUERY) != provider.identity(Role.DOCUMENT)
    assert provider.model == "mine"


def test_an_unknown_id_is_named(tmp_path: Path) -> None:
    provider = Precomputed(**npz(tmp_path))
    with refuses(EmbeddingFailed, "'x7'", "'x8'", "v.npz"):
        provider.embed(["d1", "x7", "x8"], Role.QUERY)
    with refuses(EmbeddingFailed, "'x0'", "'x19'", "v.npz"):
        provider.embed([f"x{number}" for number in range(25)], Role.QUERY)


def test_identity_follows_the_content(tmp_path: Path) -> None:
    options = npz(tmp_path)
    before = Precomputed(**options).identity(Role.DOCUMENT)
    assert Precomputed(**options).identity(Role.DOCUMENT) == before
    np.savez(tmp_path / "v.npz", ids=np.array(IDS), vectors=VECTORS + 1)
    assert Precomputed(**options).identity(Role.DOCUMENT) != before


def test_dimensions_that_differ_are_found_before_the_run(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", ids=np.array(["a"]), vectors=VECTORS[:1])
    np.savez(tmp_path / "q.npz", ids=np.array(["a"]), vectors=VECTORS[:1, :2])
    with refuses(InputError, "4", "2", place="d"):
        Precomputed(documents=str(tmp_path / "d.npz"), queries=str(tmp_path / "q.npz")).ready()


def test_promised_dimensions_are_kept(tmp_path: Path) -> None:
    with refuses(EmbeddingFailed, "4", "8"):
        Precomputed(**npz(tmp_path), dimensions=8).embed(["d1"], Role.QUERY)


def test_bad_numbers_are_refused_by_id(tmp_path: Path) -> None:
    vectors = VECTORS.copy()
    vectors[1, 0] = np.nan
    np.savez(tmp_path / "v.npz", ids=np.array(IDS), vectors=vectors)
    with refuses(EmbeddingFailed, "'d2'"):
        Precomputed(path=str(tmp_path / "v.npz")).embed(IDS, Role.DOCUMENT)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"ids": np.array(["a"]), "vectors": VECTORS}, "1"),
        ({"ids": np.array(["a", "b", "a"]), "vectors": VECTORS}, "'a'"),
        ({"ids": np.array(IDS), "vectors": VECTORS[0, :3]}, "v.npz"),
        ({"ids": np.array(IDS), "vectors": np.array([["x"], ["y"], ["z"]])}, "v.npz"),
        ({"names": np.array(IDS), "vectors": VECTORS}, "unreadable"),
        ({"ids": np.array(IDS, dtype=object), "vectors": VECTORS}, "unreadable"),
    ],
)
def test_arrays_that_do_not_fit_are_input_errors(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "v.npz", **arrays)
    with refuses(InputError, words, file="v.npz") as caught:
        Precomputed(path=str(tmp_path / "v.npz")).ready()
    assert "v.npz" in str(caught.value)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
@pytest.mark.parametrize("keep", [0, 7, 60])
def test_a_file_that_breaks_off_is_an_input_error(tmp_path: Path, suffix: str, keep: int) -> None:
    options = {".npy": npy, ".npz": npz, ".parquet": parquet}[suffix](tmp_path)
    file = Path(options["path"])
    file.write_bytes(file.read_bytes()[:keep])
    with refuses(InputError, "unreadable"):
        Precomputed(**options).ready()


@pytest.mark.parametrize("groups", [1, 10])
def test_parquet_is_in_memory_once(tmp_path: Path, groups: int) -> None:
    """In one row group or in many; while the whole table was read, Arrow held as much again, twice."""
    rows, wide = 100_000, 64
    flat = np.random.default_rng(0).standard_normal(rows * wide).astype(np.float32)
    table = pa.table({"id": range(rows), "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat), wide)})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=rows // groups, compression="none")
    files = tmp_path / "few.parquet", tmp_path / "v.parquet"
    pq.write_table(table.slice(0, 2), files[0])  # what is imported on the way does not count
    script = (
        "import sys, tracemalloc, pyarrow; from bakeoff_providers.precomputed import Precomputed\n"
        "few, many = (Precomputed(path=path) for path in sys.argv[1:])\n"
        "few.ready(); tracemalloc.start(); many.ready()\n"
        "print(pyarrow.default_memory_pool().max_memory() + tracemalloc.get_traced_memory()[1])"
    )
    told = subprocess.run([sys.executable, "-c", script, *map(str, files)], capture_output=True, check=True)
    beside = int(told.stdout) - flat.nbytes
    assert beside < 0.75 * flat.nbytes + 250 * rows  # pages and blocks, ids and their rows, no second copy


def test_parquet_errors_name_the_column(tmp_path: Path) -> None:
    file = tmp_path / "v.parquet"
    pq.write_table(pa.table({"id": IDS, "emb": VECTORS.tolist()}), file)
    with refuses(InputError, "'vector'", file="v.parquet") as caught:
        Precomputed(path=str(file)).ready()
    assert "id, emb" in caught.value.remedy
    for column in ([[1.0], [1.0, 2.0], [3.0]], [[1.0], None, [2.0]], [[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]]):
        pq.write_table(pa.table({"id": IDS, "vector": pa.array(column)}), file)
        with refuses(InputError, file="v.parquet"):
            Precomputed(path=str(file)).ready()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"documents": "d.npz"}, ""),
        ({"path": "a.npz", "queries": "q.npz"}, ""),
        ({"path": "absent.npz"}, "absent.npz"),
        ({"path": "vectors.csv"}, "vectors.csv"),
    ],
)
def test_wrong_options_are_input_errors(options: dict[str, str], words: str) -> None:
    with refuses(InputError, words):
        Precomputed(**options)  # type: ignore[arg-type]


def test_row_numbers_are_the_ids_of_a_npy_without_a_file_of_them(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    provider = Precomputed(path=str(tmp_path / "v.npy"))
    provider.ready()
    assert provider.ids(Role.DOCUMENT) == ["0", "1", "2"]
    np.testing.assert_array_equal(provider.embed(["2", "0"], Role.DOCUMENT).vectors, VECTORS[[2, 0]])
    with refuses(EmbeddingFailed, "'d1'", "v.ids"):
        provider.embed(["d1"], Role.DOCUMENT)


def test_a_file_of_ids_that_is_named_must_be_there(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    with refuses(InputError, "names.txt", file="names.txt") as caught:
        Precomputed(path=str(tmp_path / "v.npy"), ids=str(tmp_path / "names.txt"))
    assert "v.ids.txt" in caught.value.remedy
    with refuses(InputError, file="v.npz"):
        Precomputed(**npz(tmp_path), ids="x.txt")
