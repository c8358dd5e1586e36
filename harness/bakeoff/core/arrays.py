"""Array types shared by the packages."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]  # one number per query, or a table of them
Grades = NDArray[np.int32]  # a row per query, a grade per place


def our_errstate() -> AbstractContextManager[None]:
    """numpy's own defaults for floating-point errors, whatever a plug-in has set."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
