"""One side of a comparison in a process of its own, so that neither pays for the other's imports or memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SCRIPT = """
import importlib, json, resource, sys, time
from pathlib import Path
for preloaded in sys.argv[4:]: importlib.import_module(preloaded)
side = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
figures = side(Path(sys.argv[3]))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([figures, seconds, peak / 1024, (peak - before) / 1024]))
"""


class Measured(NamedTuple):
    """What a side answered, how long it took, and its peak memory: whole, and above what its imports need."""

    figures: Any
    seconds: float
    peak_mb: float
    added_mb: float


def measured(script: str, side: str, folder: Path, *preloaded: str) -> Measured:
    """Runs one function of a script beside this one; what is preloaded does not count as added memory."""
    command = [sys.executable, "-c", SCRIPT, Path(script).stem, side, str(folder), *preloaded]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    return Measured(*json.loads(done.stdout.splitlines()[-1]))
