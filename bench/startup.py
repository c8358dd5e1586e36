"""How long commands take before they do anything, as multiples of a bare Python: python bench/startup.py

The processor's time of each process, the least of several runs, so that other work on the machine counts little. The
commands take turns, so that all share the machine's quiet moments. Each is run once before: modules are compiled then,
as pip does when it installs. `show` is given the reference result, `validate` the built-in task of 25 documents.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 7
GOALS = {"--help": 8.0, "list": 12.0, "show results/reference": 12.0, "validate wikipedia": 40.0}


def main() -> None:
    bare = [sys.executable, "-c", "pass"]
    commands = {command: [sys.executable, "-m", "bakeoff", *command.split()] for command in GOALS}
    with tempfile.TemporaryDirectory() as compiled:
        settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        settings |= {"PYTHONPYCACHEPREFIX": compiled, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        rounds = [[_seconds(command, settings) for command in (bare, *commands.values())] for _ in range(1 + RUNS)]
    least = [min(times) for times in zip(*rounds[1:], strict=True)]
    print(f"bare Python {1000 * least[0]:.0f} ms")
    missed = 0
    for (command, goal), seconds in zip(GOALS.items(), least[1:], strict=True):
        times = seconds / least[0]
        missed += times > goal
        print(f"bakeoff {command:<24} {times:5.1f} × (goal {goal:g} ×){'' if times <= goal else '  MISSED'}")
    sys.exit(missed > 0)


def _seconds(command: list[str], settings: dict[str, str]) -> float:
    """Seconds of the processor that one process takes, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=settings)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
