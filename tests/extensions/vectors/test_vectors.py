"""Vectors out of the cache and back in: bit for bit, under the right identity, and nothing of a wrong file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bakeoff.core.hashing import text_key
from bakeoff.core.progress import showing
from bakeoff.embedding.cache import VectorCache
from bakeoff.extensions.vectors.files import VECTOR_FILES, PackedIds, vector_file
from bakeoff.extensions.vectors.transfer import (
    ImportedVectors,
    Texts,
    export_vectors,
    import_vectors,
    one_embedding,
    texts_of,
)
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError

from tests.core.test_progress import Noted
from tests.errors import refuses
from tests.wire import PROXIES, WireServer

TEXTS = {"d1": "a red fox", "d2": "two red foxes", "d3": "the sea at night", "d4": "a red fox"}
QUERIES = {"q1": "fox", "q2": "sea"}


@pytest.fixture
def lineup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lineup:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    return _lineup(tmp_path, "http://127.0.0.1:9/v1")


def _lineup(folder: Path, address: str, texts: dict[str, str] | None = None) -> Lineup:
    (folder / "task" / "qrels").mkdir(parents=True, exist_ok=True)
    documents = [json.dumps({"_id": name, "text": text}) for name, text in (texts or TEXTS).items()]
    (folder / "task" / "corpus.jsonl").write_text("\n".join(documents))
    (folder / "task" / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": name, "text": text}) for name, text in QUERIES.items())
    )
    (folder / "task" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t1\n")
    path = folder / "lineup.toml"
    path.write_text(
        'task = { format = "beir", folder = "task" }\nrounds = 1\n[[contender]]\nprovider = "openai"\n'
        f'model = "text-embedding-3-small"\noptions = {{ base_url = "{address}", dimensions = 8 }}\nstore = "faiss"\n'
    )
    return Lineup.read(path)


def _import(lineup: Lineup, file: Path, cache: Path, role: Role = Role.DOCUMENT, **options: bool) -> ImportedVectors:
    with texts_of(lineup, one_embedding(lineup, None), role, Settings(cache=cache, offline=True)) as texts:
        return import_vectors(texts, vector_file(file), **options)


def _own(folder: Path, ids: list[str], vectors: np.ndarray, **columns: list[str]) -> Path:
    """A Parquet file as somebody else would write it."""
    file = folder / "own.parquet"
    pq.write_table(pa.table({"id": ids, "vector": list(vectors), **columns}), file)
    return file


def _random(rows: int, dimensions: int = 8) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, dimensions)).astype(np.float32)


@pytest.mark.parametrize("suffix", VECTOR_FILES.builtin)
def test_out_and_in_again_keeps_every_bit_and_asks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with WireServer() as wire:
        lineup = _lineup(tmp_path, wire.base("openai"))
        first = run(lineup, Settings(cache=tmp_path / "first"))
        assert first.not_run == []
        asked = len(wire.embeddings())
        assert asked
        for role in Role:
            file = tmp_path / f"{role}.{suffix}"
            with texts_of(lineup, one_embedding(lineup, None), role, Settings(cache=tmp_path / "first")) as texts:
                export_vectors(texts, vector_file(file))
                before = texts.space.take(texts.space.find(texts.keys()))
                paid = texts.space.tokens_of(texts.space.find(texts.keys()))
            assert _import(lineup, file, tmp_path / "second", role).lacking == 0
            with texts_of(lineup, one_embedding(lineup, None), role, Settings(cache=tmp_path / "second")) as texts:
                after = texts.space.take(texts.space.find(texts.keys()))
                assert after.tobytes() == before.tobytes()
                assert texts.space.tokens_of(texts.space.find(texts.keys())).tobytes() == paid.tobytes()
        again = run(lineup, Settings(cache=tmp_path / "second"))
        assert len(wire.embeddings()) == asked
    assert again.scores == first.scores
    assert not list(tmp_path.glob(".*"))


def test_a_file_of_somebody_else_is_matched_by_id_in_any_order(lineup: Lineup, tmp_path: Path) -> None:
    vectors = _random(4)
    vectors[2] = vectors[1]
    order = ["d3", "d1", "d4", "d2"]
    file = _own(tmp_path, order, vectors, text=[TEXTS[name] for name in order])
    assert _import(lineup, file, tmp_path / "cache") == ImportedVectors(
        written=3, present=0, lacking=0
    )  # d4 says what d1 does
    with texts_of(lineup, one_embedding(lineup, None), Role.DOCUMENT, Settings(cache=tmp_path / "cache")) as texts:
        stored = texts.space.take(texts.space.find(texts.keys()))
    assert stored[:3].tobytes() == vectors[[1, 3, 0]].tobytes()
    assert _import(lineup, file, tmp_path / "cache").written == 0


def test_an_index_with_lists_gives_its_vectors_back(lineup: Lineup, tmp_path: Path) -> None:
    import faiss

    vectors = _random(4)
    index = faiss.index_factory(8, "IVF2,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "own.faiss"))
    (tmp_path / "own.ids.jsonl").write_text("\n".join(json.dumps({"id": n, "text": t}) for n, t in TEXTS.items()))
    _import(lineup, tmp_path / "own.faiss", tmp_path / "cache")
    with texts_of(lineup, one_embedding(lineup, None), Role.DOCUMENT, Settings(cache=tmp_path / "cache")) as texts:
        assert texts.space.take(texts.space.find(texts.keys()))[:3].tobytes() == vectors[:3].tobytes()


def _nan(vectors: np.ndarray) -> np.ndarray:
    vectors[2, 3] = np.nan
    return vectors


HASHES = {name: text_key(text).hex() for name, text in TEXTS.items()}
IDS = list(TEXTS)
Wrong = Callable[[Path], Path]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda f: _own(f, IDS, _random(4)), "own.parquet"),
        (lambda f: _own(f, IDS, _random(4, 5), text_hash=list(HASHES.values())), "5"),
        (lambda f: _own(f, IDS, _nan(_random(4)), text_hash=list(HASHES.values())), "row 3"),
        (lambda f: _own(f, IDS, _random(4) * [[1], [0], [1], [1]], text=list(TEXTS.values())), "row 2"),
        (lambda f: _own(f, IDS[:3], _random(3), text=list(TEXTS.values())[:3]), "'d4'"),
        (lambda f: _own(f, [*IDS[:3], "d3"], _random(4), text=list(TEXTS.values())), "'d3'"),
        (lambda f: _own(f, [*IDS, "d5"], _random(5), text=[*TEXTS.values(), "x"]), "'d5'"),
        (lambda f: _own(f, IDS, _random(4), text=["a", "b", "c", "d"]), "'d1'"),
        (lambda f: _own(f, IDS, _random(4), text_hash=["xyz"] * 4), "text_hash"),
        (
            lambda f: _own(f, IDS, 1e300 * _random(4).astype(np.float64), text=list(TEXTS.values())),
            "row 1",
        ),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_kept(lineup: Lineup, tmp_path: Path, make: Wrong, problem: str) -> None:
    cache = tmp_path / "cache"
    with refuses(InputError, problem, file="own.parquet") as error:
        _import(lineup, make(tmp_path), cache)
    assert error.value.file == tmp_path / "own.parquet"
    assert not list(cache.rglob("*.f32"))


def test_damaged_files_and_wrong_shapes_are_named(lineup: Lineup, tmp_path: Path) -> None:
    for name, content in (("a.parquet", b"PAR1"), ("b.npy", b"\x93NUMPY"), ("c.faiss", b"IxFI"), ("d.txt", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as damaged:  # the words are mostly those of the library that reads it
            _import(lineup, tmp_path / name, tmp_path / "cache")
        assert damaged.value.file == tmp_path / name
    with refuses(InputError, file="e.lance"):
        _import(lineup, tmp_path / "e.lance", tmp_path / "cache")
    (tmp_path / "e.lance").mkdir()
    with refuses(InputError, "'e'", file="e.lance"):
        _import(lineup, tmp_path / "e.lance", tmp_path / "cache")
    np.save(tmp_path / "f.npy", _random(4))
    with refuses(InputError, file="f.ids.jsonl") as error:
        _import(lineup, tmp_path / "f.npy", tmp_path / "cache")
    assert str(error.value.file).endswith("f.ids.jsonl")
    (tmp_path / "f.ids.jsonl").write_text('"d1"\n"d2"\n')
    with refuses(InputError, "2", "4", file="f.ids.jsonl"):
        _import(lineup, tmp_path / "f.npy", tmp_path / "cache")
    (tmp_path / "f.ids.jsonl").write_text("\n".join(f'"{name}"' for name in IDS))
    assert _import(lineup, tmp_path / "f.npy", tmp_path / "cache", trust_ids=True).written == 3


def test_codes_are_not_vectors(lineup: Lineup, tmp_path: Path) -> None:
    import faiss

    index = faiss.index_factory(8, "SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(_random(4))
    index.add(_random(4))
    faiss.write_index(index, str(tmp_path / "own.faiss"))
    with refuses(InputError, "ndexScalarQuantizer", file="own.faiss"):
        _import(lineup, tmp_path / "own.faiss", tmp_path / "cache")


def test_vectors_of_another_model_or_corpus_are_refused(lineup: Lineup, tmp_path: Path) -> None:
    file, cache = tmp_path / "v.npy", tmp_path / "cache"
    _import(lineup, _own(tmp_path, IDS, _random(4), text=list(TEXTS.values())), cache)
    with texts_of(lineup, one_embedding(lineup, None), Role.DOCUMENT, Settings(cache=cache)) as texts:
        export_vectors(texts, vector_file(file))
    with refuses(InputError, "'document'", "'query'", file="v.npy"):
        _import(lineup, file, cache, Role.QUERY)
    with refuses(InputError, "'d1'", place="row 1", file="own.parquet"):
        _import(lineup, _own(tmp_path, IDS, -_random(4), text=list(TEXTS.values())), cache)
    changed = _lineup(tmp_path, "http://127.0.0.1:9/v1", {**TEXTS, "d2": "another text", "d5": "a new one"})
    with refuses(InputError, "1", "5", file="v.npy"):
        _import(changed, file, cache)
    with (
        refuses(InputError, "2", "5", "'d2'"),
        texts_of(changed, one_embedding(changed, None), Role.DOCUMENT, Settings(cache=cache)) as texts,
    ):
        export_vectors(texts, vector_file(tmp_path / "new.npy"))
    assert not (tmp_path / "new.npy").exists()
    shutil.rmtree(cache)
    shared = ImportedVectors(written=2, present=0, lacking=2)  # d1 is d4, and d3
    assert _import(changed, file, cache, partial=True) == shared


def test_damaged_files_are_named(tmp_path: Path, lineup: Lineup) -> None:
    """A header that is no Python, an identity that is no JSON, and data of another kind in a Lance folder."""
    import lancedb

    ids, vectors = list(TEXTS), _random(4)
    np.save(tmp_path / "a.npy", vectors)
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content.replace(b"'fortran_order'", b"('fortran_ord.."))
    table = pa.table({"id": ids, "vector": list(vectors)})
    pq.write_table(table.replace_schema_metadata({b"bakeoff.identity": b"{1: 2}"}), tmp_path / "b.parquet")
    lancedb.connect(str(tmp_path)).create_table("c", table)
    (data,) = (tmp_path / "c.lance" / "data").iterdir()
    data.write_bytes(data.read_bytes()[:-4] + b"NONE")
    for name, said in (("a.npy", "unreadable"), ("b.parquet", "b.parquet"), ("c.lance", "c.lance")):
        with refuses(InputError, said) as caught:
            _import(lineup, tmp_path / name, tmp_path / "cache", trust_ids=True)
        assert str(tmp_path / name) in str(caught.value)


def test_no_damage_to_a_lance_manifest_is_a_traceback(tmp_path: Path, lineup: Lineup) -> None:
    """Where its fields are named, lancedb opens the folder and fails over the schema."""
    import lancedb

    lancedb.connect(str(tmp_path)).create_table("c", pa.table({"id": list(TEXTS), "vector": list(_random(4))}))
    (manifest,) = (tmp_path / "c.lance" / "_versions").glob("*.manifest")
    whole, problems = manifest.read_bytes(), set[tuple[str, str]]()
    for place in range(len(whole) - 300, len(whole), 9):
        manifest.write_bytes(whole[:place] + b"\0" + whole[place + 1 :])
        try:
            _import(lineup, tmp_path / "c.lance", tmp_path / "cache", trust_ids=True)
        except InputError as error:
            problems.add((Path(str(error.file)).name, error.problem.partition(" (")[0]))
    assert {file for file, _ in problems} == {"c.lance"}
    assert len(problems) >= 2, problems  # it can't be opened, or opens and can't be read


def test_a_text_that_is_no_utf_8_is_damage(tmp_path: Path, lineup: Lineup) -> None:
    file = _own(tmp_path, ["d1", "d2-é", "d3", "d4"], _random(4))
    file.write_bytes(file.read_bytes().replace("é".encode(), b"\xb1\xb1"))
    with refuses(InputError, "'utf-8'", file="own.parquet"):
        _import(lineup, file, tmp_path / "cache", trust_ids=True)


def _many(lineup: Lineup, cache: Path, rows: int) -> Texts:
    """The same texts as a task of very many would give them, and the space for them."""
    ids, texts = [f"document-{n}" for n in range(rows)], [f"text {n}" for n in range(rows)]
    space = VectorCache(cache).space({"model": "m", "dimensions": 8})
    return Texts(one_embedding(lineup, None), Role.DOCUMENT, ids, texts, space)


@pytest.mark.parametrize("suffix", ["npy", "parquet", "faiss"])
def test_a_row_takes_few_bytes_of_memory_and_the_work_is_shown(
    lineup: Lineup, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About 120 bytes in and 80 out, beside 2 MB for blocks; 320 to 400 in while each row was a Python object."""
    import faiss

    rows, reads, noted = 60_000, Mock(side_effect=faiss.read_index), Noted()
    monkeypatch.setattr(faiss, "read_index", reads)
    filled, empty = (_many(lineup, tmp_path / name, rows) for name in ("one", "two"))
    filled.space.put(filled.texts, _random(rows), None)
    file = tmp_path / f"many.{suffix}"
    export_vectors(filled, vector_file(file))
    tracemalloc.start()
    try:
        with showing(noted):
            export_vectors(filled, vector_file(file))
            out = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            assert import_vectors(empty, vector_file(file)) == ImportedVectors(written=rows, present=0, lacking=0)
            back = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out < 120 * rows + 4_000_000
    assert back < 160 * rows + 4_000_000
    assert reads.call_count == (suffix == "faiss")
    for label, runs in (("texts to hash", 2), ("vectors written", 2), ("vectors checked", 1)):
        assert noted.seen[label] == [runs * rows, runs * rows]
    filled.space.close()
    empty.space.close()


