"""Score arrays (samples × classes) read a block of rows at a time, and the rank of each sample's right class."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

BLOCK_CELLS = 1 << 22  # scores held at once: 32 MB in float64, however many samples there are

MOST_BYTES = 1 << 33  # of targets: a billion of them

Ranks = NDArray[np.int64]


def ranks_and_tops(file: Path, targets: Ranks, classes: int) -> tuple[Ranks, Ranks]:
    """The pessimistic rank of every target (all that score at least as much rank above it), and the top class.

    Where the target shares the highest score, the top class is another one of those: a tie is not a right answer.
    """
    ranks, tops = np.empty(len(targets), dtype=np.int64), np.empty(len(targets), dtype=np.int64)
    for start, scores in blocks(file, len(targets), classes):
        rows, mine = np.arange(len(scores)), targets[start : start + len(scores)]
        if not np.isfinite(scores).all():
            row, column = np.argwhere(~np.isfinite(scores))[0]
            raise InputError(f"the score of sample {start + row}, class {column} is not finite", file=file)
        ranks[start : start + len(scores)] = (scores >= scores[rows, mine][:, None]).sum(axis=1)
        top = scores.argmax(axis=1)
        shared = (top == mine) & (ranks[start : start + len(scores)] > 1)
        if shared.any():
            others = scores[shared]
            others[np.arange(len(others)), mine[shared]] = -np.inf
            top[shared] = others.argmax(axis=1)
        tops[start : start + len(scores)] = top
    return ranks, tops


def blocks(file: Path, samples: int, classes: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Blocks of rows with the number of their first; from a .npy, or from the array `scores` of a .npz."""
    with _stream(file, "scores") as stream:
        shape, fortran, dtype = _header(stream, file)
        if shape != (samples, classes):
            raise InputError(f"scores of shape {shape}, not {samples} samples × {classes} classes", file=file)
        if dtype.kind not in "fiu":
            raise InputError(f"scores of type {dtype}, not numbers", file=file)
        if fortran:
            raise InputError("scores are stored by columns", file=file, remedy="save np.ascontiguousarray(scores)")
        step = max(1, BLOCK_CELLS // max(classes, 1))
        for start in range(0, samples, step):
            rows = min(step, samples - start)
            data = stream.read(rows * classes * dtype.itemsize)
            if len(data) < rows * classes * dtype.itemsize:
                raise InputError("the file ends too early", file=file, remedy="save it again")
            yield start, np.frombuffer(data, dtype=dtype).reshape(rows, classes).copy()


def read_targets(file: Path) -> Ranks:
    """Class numbers, one per sample: a .npy, or the array `targets` of a .npz."""
    try:
        with _stream(file, "targets") as stream:
            shape, _, dtype = _header(stream, file)
            if len(shape) != 1 or dtype.kind not in "iu":
                raise InputError(f"targets of shape {shape} and type {dtype}, not class numbers", file=file)
            data = stream.read(min(shape[0] * dtype.itemsize, MOST_BYTES))  # the header may promise anything
            targets = np.frombuffer(data, dtype=dtype, count=shape[0])
    except ValueError as error:
        raise InputError(f"unreadable: {error}", file=file) from None
    return targets.astype(np.int64)


def has_targets(file: Path) -> bool:
    """Whether a .npz brings targets of its own, which must then be those of the task."""
    try:
        with ZipFile(file) as archive:
            return "targets.npy" in archive.namelist()
    except (BadZipFile, NotImplementedError, OSError, ValueError):
        return False


@contextmanager
def _stream(file: Path, name: str) -> Iterator[IO[bytes]]:
    try:
        if file.suffix == ".npz":
            with ZipFile(file) as archive, archive.open(f"{name}.npy") as stream:
                yield stream
        else:
            with file.open("rb") as stream:
                yield stream
    except FileNotFoundError:
        raise InputError("no such file", file=file, remedy="check the path") from None
    except KeyError:
        raise InputError(f"has no array {name!r}", file=file, remedy=f"np.savez(…, {name}=…)") from None
    except (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, zlib.error) as error:
        raise InputError(f"unreadable: {error}", file=file) from None


def _header(stream: IO[bytes], file: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as error:  # the header is parsed as Python: a damaged one raises anything
        raise InputError(f"is not a NumPy array: {error}", file=file) from None
    return tuple(shape), bool(fortran), dtype
