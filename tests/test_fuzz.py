"""A short part of `make chaos`: fuzzed inputs for every parser, option and result file give no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("seed", [2, 2026])
def test_no_input_gives_a_traceback(seed: int) -> None:
    path = os.pathsep.join([str(ROOT / "bench"), os.environ.get("PYTHONPATH", "")])
    fuzzed = subprocess.run(
        [sys.executable, "-m", "chaos.fuzz", "--count", "60", "--seed", str(seed)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert fuzzed.returncode == 0, fuzzed.stdout + fuzzed.stderr[-2000:]
    assert f"60 inputs, seed {seed}: 0 tracebacks" in fuzzed.stdout
