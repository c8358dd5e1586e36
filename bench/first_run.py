"""How long `make run` takes after set-up, with nothing in the vector cache: python bench/first_run.py

The built-in line-up from the start of the command to its end (results, page and charts included), on the clock, as a
user waits for it. The weights are those that set-up fetched; everything else that is kept starts empty. Needs
`bakeoff models pull minilm granite use`. Exits 1 beyond the goal, which is for two quiet cores.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bakeoff_providers.weights import home

ROOT = Path(__file__).parent.parent
GOAL = 180  # seconds
WANTED = {f"{model}+{store}" for model in ("granite", "use", "minilm", "wordllama") for store in ("faiss", "chroma")}


def main() -> int:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bakeoff-first-") as folder:
        own = Path(folder) / "home"
        own.mkdir()
        (own / "models").symlink_to(home() / "models")
        results = Path(folder) / "results"
        command = [sys.executable, "-m", "bakeoff", "run", "--out", str(results)]
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "BAKEOFF_HOME": str(own)}, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - start
        ran = {
            row["label"]
            for file in results.glob("*/metrics_summary.json")
            for row in json.loads(file.read_text())["rows"]
        }
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"`bakeoff run` with an empty vector cache: {seconds:.0f} s (goal {GOAL} s), load {load:.1f} before it")
    print(f"  processor time {used.ru_utime + used.ru_stime:.0f} s on {os.cpu_count()} cores")
    if lost := WANTED - ran:
        print(f"not run: {', '.join(sorted(lost))}", done.stderr, sep="\n")
    return int(bool(done.returncode or lost) or seconds > GOAL)


if __name__ == "__main__":
    sys.exit(main())
