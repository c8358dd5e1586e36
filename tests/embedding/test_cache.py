from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xxhash
from bakeoff.calls.key_index import KeyIndex, keys_of
from bakeoff.calls.locks import lock_all
from bakeoff.core.figures import CallTime
from bakeoff.core.hashing import space_name
from bakeoff.embedding.cache import Freed, VectorCache, delete_space
from bakeoff.embedding.shards import ShardWriter
from bakeoff.embedding.space import IN_USE, Space
from bakeoff_providers.errors import EmbeddingFailed, InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses, says

IDENTITY: dict[str, str | int | float | bool | None] = {
    "provider": "p",
    "model": "m",
    "dimensions": 4,
    "role": "document",
    "prompt": "",
}
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) + 1


def test_what_is_put_is_there_after_reopening(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    space.put(["a", "bb", "c"], ROWS, tokens=8)
    space.close()
    again = VectorCache(tmp_path).space(IDENTITY)
    assert len(again) == 3
    vectors, tokens = again.get(["c", "bb"])
    np.testing.assert_array_equal(vectors, ROWS[[2, 1]])
    assert tokens == pytest.approx(6)  # 8 tokens over lengths 1, 2, 1: bb paid 4, c paid 2


@pytest.mark.parametrize(
    "change",
    [{"provider": "q"}, {"model": "n"}, {"dimensions": 5}, {"role": "query"}, {"prompt": "x"}, {"revision": "2"}],
)
def test_everything_that_changes_a_vector_changes_the_space(change: dict[str, str | int]) -> None:
    assert space_name(IDENTITY | change) != space_name(IDENTITY)


def test_the_order_of_the_identity_does_not(tmp_path: Path) -> None:
    assert space_name(dict(reversed(IDENTITY.items()))) == space_name(IDENTITY)


@given(st.data())
def test_damage_anywhere_is_noticed_and_never_served(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    space = VectorCache(folder).space(IDENTITY)
    for name in "abc":
        space.put([name], ROWS[:1] * ord(name), tokens=1)
    space.close()
    suffix = data.draw(st.sampled_from([".manifest", ".f32"]))
    (file,) = space.folder.glob(f"*{suffix}")
    content = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    again = VectorCache(folder).space(IDENTITY)
    assert again.damaged >= 1
    lost = {name for name in "abc" if name not in again}
    if suffix == ".f32":
        assert lost == {"abc"[place // (len(content) // 3)]}
    else:
        record = 4 + 4 + 8 * 3 + 8 + 16 + 4  # magic, rows, three numbers, checksum, one key, one number of tokens
        head = len(content) - 3 * record
        assert lost == (set("abc") if place < head else {"abc"[(place - head) // record]})
    for name in set("abc") - lost:
        np.testing.assert_array_equal(again.get([name])[0][0], ROWS[0] * ord(name))
    again.close()
    VectorCache(folder).prune()
    pruned = VectorCache(folder).space(IDENTITY)
    assert pruned.damaged == 0
    assert {name for name in "abc" if name not in pruned} == lost


@given(st.data())
def test_a_torn_tail_is_not_believed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("cache")
    space = VectorCache(folder).space(IDENTITY)
    sizes = []
    for name in "ab":
        space.put([name], ROWS[:1], tokens=1)
        sizes.append({file.suffix: file.stat().st_size for file in space.folder.glob(f"{os.getpid()}-*")})
    space.close()
    suffix = data.draw(st.sampled_from([".manifest", ".f32"]))
    (file,) = space.folder.glob(f"*{suffix}")
    kept = data.draw(st.integers(0, sizes[1][suffix]))
    file.write_bytes(file.read_bytes()[:kept])
    again = VectorCache(folder).space(IDENTITY)
    assert ("a" in again) == (kept >= sizes[0][suffix])
    assert ("b" in again) == (kept == sizes[1][suffix])


def test_the_rows_of_a_shard_are_a_plain_matrix_that_can_be_mapped(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    space.put(["a", "b"], ROWS[:2], tokens=1)
    space.put(["c"], ROWS[2:], tokens=1)
    space.close()
    (file,) = space.folder.glob("*.f32")
    np.testing.assert_array_equal(np.memmap(file, dtype="<f4", mode="r").reshape(-1, 4), ROWS)


@given(
    keys=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=200, unique=True),
    asked=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50))),
    cut=st.integers(1, 20),
)
def test_keys_are_found_also_where_their_first_halves_agree(
    keys: list[tuple[int, int]], asked: list[tuple[int, int]], cut: int
) -> None:
    index, expected = KeyIndex(), {key: place for place, key in enumerate(keys)}
    for start in range(0, len(keys), cut):
        part = np.array(keys[start : start + cut], dtype=np.uint64).reshape(-1, 2)
        index.add(part, np.arange(start, start + len(part)))
        index.find(part)
    found = index.find(np.array(asked, dtype=np.uint64).reshape(-1, 2))
    assert found.tolist() == [expected.get(key, -1) for key in asked]
    assert len(index) == len(keys)


@given(
    parts=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), max_size=60), settled=st.sets(st.integers(0, 59))
)
def test_all_keys_are_given_once_by_their_first_place(parts: list[tuple[int, int]], settled: set[int]) -> None:
    index = KeyIndex()
    for place, key in enumerate(parts):
        index.add(np.array([key], dtype=np.uint64), np.array([place]))
        if place in settled:
            index.find(np.array([key], dtype=np.uint64))
    keys, places = index.all()
    first = {key: place for place, key in reversed(list(enumerate(parts)))}
    assert dict(zip(map(tuple, keys.tolist()), places.tolist(), strict=True)) == first
    assert places.tolist() == sorted(first.values())


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 60)), max_size=20))
def test_rows_are_read_from_several_shards_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, int]]
) -> None:
    numbers = [number for start, length in runs for number in range(start, min(start + length, 100))]
    folder = tmp_path_factory.mktemp("cache")
    vectors = np.arange(400, dtype=np.float32).reshape(100, 4) + 1
    for start in (0, 30, 35):
        space = VectorCache(folder).space(IDENTITY)
        end = {0: 30, 30: 35, 35: 100}[start]
        space.put([str(number) for number in range(start, end)], vectors[start:end], tokens=None)
        space.close()
    space = VectorCache(folder).space(IDENTITY)
    np.testing.assert_array_equal(space.get([str(number) for number in numbers])[0], vectors[numbers])


