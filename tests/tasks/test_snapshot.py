"""Snapshots: written, found, read whoever made them, and refused when they carry vectors."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bakeoff.core.hashing import text_key
from bakeoff.core.paths import root
from bakeoff.extensions.kinds.snapshot import newest, read_snapshot, write_snapshot
from bakeoff_providers.errors import InputError

from tests.errors import refuses

KEYS = {"id_key": "id", "title_key": "title", "text_key_": "description"}
ITEMS = [{"id": "a", "title": "One", "description": "first", "amount": 5, "states": ["Utah"]}]


def _written(folder: Path) -> Path:
    (folder / "things.json").write_text(json.dumps(ITEMS))
    return write_snapshot(folder / "things.json", folder, datetime.date(2026, 1, 2), **KEYS)


def test_it_keeps_a_key_of_the_cache_and_no_vector(tmp_path: Path) -> None:
    file = _written(tmp_path)
    assert file.name == "things_snapshot_20260102.parquet"
    (row,) = pq.read_table(file).to_pylist()
    assert row["embedding_key"] == text_key("One first").hex()
    snapshot = read_snapshot(file, **KEYS)
    (document,) = snapshot.documents
    assert (snapshot.keys, snapshot.notes) == ({"a": row["embedding_key"]}, [])
    assert (document.id, document.whole()) == ("a", "One first")
    assert document.metadata == {"amount": 5, "states": ["Utah"]}


def test_the_newest_is_taken_if_none_is_named(tmp_path: Path) -> None:
    for name in (
        "x_snapshot_20251231.parquet",
        "a_snapshot_20260105.parquet",
        "z_snapshot_20260101.parquet",
        "z.parquet",
    ):
        (tmp_path / name).touch()
    assert newest(tmp_path).name == "a_snapshot_20260105.parquet"
    assert newest(tmp_path / "z.parquet").name == "z.parquet"
    (tmp_path / "empty").mkdir()
    with refuses(InputError, file="empty"):
        newest(tmp_path / "empty")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vector": pa.array([[0.1, 0.2]], pa.list_(pa.float32()))}, "'vector'"),
        ({"title": None}, "'title'"),
    ],
)
def test_bad_snapshots_are_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    file = _written(tmp_path)
    table = pq.read_table(file)
    for name, values in change.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table if values is None else table.append_column(name, pa.array(values))
    pq.write_table(table, file)
    with refuses(InputError, said, file="things_snapshot_20260102.parquet"):
        read_snapshot(file, **KEYS)


FOREIGN = pd.DataFrame(
    {
        "scholarship_id": ["S1", "S2"],
        "title": ["One", "Two"],
        "description": ["first", "second"],
        "min_gpa": [3.0, None],
        "states_allowed": [["Utah"], []],
        "deadline": [datetime.date(2026, 5, 1), None],
    }
)
FOREIGN_KEYS = KEYS | {"id_key": "scholarship_id"}


def _foreign(folder: Path, keys: list[str | None] | None) -> Path:
    """As pandas writes one; SHA-1 keys are not ours."""
    file = folder / "scholarships_snapshot_20260301.parquet"
    (FOREIGN if keys is None else FOREIGN.assign(embedding_key=keys)).to_parquet(file)
    return file


@pytest.mark.parametrize(
    ("keys", "known", "noted"),
    [
        (["9f" * 20, "8e" * 20], {"S1": "9f" * 20, "S2": "8e" * 20}, [("foreign_keys", 2)]),
        (["9f" * 20, None], {"S1": "9f" * 20}, [("items_without_key", 1), ("foreign_keys", 1)]),
        (None, {}, [("items_without_key", 2)]),
    ],
)
def test_a_snapshot_that_someone_else_made_is_read_with_a_note(
    tmp_path: Path, keys: list[str | None] | None, known: dict[str, str], noted: list[tuple[str, int]]
) -> None:
    snapshot = read_snapshot(_foreign(tmp_path, keys), **FOREIGN_KEYS)
    assert [document.whole() for document in snapshot.documents] == ["One first", "Two second"]
    assert snapshot.documents[1].metadata == {"min_gpa": None, "states_allowed": [], "deadline": None}
    assert snapshot.keys == known
    assert [(note.id.removeprefix("kinds."), note.arguments["count"]) for note in snapshot.notes] == noted


def test_a_snapshot_is_made_from_parquet(tmp_path: Path) -> None:
    source = _foreign(tmp_path, ["9f" * 20, "8e" * 20])
    written = write_snapshot(source, tmp_path, datetime.date(2026, 3, 2), **FOREIGN_KEYS)
    assert written.name == "scholarships_snapshot_20260302.parquet"
    assert [row["embedding_key"] for row in pq.read_table(written).to_pylist()] == [
        text_key("One first").hex(),
        text_key("Two second").hex(),
    ]
    assert read_snapshot(written, **FOREIGN_KEYS).notes == []
    before = source.read_bytes()
    with refuses(InputError, "overwritten", file="scholarships_snapshot_20260301.parquet"):
        write_snapshot(source, tmp_path, datetime.date(2026, 3, 1), **FOREIGN_KEYS)
    assert source.read_bytes() == before


def test_files_that_are_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "x_snapshot_20260101.parquet").write_bytes(b"not parquet")
    with refuses(InputError, "unreadable", file="x_snapshot_20260101.parquet"):
        read_snapshot(tmp_path / "x_snapshot_20260101.parquet", **KEYS)
    with refuses(InputError, file="none.parquet"):
        read_snapshot(tmp_path / "none.parquet", **KEYS)


def test_the_shipped_snapshot_is_its_source(tmp_path: Path) -> None:
    folder = root() / "corpora" / "scholarships"
    keys = KEYS | {"id_key": "scholarship_id"}
    written = write_snapshot(folder / "scholarships.json", tmp_path, datetime.date(2026, 11, 16), **keys)
    shipped = read_snapshot(newest(folder), **keys)
    assert read_snapshot(written, **keys) == shipped
    assert len(shipped.documents) == 60
