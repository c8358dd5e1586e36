from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
from bakeoff.core.id_rows import IdRows
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=6)


class Same(str):
    """Texts that share one hash though they differ."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7


@given(st.lists(NAMES, max_size=8), NAMES, st.booleans())
def test_every_place_of_every_id_is_found_while_the_list_grows(
    blocks: list[list[str]], asked: list[str], collide: bool
) -> None:
    of = Same if collide else str
    names: list[str] = []
    rows = IdRows(names)
    wanted = [of(name) for name in asked]
    for block in blocks:
        names += map(of, block)
        expected = {(place, row) for place, one in enumerate(asked) for row, other in enumerate(names) if one == other}
        assert set(zip(*(part.tolist() for part in rows.matches(wanted)), strict=True)) == expected
        assert set(map(str.__str__, rows.among(wanted))) == set(asked) & set(map(str.__str__, names))
        assert rows.has_repeats() == (len(set(map(str.__str__, names))) < len(names))
    assert len(rows) == len(names)
    assert all(rows.of(of(name)) == [row for row, other in enumerate(names) if other == name] for name in asked)


def test_another_process_finds_the_same_though_its_hashes_differ() -> None:
    rows = IdRows([f"d{number}" for number in range(100)])
    assert "d7" in rows
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).of('d7'))"
    told = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(rows), capture_output=True, check=True)
    assert told.stdout.strip() == b"[7]"


def test_an_id_takes_few_bytes() -> None:
    names: list[str] = []
    more = [[f"d{number}" for number in range(start, start + 5_000)] for start in range(0, 100_000, 5_000)]
    rows = IdRows(names)
    for block in more:
        names += block
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    assert "d99999" in rows
    assert tracemalloc.get_traced_memory()[0] - before < 14 * 100_000
    tracemalloc.stop()
    assert np.array_equal(rows.matches(["x", "d3"])[1], [3])