def test_parquet_is_never_in_memory_as_a_whole(lineup: Lineup, tmp_path: Path) -> None:
    """Arrow's own memory, which tracemalloc does not see: pyarrow held the bytes of the whole file."""
    rows, wide = 100_000, 128
    flat = pa.array(np.ones(rows * wide, dtype=np.float32) + np.arange(rows * wide, dtype=np.float32))
    table = pa.table({"id": list(map(str, range(rows))), "vector": pa.FixedSizeListArray.from_arrays(flat, wide)})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=rows // 10, compression="none")
    del flat, table
    script = (
        "import sys; import pyarrow as pa; from pathlib import Path\n"
        "from bakeoff.extensions.vectors.files import vector_file\n"
        "print(sum(map(len, vector_file(Path(sys.argv[1])).vectors())), pa.default_memory_pool().max_memory())"
    )
    told = subprocess.run([sys.executable, "-c", script, tmp_path / "v.parquet"], capture_output=True, check=True)
    count, held = map(int, told.stdout.split())
    assert count == rows
    assert held < 0.75 * 4 * rows * wide


def test_lines_with_hashes_and_lines_with_texts(lineup: Lineup, tmp_path: Path) -> None:
    """Hashes where every line has one, or else texts where every line has one; a wrong hash counts with the former."""
    np.save(tmp_path / "v.npy", _random(4))
    cases: tuple[tuple[dict[str, dict[str, Any]], str], ...] = (
        ({}, ""),
        ({"d3": {"text_hash": None}}, ""),
        ({"d3": {"text_hash": "xyz"}}, "text_hash"),
        ({"d2": {"text_hash": None}, "d3": {"text_hash": "xyz"}}, ""),
        ({"d2": {"text_hash": None}, "d3": {"text": None}}, "v.npy"),
    )
    for changed, problem in cases:
        lines = [{"id": n, "text": t, "text_hash": HASHES[n], **changed.get(n, {})} for n, t in TEXTS.items()]
        (tmp_path / "v.ids.jsonl").write_text("\n".join(map(json.dumps, lines)))
        cache = tmp_path / "cache"
        if problem:
            with refuses(InputError, problem, file="v.npy"):
                _import(lineup, tmp_path / "v.npy", cache)
        else:
            assert _import(lineup, tmp_path / "v.npy", cache).written == 3
        shutil.rmtree(cache, ignore_errors=True)


def test_packed_ids_are_a_list_of_ids() -> None:
    names = ["", "d1", "ü-2", "\ud800", "d1", "長い名前"]
    packed = PackedIds(names[:2])
    packed.extend(names[2:])
    assert list(packed) == names
    assert (len(packed), packed[3], packed[-1], packed[1:4]) == (6, names[3], names[-1], names[1:4])
    with pytest.raises(IndexError):
        packed[6]
