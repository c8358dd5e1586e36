"""Score arrays in blocks against a plain sort, and what is wrong with a file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from bakeoff.extensions.kinds import single as arrays
from bakeoff.extensions.kinds.single import ranks_and_tops, read_targets
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.errors import refuses
from tests.examples import examples


def test_ties_are_pessimistic(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.array([[0.5, 0.2, 0.1], [0.5, 0.5, 0.1], [0.3, 0.3, 0.3], [0.1, 0.2, 0.9]]))
    ranks, tops = ranks_and_tops(tmp_path / "s.npy", np.array([0, 0, 1, 0]), 3)
    # alone at the top: 1; one equal: 2; all equal: 3; two above: 3
    assert ranks.tolist() == [1, 2, 3, 3]
    # a shared top is given to another class than the right one
    assert tops.tolist() == [0, 1, 0, 2]


@settings(max_examples=examples(40), deadline=None)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 12), st.integers(2, 6)), elements=st.sampled_from([0.0, 0.5, 1.0])),
    st.integers(0, 1000),
)
def test_blocks_give_what_a_loop_gives(tmp_path_factory: pytest.TempPathFactory, scores: np.ndarray, seed: int) -> None:
    targets = np.random.default_rng(seed).integers(0, scores.shape[1], len(scores))
    file = tmp_path_factory.mktemp("a") / "s.npz"
    np.savez_compressed(file, scores=scores, targets=targets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_CELLS", 2 * scores.shape[1])
        ranks, tops = ranks_and_tops(file, read_targets(file), scores.shape[1])
    for row, target in enumerate(targets):
        assert ranks[row] == sum(value >= scores[row, target] for value in scores[row])
        assert (tops[row] == target) == (ranks[row] == 1)
        assert scores[row, tops[row]] == scores[row].max()


def test_the_whole_array_is_never_held(tmp_path: Path) -> None:
    rows, classes = 20_000, 500
    file = np.lib.format.open_memmap(tmp_path / "s.npy", mode="w+", dtype=np.float32, shape=(rows, classes))
    file[:] = np.random.default_rng(1).random(classes, dtype=np.float32)
    file.flush()
    targets = np.zeros(rows, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_CELLS", 100_000)
        tracemalloc.start()
        ranks_and_tops(tmp_path / "s.npy", targets, classes)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < rows * classes * 4 / 10  # the file has 40 MB, a block 0.4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (np.zeros((2, 4)), "2"),
        (np.array([[1, 2, 3], [1, np.nan, 3]]), "1"),
        (np.array([["a", "b", "c"]] * 2), "1"),
        (np.asfortranarray(np.random.default_rng(1).random((2, 3))), "s.npy"),
    ],
)
def test_bad_arrays_are_named(tmp_path: Path, content: np.ndarray, said: str) -> None:
    np.save(tmp_path / "s.npy", content)
    with refuses(InputError, said, file="s.npy"):
        ranks_and_tops(tmp_path / "s.npy", np.array([0, 1]), 3)


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "s.npy").write_bytes(b"no array at all")
    np.savez(tmp_path / "s.npz", other=np.zeros(3))
    np.save(tmp_path / "cut.npy", np.zeros((2, 3)))
    cut = (tmp_path / "cut.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(cut[:-8])
    for name, said in (
        ("s.npy", "umPy"),
        ("s.npz", "'scores'"),
        ("cut.npy", "cut.npy"),
        ("none.npy", "none.npy"),
    ):
        with refuses(InputError, said):
            ranks_and_tops(tmp_path / name, np.array([0, 1]), 3)
    np.save(tmp_path / "t.npy", np.zeros((2, 2)))
    with refuses(InputError, file="t.npy"):
        read_targets(tmp_path / "t.npy")
