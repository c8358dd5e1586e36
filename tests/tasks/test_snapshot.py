"""Snapshots: written, found, read, and refused when stale or when they carry vectors."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bakeoff.core.hashing import text_key
from bakeoff.core.paths import root
from bakeoff.tasks.formats.snapshot import newest, read_snapshot, write_snapshot
from bakeoff_providers.errors import InputError

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
    (document,) = read_snapshot(file, **KEYS)
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
    with pytest.raises(InputError, match="holds no snapshot"):
        newest(tmp_path / "empty")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"embedding_key": ["00"]}, "embedding_key of 'a' does not fit its text"),
        ({"description": ["other"]}, "does not fit its text"),
        ({"vector": pa.array([[0.1, 0.2]], pa.list_(pa.float32()))}, "column 'vector' holds vectors"),
        ({"title": None}, "no column 'title'"),
    ],
)
def test_bad_snapshots_are_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    file = _written(tmp_path)
    table = pq.read_table(file)
    for name, values in change.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table if values is None else table.append_column(name, pa.array(values))
    pq.write_table(table, file)
    with pytest.raises(InputError, match=said):
        read_snapshot(file, **KEYS)


def test_files_that_are_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "x_snapshot_20260101.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="unreadable"):
        read_snapshot(tmp_path / "x_snapshot_20260101.parquet", **KEYS)
    with pytest.raises(InputError, match="no such file"):
        read_snapshot(tmp_path / "none.parquet", **KEYS)


def test_the_shipped_snapshot_is_its_source(tmp_path: Path) -> None:
    folder = root() / "corpora" / "scholarships"
    keys = KEYS | {"id_key": "scholarship_id"}
    written = write_snapshot(folder / "scholarships.json", tmp_path, datetime.date(2026, 11, 16), **keys)
    shipped = read_snapshot(newest(folder), **keys)
    assert read_snapshot(written, **keys) == shipped
    assert len(shipped) == 60
