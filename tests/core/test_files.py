"""Results appear whole or not at all."""

import gzip
import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core import files
from bakeoff.core.files import read_json, read_json_lines, read_toml, write_atomic, write_folder
from bakeoff.tasks.formats.tables import read_table
from bakeoff_providers.errors import InputError


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    def fill(draft: Path) -> None:
        write_atomic(draft / "a.txt", "a")
        assert not (tmp_path / "run").exists()

    assert write_folder(tmp_path / "run", fill) == tmp_path / "run"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "a.txt").read_text() == "a"


def _fill(text: str, draft: Path) -> None:
    write_atomic(draft / "a.txt", text)


def test_a_taken_name_gets_a_number(tmp_path: Path) -> None:
    for text in ("first", "second", "third"):
        folder = write_folder(tmp_path / "run", partial(_fill, text))
        assert (folder / "a.txt").read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run-2", "run-3"]


def test_an_interrupted_folder_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(draft: Path) -> None:
        write_atomic(draft / "a.txt", "a")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "run", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_files_keep_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomic(tmp_path / "a.txt", "a")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.toml", "a = " + "[" * 3000), ("x.json", "[" * 100_000), ("x.jsonl", '{"a": ' + "[" * 100_000)],
)
def test_nesting_without_end_is_bad_input(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    readers: dict[str, Callable[[], object]] = {
        "x.toml": lambda: read_toml(path, dict[str, Any]),
        "x.json": lambda: read_json(path, Any),
        "x.jsonl": lambda: list(read_json_lines(path, Any)),
    }
    with pytest.raises(InputError) as caught:
        readers[name]()
    assert str(path) in str(caught.value)


def test_a_null_byte_in_a_name_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="null byte"):
        read_json(tmp_path / "a\0b.json", Any)


def test_where_a_file_stops_being_utf_8_is_found_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MEGABYTE", 4)
    path = tmp_path / "a.csv"
    for data in (
        b"abc\xff",
        b"abcdef\xffgh",
        "äöüß€".encode() + b"\xe2\x82",
        "äöü".encode() + b"\xe2\x28\xa1",
        b"\xff",
    ):
        with pytest.raises(UnicodeDecodeError) as caught:
            data.decode()
        for packed in (data, gzip.compress(data), b"\xef\xbb\xbf" + data):
            path.write_bytes(packed)
            assert files.first_wrong_byte(path) == caught.value.start
    path.write_text("äöüß€ and more")
    assert files.first_wrong_byte(path) is None


def test_a_table_that_unpacks_to_much_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "documents.csv.gz"
    path.write_bytes(gzip.compress(b"id,text\n1,\xff\n" + b"2,a\n" * (16 << 20), 1))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"is not UTF-8 \(byte 10\)"):
            list(read_table(path).rows)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20  # unpacked it has 64 MB
    finally:
        tracemalloc.stop()
