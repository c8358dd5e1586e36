"""A space of many shards: few descriptors, and a look at it that costs little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.shards import Shard
from bakeoff.embedding.space import Space
from bakeoff.embedding.vector_rows import VectorRows

IDENTITY = {"provider": "hosted", "model": "hosted", "dimensions": None, "role": "document", "prompt": ""}
TEXTS = 300


def _many(folder: Path, count: int = TEXTS) -> Space:
    """Shards of one vector each; the vector says which."""
    space = VectorCache(folder).space(IDENTITY)
    for number in range(count):
        space.put([f"t{number}"], np.full((1, 3), number, dtype=np.float32), tokens=1)
        space.end_shard()
    return space


READING = """
import resource, sys
from pathlib import Path

import numpy as np
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.vector_rows import VectorRows

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
space = VectorCache(Path(sys.argv[1])).space(%r)
texts = [f"t{number}" for number in range(%d)]
one_by_one, tokens = space.get(texts)
assert one_by_one[:, 0].tolist() == list(range(len(texts))), one_by_one
assert tokens == len(texts)
for number in range(len(texts)):
    assert space.get(texts[number : number + 1])[0][0, 0] == number
for number, shard in enumerate(space.rows().shards):
    shard.read(0, out := np.empty((1, 3), dtype=np.float32))
space.refresh()
print("all of", len(VectorRows(space, space.places(), (), 3)))
"""


def test_hundreds_of_shards_are_read_with_sixty_four_descriptors(tmp_path: Path) -> None:
    _many(tmp_path).close()
    done = subprocess.run(
        [sys.executable, "-c", READING % (IDENTITY, TEXTS), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == f"all of {TEXTS}\n", done.stderr


def test_files_are_let_go_with_those_who_read_them(tmp_path: Path) -> None:
    _many(tmp_path, 40).close()
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else None
    space = VectorCache(tmp_path).space(IDENTITY)
    rows = VectorRows(space, space.places(), (), 3)
    assert sorted(rows[:][:, 0].tolist()) == list(range(40))
    space.close()
    del rows, space
    if before is not None:
        assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_look_reads_only_what_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = _many(tmp_path / "here", 5), VectorCache(tmp_path / "here").space(IDENTITY)
    read: list[str] = []
    whole = Shard.new_batches

    def noted(shard: Shard, *, trusted: bool = False) -> object:
        read.append(shard.stem.name)
        return whole(shard, trusted=trusted)

    monkeypatch.setattr(Shard, "new_batches", noted)
    reader.refresh()
    assert read == []
    writer.put(["new"], np.ones((1, 3), dtype=np.float32), tokens=1)
    reader.refresh()
    writer.put(["newer"], np.ones((1, 3), dtype=np.float32), tokens=1)
    reader.refresh()
    assert len(read) == 2
    assert len(set(read)) == 1
    assert {"new", "newer", "t0"} <= {text for text in ("new", "newer", "t0") if text in reader}


def test_a_copy_that_grew_is_another_file(tmp_path: Path) -> None:
    """As it comes from a URL: a longer file is put in the place of the one that is being read."""
    writer = VectorCache(tmp_path / "there").space(IDENTITY)
    reader = None
    for number in range(3):
        writer.put([f"t{number}"], np.full((1, 3), number, dtype=np.float32), tokens=1)
        for file in writer.folder.glob("*-*"):
            copy = tmp_path / "copy" / writer.folder.name / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            part = copy.with_name("part")
            part.write_bytes(file.read_bytes())
            part.replace(copy)
        reader = reader or VectorCache(tmp_path / "copy").space(IDENTITY)
        reader.refresh()
        assert reader.get([f"t{n}" for n in range(number + 1)])[0][:, 0].tolist() == list(range(number + 1))
        assert reader.damaged == 0
    writer.close()


def test_who_needs_only_what_is_new_begins_where_another_has_read_to(tmp_path: Path) -> None:
    writer = _many(tmp_path, 5)
    driver = VectorCache(tmp_path).space(IDENTITY)
    writer.put(["grows"], np.ones((1, 3), dtype=np.float32), tokens=1)
    driver.refresh()
    worker = Space(driver.folder, IDENTITY, known=driver.collect_marks())
    assert len(worker) == 0
    writer.put(["later"], np.full((1, 3), 7, dtype=np.float32), tokens=2)  # into a shard that is known in part
    writer.end_shard()
    writer.put(["elsewhere"], np.full((1, 3), 8, dtype=np.float32), tokens=1)
    worker.refresh()
    assert len(worker) == 2
    vectors, tokens = worker.get(["later", "elsewhere"])
    assert (vectors[:, 0].tolist(), tokens) == ([7, 8], 3)
    assert worker.damaged == 0
