"""One side of a comparison in a process of its own, so that neither pays for the other's imports or memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SCRIPT = """
import importlib, json, sys, time
from pathlib import Path
from own_process import peak_mb
for preloaded in sys.argv[4:]: importlib.import_module(preloaded)
side = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
before = peak_mb()
start = time.perf_counter()
figures = side(Path(sys.argv[3]))
seconds = time.perf_counter() - start
peak = peak_mb()
print(json.dumps([figures, seconds, peak, peak - before]))
"""


class Measured(NamedTuple):
    """What a side answered, how long it took, and its peak memory: whole, and above what its imports need."""

    figures: Any
    seconds: float
    peak_mb: float
    added_mb: float


def measured(script: str, side: str, folder: Path, *preloaded: str) -> Measured:
    """Runs one function of a script beside this one; what is preloaded does not count as added memory."""
    return Measured(*printed("-c", SCRIPT, Path(script).stem, side, str(folder), *preloaded))


def printed(*arguments: str, **environment: str) -> Any:
    """What Python prints last when it is started with these arguments beside this file: one line of JSON."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment}, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def peak_mb() -> float:
    """The most memory that this process has had, in MB: ru_maxrss would begin with what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
