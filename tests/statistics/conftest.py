"""The simulated worlds of bench/simulate, for tests to import as `simulate`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "bench"))
