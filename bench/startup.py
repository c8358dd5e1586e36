"""How long commands take before they do anything, as multiples of a bare Python: python bench/startup.py

The processor's time of each process, the least of several runs, so that other work on the machine counts little.
`show` is given the reference result, `validate` the built-in task of 25 documents.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 5
GOALS = {"--help": 8.0, "list": 12.0, "show results/reference": 12.0, "validate wikipedia": 40.0}


def main() -> None:
    bare = least([sys.executable, "-c", "pass"])
    print(f"bare Python {1000 * bare:.0f} ms")
    missed = 0
    for command, goal in GOALS.items():
        times = least([sys.executable, "-m", "bakeoff", *command.split()]) / bare
        missed += times > goal
        print(f"bakeoff {command:<24} {times:5.1f} × (goal {goal:g} ×){'' if times <= goal else '  MISSED'}")
    sys.exit(missed > 0)


def least(command: list[str]) -> float:
    """Seconds of the processor that one process takes, children included."""
    return min(_seconds(command) for _ in range(RUNS))


def _seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=os.environ | threads)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