WRITER = """
import sys, numpy as np
from pathlib import Path
from bakeoff.embedding.cache import VectorCache
identity = {"provider": "p", "model": "m", "dimensions": 4, "role": "document", "prompt": ""}
space = VectorCache(Path(sys.argv[1])).space(identity)
for number in range(int(sys.argv[3])):
    space.put([f"{sys.argv[2]}{number}"], np.full((1, 4), number + 1, dtype=np.float32), tokens=1)
    print(number, flush=True)
"""


def _writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
    )


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    writers = [_writer(tmp_path, name, 200) for name in "xy"]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    space = VectorCache(tmp_path).space(IDENTITY)
    assert len(space) == 400
    assert space.damaged == 0


def test_a_killed_process_loses_at_most_the_record_in_flight(tmp_path: Path) -> None:
    writer = _writer(tmp_path, "k", 1_000_000)
    assert writer.stdout is not None
    seen = -1
    for line in writer.stdout:
        seen = int(line)
        if seen >= 50:
            writer.send_signal(signal.SIGKILL)
            break
    writer.wait(timeout=30)
    writer.stdout.close()
    space = VectorCache(tmp_path).space(IDENTITY)
    assert all(f"k{number}" in space for number in range(seen + 1))


def test_info_lists_spaces_with_what_made_them(tmp_path: Path) -> None:
    VectorCache(tmp_path).space(IDENTITY).put(["a"], ROWS[:1], tokens=1)
    (info,) = VectorCache(tmp_path).spaces()
    assert info.identity == IDENTITY
    assert (info.vectors, info.damaged) == (1, 0)


