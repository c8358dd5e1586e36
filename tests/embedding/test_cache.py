from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.hashing import space_name
from bakeoff.embedding.cache import VectorCache
from hypothesis import given
from hypothesis import strategies as st

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
def test_damage_anywhere_loses_at_most_the_records_it_touches(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    space = VectorCache(folder).space(IDENTITY)
    for name in "abc":
        space.put([name], ROWS[:1] * ord(name), tokens=1)
    space.close()
    (segment,) = space.folder.glob("*.seg")
    content = bytearray(segment.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    segment.write_bytes(content)
    again = VectorCache(folder).space(IDENTITY)
    hit = "abc"[place // (len(content) // 3)]
    assert hit not in again
    assert again.damaged >= 1
    for name in set("abc") - {hit}:
        np.testing.assert_array_equal(again.get([name])[0][0], ROWS[0] * ord(name))


@given(cut=st.integers(0, 200))
def test_a_torn_tail_is_not_believed(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cache")
    space = VectorCache(folder).space(IDENTITY)
    space.put(["a"], ROWS[:1], tokens=1)
    space.put(["b"], ROWS[1:2], tokens=1)
    space.close()
    (segment,) = space.folder.glob("*.seg")
    content = segment.read_bytes()
    kept = min(cut, len(content))
    segment.write_bytes(content[:kept])
    again = VectorCache(folder).space(IDENTITY)
    assert ("a" in again) == (kept >= len(content) // 2)
    assert ("b" in again) == (kept == len(content))


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


def test_prune_keeps_every_sound_vector_once_and_leaves_a_live_segment_alone(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    for _ in range(2):  # the same texts twice, as two processes that did not see each other leave them
        space = cache.space(IDENTITY)
        space.put(["a", "bb", "c"], ROWS, tokens=8)
        if _ == 0:
            assert cache.prune() == 0  # still open
        space.close()
    (size,) = (info.size_bytes for info in cache.spaces())
    freed = cache.prune()
    (info,) = cache.spaces()
    assert freed > 0
    assert info.size_bytes == size - freed
    vectors, tokens = cache.space(IDENTITY).get(["c", "a"])
    np.testing.assert_array_equal(vectors, ROWS[[2, 0]])
    assert tokens == pytest.approx(4)


def test_clear_forgets_everything(tmp_path: Path) -> None:
    space = VectorCache(tmp_path / "vectors").space(IDENTITY)
    space.put(["a"], ROWS[:1], tokens=1)
    assert VectorCache(tmp_path / "vectors").clear() > 0
    assert list(VectorCache(tmp_path / "vectors").spaces()) == []
