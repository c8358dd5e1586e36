"""Array types shared by the packages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]  # one number per query, or a table of them
Grades = NDArray[np.int32]  # a row per query, a grade per place