def test_prune_keeps_every_sound_vector_once_and_leaves_a_live_shard_alone(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    first, second = cache.space(IDENTITY), cache.space(IDENTITY)
    for space in (first, second):  # the same texts twice, as two processes that did not see each other leave them
        space.put(["a", "bb", "c"], ROWS, tokens=8)
        assert cache.prune() == Freed(0, 1)
        space.close()
    (size,) = (info.size_bytes for info in cache.spaces())
    freed = cache.prune()
    (info,) = cache.spaces()
    assert freed.size_bytes > 0
    assert info.size_bytes == size - freed.size_bytes
    vectors, tokens = cache.space(IDENTITY).get(["c", "a"])
    np.testing.assert_array_equal(vectors, ROWS[[2, 0]])
    assert tokens == pytest.approx(4)
    assert cache.prune() == Freed(0, 0)


def test_clear_forgets_everything_but_what_is_being_written(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors")
    live, done = cache.space(IDENTITY), cache.space(IDENTITY | {"model": "other"})
    for space in (live, done):
        space.put(["a"], ROWS[:1], tokens=1)
    done.close()
    assert cache.clear().in_use == 1
    live.put(["b"], ROWS[1:2], tokens=1)
    live.close()
    (kept,) = cache.spaces()
    assert (kept.identity, kept.vectors) == (IDENTITY, 2)
    assert cache.clear() == Freed(kept.size_bytes, 0)
    assert list(cache.spaces()) == []


def test_what_a_run_has_read_is_not_deleted_before_it_writes_anything(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    early, writer = cache.space(IDENTITY), cache.space(IDENTITY)  # the first of them before there was a folder
    writer.put(["a"], ROWS[:1], tokens=1)
    writer.close()
    early.refresh()
    late = cache.space(IDENTITY)
    for reader in (early, late):
        assert reader.claims.take(keys_of(["b"])) == [True]
        assert (cache.clear(), cache.prune()) == (Freed(0, 1), Freed(0, 1))
        np.testing.assert_array_equal(reader.get(["a"])[0], ROWS[:1])
        reader.close()
    assert cache.clear().in_use == 0
    assert list(cache.spaces()) == []


def test_a_space_is_not_opened_while_it_is_deleted(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    with closing(cache.space(IDENTITY)) as space:
        space.put(["a"], ROWS[:1], tokens=1)
        space.refresh()
    opened: list[Space] = []
    opening = threading.Thread(target=lambda: opened.append(cache.space(IDENTITY)))
    with lock_all([space.folder / IN_USE]) as free:
        assert free
        opening.start()
        opening.join(0.2)
        assert opening.is_alive()
        delete_space(space.folder)
    opening.join(10)
    assert "a" not in opened[0]
    opened[0].put(["a"], ROWS[1:2], tokens=1)
    np.testing.assert_array_equal(opened[0].get(["a"])[0], ROWS[1:2])
    opened[0].close()


OPEN: dict[str, str | int | float | bool | None] = {"provider": "p", "model": "m", "dimensions": None}


def test_the_first_vector_fixes_the_dimension(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(OPEN)
    space.put(["a"], ROWS[:1], tokens=1)
    for opened in (space, VectorCache(tmp_path).space(OPEN)):
        with refuses(EmbeddingFailed, "3", "4"):
            opened.put(["b"], ROWS[:1, :3], tokens=1)
        assert "b" not in opened
        np.testing.assert_array_equal(opened.get(["a"])[0], ROWS[:1])


def test_prune_repairs_a_space_of_two_dimensions(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    space = cache.space(OPEN)
    space.put(["a", "b"], ROWS[:2], tokens=1)
    space.close()
    other = ShardWriter(space.folder, OPEN, 3)
    other.append(keys_of(["c"]).tobytes(), np.ones(1, dtype=np.float32), ROWS[:1, :3])
    other.close()
    mixed = cache.space(OPEN)
    assert (mixed.dimensions, mixed.damaged, "c" in mixed) == (4, 1, False)
    mixed.close()
    cache.prune()
    (info,) = cache.spaces()
    assert (info.vectors, info.damaged) == (2, 0)


def test_a_damaged_identity_concerns_its_own_space_alone(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    for model in ("one", "two"):
        space = cache.space(IDENTITY | {"model": model})
        space.put(["a"], ROWS[:1], tokens=1)
        space.close()
    (tmp_path / space_name(IDENTITY | {"model": "one"}) / "identity.json").write_bytes(b"{")
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "identity.json").write_bytes(b"\xff")
    shown = {info.name: info for info in cache.spaces()}
    assert sorted(str(info.identity.get("model")) for info in shown.values()) == ["None", "one", "two"]
    assert shown["lost"].damaged == 1
    cache.prune()
    space = cache.space(IDENTITY | {"model": "one"})
    space.put(["b"], ROWS[1:2], tokens=1)
    assert json.loads((space.folder / "identity.json").read_bytes()) == space.identity
    space.close()
    (space.folder / "identity.json").write_bytes(b'{"model": "two"}')
    space = cache.space(IDENTITY | {"model": "one"})
    space.put(["c"], ROWS[2:], tokens=1)
    assert json.loads((space.folder / "identity.json").read_bytes()) == space.identity


REFUSED = """
import resource, sys
from pathlib import Path
from bakeoff.embedding.cache import VectorCache
from bakeoff_providers.errors import InputError
space = VectorCache(Path(sys.argv[1])).space({"provider": "p", "dimensions": 4})
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    space.check_writable(1)
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize(("where", "how"), [("cache", "full"), ("file/cache", "not a folder")])
def test_a_disk_that_takes_nothing_is_found_before_anything_is_asked(tmp_path: Path, where: str, how: str) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-c", REFUSED, str(tmp_path / where), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    says(done.stdout)


def test_a_disk_that_is_too_small_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    with refuses(InputError, "MB"):
        space.check_writable(1 << 55)
    space.check_writable(10)
    assert not list(space.folder.glob(".probe"))


def test_files_have_the_permissions_that_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        space = VectorCache(tmp_path).space(IDENTITY)
        space.put(["a"], ROWS[:1], tokens=1)
    finally:
        os.umask(before)
    assert {oct(file.stat().st_mode & 0o777) for file in space.folder.iterdir()} == {"0o640"}


# Figures that nobody would miss until the disk is full or a text is paid for twice


def test_two_keys_of_one_first_half_are_told_apart() -> None:
    index = KeyIndex()
    assert [len(part) for part in index.all()] == [0, 0]
    index.add(np.array([[5, 90], [5, 20], [5, 30], [7, 1]], dtype=np.uint64), np.array([40, 30, 20, 10]))
    asked = np.array([[5, 30], [5, 20], [5, 90], [7, 1], [5, 40], [7, 2], [9, 9], [1, 1]], dtype=np.uint64)
    assert index.find(asked).tolist() == [20, 30, 40, 10, -1, -1, -1, -1]
    assert index.find(asked[:0]).tolist() == []


def test_one_key_of_thousands_that_comes_twice_is_given_once() -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 63, (5_000, 2), dtype=np.uint64)
    keys[7, 0] = keys[11, 0]  # two keys that share more than 32 bits are two
    index = KeyIndex()
    index.add(keys, np.arange(5_000))
    assert len(index) == 5_000
    index.add(keys[[4_000]], np.array([5_000]))
    given, places = index.all()
    assert places.tolist() == list(range(5_000))
    np.testing.assert_array_equal(given, keys)


def test_the_first_place_is_a_place_also_beside_later_runs() -> None:
    index = KeyIndex()
    index.add(np.array([[1, 0], [2, 0], [3, 0]], dtype=np.uint64), np.arange(3))
    assert index.find(np.array([[1, 0]], dtype=np.uint64)).tolist() == [0]
    index.add(np.array([[4, 0]], dtype=np.uint64), np.array([3]))  # too few to be merged with three
    assert index.find(np.array([[1, 0], [4, 0], [5, 0]], dtype=np.uint64)).tolist() == [0, 3, -1]


def test_the_room_that_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four bytes for each dimension (4,096 where nobody knows) and 64 beside them, in a folder that is made."""
    for identity, each in ((IDENTITY, 4 * 4 + 64), (OPEN, 4 * 4096 + 64)):
        space = VectorCache(tmp_path / "made" / "here").space(identity)
        free = {"bytes": 1000 * each}
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free["bytes"]))
        space.check_writable(1000)
        free["bytes"] = 0
        space.check_writable(1000)  # looked for already
        with refuses(InputError, "MB"):
            space.check_writable(1001)
        free["bytes"] = 1001 * each - 1
        with refuses(InputError, "MB"):
            space.check_writable(1001)
        free["bytes"] += 1
        space.check_writable(1001)


def test_tokens_are_kept_for_each_text_of_each_shard(tmp_path: Path) -> None:
    for start in (0, 2):
        space = VectorCache(tmp_path).space(IDENTITY)
        space.put([f"{start}", "x" * 3 + str(start)], ROWS[:2] + start, tokens=10 + start)
        space.put(["", f"more {start}"], ROWS[1:3], tokens=None)
        space.close()
    space = VectorCache(tmp_path).space(IDENTITY)
    places = space.find(keys_of(["xxx2", "0", "xxx0", "2", "more 0"]))
    assert space.tokens_of(places).tolist() == pytest.approx([12 * 4 / 5, 2.0, 8.0, 12 / 5, 0.0])
    assert space.tokens_of(places).sum() == pytest.approx(9.6 + 10 + 2.4)
    assert len(space.places()) == len(space) == 7  # the empty text came twice
    assert sum(len(keys) for keys, _, _ in space.batches()) == 7


def test_an_empty_text_pays_as_one_of_one_character(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    space.put(["", "abc"], ROWS[:2], tokens=8)
    assert space.get([""])[1] == 2.0


def test_a_space_is_rewritten_only_where_something_is_gained(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    for texts in (["a"], ["b"]):
        space = cache.space(IDENTITY)
        space.put(texts, ROWS[:1], tokens=1)
        space.close()
    assert len(list(space.folder.glob("*.f32"))) == 2
    cache.prune()  # two shards become one
    (one,) = space.folder.glob("*.f32")
    cache.prune()  # which stays
    assert list(space.folder.glob("*.f32")) == [one]
    with one.open("ab") as file:  # rows that no record names
        file.write(bytes(16))
    assert cache.prune() == Freed(16, 0)
    assert list(space.folder.glob("*.f32")) != [one]
    again = cache.space(IDENTITY)
    np.testing.assert_array_equal(again.get(["a", "b"])[0], np.repeat(ROWS[:1], 2, axis=0))


def test_info_counts_every_byte_and_damage(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    space.put(["a"], ROWS[:1], tokens=1)
    space.put(["b"], ROWS[1:2], tokens=1)
    space.close()
    (rows,) = space.folder.glob("*.f32")
    rows.write_bytes(bytes(16) + rows.read_bytes()[16:])
    (info,) = VectorCache(tmp_path).spaces()
    assert (info.vectors, info.damaged) == (1, 1)
    assert info.size_bytes == sum(file.stat().st_size for file in space.folder.iterdir())


def test_long_runs_and_single_rows_are_the_same_rows(tmp_path: Path) -> None:
    """Consecutive rows are read in one go, scattered ones are picked; both over the border of two shards."""
    vectors = np.arange(200 * 4, dtype=np.float32).reshape(200, 4)
    for start in (0, 100):
        space = VectorCache(tmp_path).space(IDENTITY)
        space.put([str(number) for number in range(start, start + 100)], vectors[start : start + 100], tokens=None)
        space.close()
    space = VectorCache(tmp_path).space(IDENTITY)
    for numbers in ([*range(60, 140)], [*range(10, 30), *range(150, 170), 5], [199, 0, 101, 100, 99, 7], [3] * 20):
        np.testing.assert_array_equal(space.get([str(number) for number in numbers])[0], vectors[numbers])


def test_what_was_only_read_is_complete_and_what_is_written_goes_elsewhere(tmp_path: Path) -> None:
    first = VectorCache(tmp_path / "one").space(IDENTITY)
    first.put(["a"], ROWS[:1], tokens=3)
    first.close()
    both = VectorCache(tmp_path / "two", [tmp_path / "one"]).space(IDENTITY)
    both.put(["b"], ROWS[1:2], tokens=1)
    np.testing.assert_array_equal(both.get(["b", "a"])[0], ROWS[[1, 0]])
    both.end_shard()
    both.put(["c"], ROWS[2:], tokens=1)
    both.close()
    assert len(VectorCache(tmp_path / "one").space(IDENTITY)) == 1
    again = VectorCache(tmp_path / "two").space(IDENTITY)
    assert ("a" in again, "b" in again, "c" in again) == (False, True, True)
    assert len(list(again.folder.glob("*.manifest"))) == 2


def test_of_two_dimensions_that_of_more_vectors_is_the_spaces(tmp_path: Path) -> None:
    folder = tmp_path / space_name(OPEN)
    for width, texts in ((3, ["x"]), (4, ["a", "b"]), (3, ["y"]), (4, ["c"])):
        writer = ShardWriter(folder, OPEN, width)
        writer.append(keys_of(texts).tobytes(), np.ones(len(texts), dtype=np.float32), ROWS[: len(texts), :width])
        writer.close()
    space = VectorCache(tmp_path).space(OPEN)
    assert (space.dimensions, space.damaged, len(space)) == (4, 2, 3)


def test_what_another_process_writes_meanwhile_is_seen_by_looking_again(tmp_path: Path) -> None:
    mine, theirs = (VectorCache(tmp_path).space(IDENTITY) for _ in range(2))
    theirs.put(["a"], ROWS[:1], tokens=2)
    assert "a" not in mine
    mine.refresh()
    assert "a" in mine
    theirs.put(["b", "c"], ROWS[1:], tokens=4)
    mine.refresh()
    np.testing.assert_array_equal(mine.get(["c", "a", "b"])[0], ROWS[[2, 0, 1]])
    assert mine.get(["c", "a", "b"])[1] == pytest.approx(6)
    assert (mine.damaged, theirs.damaged) == (0, 0)
    mine.put(["d"], ROWS[:1], tokens=1)
    mine.refresh()
    assert len(mine) == 4


def _three_records(folder: Path) -> tuple[Path, int, int]:
    """A shard of a, b and c; its manifest, the length of its head and that of a record."""
    space = VectorCache(folder).space(IDENTITY)
    for name in "abc":
        space.put([name], ROWS[:1] * ord(name), tokens=1)
    space.close()
    (manifest,) = space.folder.glob("*.manifest")
    record = 4 + 4 + 8 * 3 + 8 + 16 + 4
    return manifest, manifest.stat().st_size - 3 * record, record


def test_damage_at_any_byte_of_a_manifest_costs_its_own_record_alone(tmp_path: Path) -> None:
    manifest, head, record = _three_records(tmp_path)
    sound = manifest.read_bytes()
    for place in [*range(16), head - 1, *range(head, head + 2 * record)]:
        content = bytearray(sound)
        content[place] ^= 0x5A
        manifest.write_bytes(content)
        space = VectorCache(tmp_path).space(IDENTITY)
        lost = {name for name in "abc" if name not in space}
        assert lost == (set("abc") if place < head else {"abc"[(place - head) // record]}), place
        assert space.damaged == 1, place
        space.close()


@pytest.mark.parametrize("place", [0, 4, 8, 16])
def test_a_shard_with_a_damaged_head_may_grow(tmp_path: Path, place: int) -> None:
    """Another process goes on writing to it: what it writes there is lost for us too, and nothing else."""
    writing = VectorCache(tmp_path).space(IDENTITY)
    writing.put(["a"], ROWS[:1], tokens=1)
    (manifest,) = writing.folder.glob("*.manifest")
    with manifest.open("r+b") as file:
        file.seek(place)
        file.write(b"\x7f")
    reading = VectorCache(tmp_path).space(IDENTITY)
    writing.put(["b"], ROWS[1:2], tokens=1)
    reading.refresh()
    assert [name in reading for name in "ab"] == [False, False]
    assert reading.damaged == 1
    reading.put(["a"], ROWS[:1], tokens=1)
    np.testing.assert_array_equal(reading.get(["a"])[0], ROWS[:1])


def test_bytes_between_two_records_cost_neither(tmp_path: Path) -> None:
    manifest, head, record = _three_records(tmp_path)
    sound = manifest.read_bytes()
    for stray in (b"x", b"xy", b"x" * record):
        manifest.write_bytes(sound[: head + record] + stray + sound[head + record :])
        space = VectorCache(tmp_path).space(IDENTITY)
        assert [name in space for name in "abc"] == [True] * 3
        assert space.damaged == 1
        space.close()


def test_a_manifest_that_is_still_being_written_is_read_on_when_there_is_more(tmp_path: Path) -> None:
    manifest, head, record = _three_records(tmp_path)
    sound = manifest.read_bytes()
    for cut in (0, 2, 15, 16, head - 1, head, head + 3, head + record - 1, head + record, head + 2 * record + 45):
        manifest.write_bytes(sound[:cut])
        space = VectorCache(tmp_path).space(IDENTITY)
        whole = max(0, (cut - head) // record)
        assert [name in space for name in "abc"] == [at < whole for at in range(3)], cut
        torn = cut > 0 and (cut < head or (cut - head) % record > 0)
        assert space.damaged == torn, cut
        manifest.write_bytes(sound)
        space.refresh()
        assert [name in space for name in "abc"] == [True] * 3, cut
        assert space.damaged == 0, cut
        space.close()


def test_rows_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    _three_records(tmp_path)
    space = VectorCache(tmp_path).space(IDENTITY)
    (rows,) = space.folder.glob("*.f32")
    rows.write_bytes(rows.read_bytes()[:-1])
    again = VectorCache(tmp_path).space(IDENTITY)
    assert ("b" in again, "c" in again) == (True, False)
    rows.unlink()
    gone = VectorCache(tmp_path).space(IDENTITY)
    assert (len(gone), gone.damaged) == (0, 3)


def test_rows_are_checked_a_window_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 4,800 bytes through windows of 8,192: each begins elsewhere within its window."""
    monkeypatch.setattr("bakeoff.embedding.shards._MAPPED_AT_ONCE", 8192)
    vectors = np.random.default_rng(1).random((3000, 4)).astype(np.float32)
    texts = [str(number) for number in range(3000)]
    space = VectorCache(tmp_path).space(IDENTITY)
    for start in range(0, 3000, 300):
        space.put(texts[start : start + 300], vectors[start : start + 300], tokens=None)
    space.close()
    again = VectorCache(tmp_path).space(IDENTITY)
    assert again.damaged == 0
    np.testing.assert_array_equal(again.get(texts)[0], vectors)
    again.close()
    (rows,) = space.folder.glob("*.f32")
    content = bytearray(rows.read_bytes())
    content[7 * 4800 + 2000] ^= 1
    rows.write_bytes(content)
    damaged = VectorCache(tmp_path).space(IDENTITY)
    assert damaged.damaged == 1
    assert [number for number in range(3000) if texts[number] not in damaged] == list(range(2100, 2400))


def _old_shard(folder: Path, texts: list[str], vectors: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    """A space as it was written before times were kept: its files, byte by byte."""
    folder.mkdir(parents=True)
    (folder / "identity.json").write_text(json.dumps(IDENTITY))
    text = json.dumps({"identity": IDENTITY, "dimensions": 4}).encode()
    rows = vectors.astype("<f4").tobytes()
    (folder / "1-abcdef01.f32").write_bytes(rows)
    keys = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    body = keys + np.full(len(texts), 2, dtype="<f4").tobytes()
    head = struct.pack("<4sIQQQ", b"BKR1", len(texts), 0, _sum64(rows), _sum64(body))
    start = struct.pack("<4sIQ", b"BKS1", len(text), _sum64(text)) + text
    (folder / "1-abcdef01.manifest").write_bytes(start + head + struct.pack("<Q", _sum64(head)) + body)


def _sum64(data: bytes) -> int:
    return xxhash.xxh3_64(data).intdigest()


TIME = CallTime(1_234_567, "2026-03-04T05:06:07+00:00", "a machine, 8 cores")


def test_a_cache_from_before_times_were_kept_gives_its_vectors_and_takes_times(tmp_path: Path) -> None:
    _old_shard(tmp_path / space_name(IDENTITY), ["a", "bb", "c"], ROWS)
    space = VectorCache(tmp_path).space(IDENTITY)
    assert (len(space), space.damaged) == (3, 0)
    vectors, tokens = space.get(["c", "bb"])
    np.testing.assert_array_equal(vectors, ROWS[[2, 1]])
    assert tokens == 4
    assert space.call_time("a") is None
    space.note_time("a", TIME)
    space.put(["d"], ROWS[:1] * 9, tokens=1)
    space.close()
    again = VectorCache(tmp_path).space(IDENTITY)
    assert (len(again), again.damaged) == (4, 0)
    assert (again.call_time("a"), again.call_time("d")) == (TIME, None)
    np.testing.assert_array_equal(again.get(["a", "d"])[0], ROWS[[0, 0]] * [[1], [9]])


def test_the_first_time_of_a_text_is_kept_also_by_pruning(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    space.put(["a"], ROWS[:1], tokens=1)
    space.note_time("a", TIME)
    space.note_time("a", CallTime(9, "2027-01-01T00:00:00+00:00", "another"))
    space.put(["b"], ROWS[1:2], tokens=1)
    space.close()
    other = VectorCache(tmp_path).space(IDENTITY)
    other.put(["c"], ROWS[2:], tokens=1)
    other.note_time("c", TIME)
    other.close()
    VectorCache(tmp_path).prune()
    assert len(list(space.folder.glob("*.manifest"))) == 1
    pruned = VectorCache(tmp_path).space(IDENTITY)
    assert (len(pruned), pruned.damaged) == (3, 0)
    assert [pruned.call_time(text) for text in "abc"] == [TIME, None, TIME]


def test_a_damaged_time_loses_no_vector(tmp_path: Path) -> None:
    space = VectorCache(tmp_path).space(IDENTITY)
    space.put(["a"], ROWS[:1], tokens=1)
    space.note_time("a", TIME)
    space.put(["b"], ROWS[1:2], tokens=1)
    space.close()
    (manifest,) = space.folder.glob("*.manifest")
    content = bytearray(manifest.read_bytes())
    content[content.index(b"machine")] ^= 1
    manifest.write_bytes(content)
    again = VectorCache(tmp_path).space(IDENTITY)
    assert ("a" in again, "b" in again, again.damaged) == (True, True, 1)
    assert again.call_time("a") is None
