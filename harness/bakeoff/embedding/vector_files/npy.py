"""Vectors as a plain NumPy matrix, mapped when it is read; ids are in a file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers.arrays import mapped_array
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.files import replacing

from bakeoff.core.hashing import Identity
from bakeoff.embedding.vector_files.base import Block, Contents, VectorFile, as_float32
from bakeoff.embedding.vector_files.sidecar import read_sidecar, sidecar_of, write_sidecar

_ROWS = 8_192  # in memory at once


class Npy(VectorFile):
    """`NAME.npy` of rows × dimensions, and `NAME.ids.jsonl`."""

    name = "npy"

    def _matrix(self) -> Any:
        matrix = mapped_array(self.path)
        if matrix.ndim != 2 or matrix.dtype.kind != "f":
            raise self.wrong(f"holds {matrix.dtype} of shape {matrix.shape}, not a matrix of floating numbers")
        return matrix

    def contents(self) -> Contents:
        """From the file beside it."""
        matrix = self._matrix()
        return read_sidecar(self, *matrix.shape)

    def vectors(self) -> Iterator[Vectors]:
        """Part by part."""
        matrix = self._matrix()
        for first in range(0, len(matrix), _ROWS):
            yield as_float32(self, np.asarray(matrix[first : first + _ROWS]), first)

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[Block], rows: int) -> None:
        """Both files; the ids get their name last."""
        with replacing(sidecar_of(self.path)) as ids, replacing(self.path) as part:
            matrix = np.lib.format.open_memmap(part, mode="w+", dtype="<f4", shape=(rows, dimensions))
            at = 0
            for block in write_sidecar(ids, identity, blocks):
                matrix[at : at + len(block.vectors)] = block.vectors
                at += len(block.vectors)
            matrix.flush()
            del matrix


def read_vectors(file: Path) -> Vectors:
    """A table of vectors as numpy saves it, each row scaled to length 1."""
    read = mapped_array(file)
    if read.ndim != 2 or read.dtype.kind != "f" or not len(read):
        raise InputError("is not a table of floating-point vectors", file=file, remedy="one row for each vector")
    norms = np.linalg.norm(read, axis=1, keepdims=True)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise InputError("has rows of zeros, NaN or infinity", file=file)
    return np.asarray(read / norms, dtype=np.float32)
