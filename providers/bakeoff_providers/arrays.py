"""Arrays from untrusted files: a damaged header may raise anything or request too much memory."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff_providers.errors import InputError


def map_array(file: Path) -> np.ndarray[Any, Any]:
    """A memory-mapped .npy file, which takes no more memory than its size."""
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it holds several arrays")
    except FileNotFoundError:
        raise InputError("no such file", file=file, remedy="check the path") from None
    except Exception as error:  # the header is parsed as Python
        problem = f"unreadable: not an array that numpy saved ({_line(error)})"
        raise InputError(problem, file=file, remedy="write it with numpy.save") from None
    return array


def read_vectors(file: Path) -> np.ndarray[Any, Any]:
    """A matrix of vectors saved by numpy."""
    read = map_array(file)
    if read.ndim != 2 or read.dtype.kind != "f" or not len(read):
        raise InputError("is not a table of floating-point vectors", file=file, remedy="one row for each vector")
    norms = np.linalg.norm(read, axis=1)
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise InputError("has rows of zeros, NaN or infinity", file=file)
    return np.asarray(read, dtype=np.float32)


def arrays_in(data: bytes, count: int) -> list[np.ndarray[Any, Any]]:
    """A number of arrays written by numpy.save, one after the other; ValueError if they are not."""
    stream = io.BytesIO(data)
    try:
        return [_next_array(stream) for _ in range(count)]
    except Exception as error:
        raise ValueError(_line(error)) from None


def _next_array(stream: io.BytesIO) -> np.ndarray[Any, Any]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(stream)
    if kind.hasobject:
        raise ValueError("it holds Python objects")
    raw = stream.read(math.prod(shape) * kind.itemsize)
    return np.frombuffer(raw, dtype=kind).reshape(shape, order="F" if fortran else "C")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
