"""Results appear whole or not at all."""

import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core import files
from bakeoff.core.files import (
    check_keys_once,
    read_json,
    read_json_lines,
    read_lines,
    read_toml,
    write_atomic,
    write_folder,
)
from bakeoff.tasks.formats.tables import read_table
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses


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
    with refuses(InputError):
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
        with refuses(InputError, "UTF-8", "10", file="documents.csv.gz"):
            list(read_table(path).rows)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20  # unpacked it has 64 MB
    finally:
        tracemalloc.stop()


@given(
    st.dictionaries(
        st.text(), st.one_of(st.text(), st.integers(-9, 9), st.lists(st.sampled_from(["//", '\\"//', "é"])))
    ),
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1),
)
def test_comments_are_left_out_and_what_looks_like_one_in_a_string_stays(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any], comments: list[str]
) -> None:
    path = tmp_path_factory.mktemp("commented") / "x.json"
    lines = json.dumps(content, indent=1, ensure_ascii=False).split("\n")  # json escapes line breaks in strings
    commented = [f"{line} //{comment}" for line, comment in zip(lines, cycle(comments))]
    path.write_bytes(("// first\n" + "\n".join(commented)).encode())
    assert read_json(path, dict[str, Any]) == content


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n"a": 1, // one\n"b": 2, // é, two\n"c": }', 4),
        ('{\n"a": "http://x" // one\n"b": 2}', 3),
        ('{\n"a": 1 / 2}', 2),
        ('// one\n{\n"a": "\\"\\"\\"', 3),
    ],
)
def test_the_line_of_an_error_after_a_comment_is_the_one_in_the_file(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_json(tmp_path / "x.json", dict[str, Any])
    if "truncated" not in caught.value.problem:  # then no place is known
        assert f"line {line}" in caught.value.problem


def test_a_key_that_is_there_twice_is_seen_through_comments(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1, // http://x "\n "a": 2}')
    with refuses(InputError, "'a'", file="x.json"):
        check_keys_once(tmp_path / "x.json")


@pytest.mark.parametrize("special", ["fifo", "/dev/zero"])
def test_what_may_never_end_is_refused_before_it_is_read(tmp_path: Path, special: str) -> None:
    path = Path(special)
    if special == "fifo":
        path = tmp_path / "corpus.jsonl"
        os.mkfifo(path)
    with refuses(InputError, "regular", file=path):
        list(read_lines(path))


def test_a_pipe_on_purpose_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"one\ntwo\n")
    os.close(writer)
    try:
        assert list(read_lines(Path(f"/dev/fd/{reader}"))) == [(1, b"one"), (2, b"two")]
    finally:
        os.close(reader)
