"""A short part of `make chaos`: damaged caches, and fuzzed inputs for every parser, option and result file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHORT = "--only corruptions --corruptions 60 --only fuzz --fuzz 80 --jobs 1 --seed 2026"


def test_nothing_gets_through() -> None:
    path = os.pathsep.join([str(ROOT / "bench"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    attacked = subprocess.run(
        [sys.executable, "-m", "chaos", *SHORT.split()],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert attacked.returncode == 0, attacked.stdout + attacked.stderr[-2000:]
    assert "wrong vectors, 60 corrupted caches" in attacked.stdout
    assert "tracebacks, 80 fuzzed inputs" in attacked.stdout
    assert "nothing missed" in attacked.stdout
