"""`bakeoff score` on a large run against trec_eval's C: python bench/score.py

6,980 queries × 1,000 documents, seven million lines, as MS MARCO's runs are. The peer is the trec_eval binary where it
is on the PATH, else pytrec_eval, the same C under a Python that reads line by line. The processor's time counts, of all
threads, on both sides from start to end, reading included, the least of three runs; the time on the clock is printed
beside it. The goals: the same figures, at most a third of trec_eval's time, and a peak of at most 1 GB.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

QUERIES, DEPTH, DOCUMENTS = 6980, 1000, 8_800_000
MOST_OF_THEIRS, MOST_MB, RUNS = 1 / 3, 1000, 3
MEASURES = {"ndcg_cut.10": "ndcg@10", "map": "map", "recip_rank": "mrr", "P.10": "p@10", "recall.100": "recall@100"}
PEER = """
import sys, pytrec_eval
judged, run = pytrec_eval.parse_qrel(open(sys.argv[1])), pytrec_eval.parse_run(open(sys.argv[2]))
values = pytrec_eval.RelevanceEvaluator(judged, set(sys.argv[3].split())).evaluate(run)
for name in sys.argv[3].split():
    print(name, "all", sum(v[name.replace(".", "_")] for v in values.values()) / len(judged))
"""


def make(folder: Path) -> None:
    """Scores fall as they do in a run; a handful of each query's documents are relevant, near the top."""
    rng = np.random.default_rng(42)
    with (folder / "large.trec").open("w") as run, (folder / "large.qrels").open("w") as qrels:
        for query in range(QUERIES):
            documents = rng.integers(0, DOCUMENTS, 2 * DEPTH)
            documents = documents[np.sort(np.unique(documents, return_index=True)[1])][:DEPTH].tolist()
            scores = np.sort(rng.gamma(4, 5, DEPTH))[::-1].tolist()
            name = 100_000 + query
            run.writelines(
                f"{name} Q0 {document} {rank} {score:.6f} run\n"
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)
            )
            chosen = {documents[min(int(place), DEPTH - 1)] for place in rng.exponential(30, 3)}
            qrels.writelines(f"{name} 0 {document} 1\n" for document in sorted(chosen))


def main() -> None:
    binary = shutil.which("trec_eval")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        files = [str(folder / "large.qrels"), str(folder / "large.trec")]
        size = (folder / "large.trec").stat().st_size / 1e6
        print(f"{QUERIES * DEPTH:,} lines, {size:.0f} MB")
        ours = [sys.executable, "-m", "bakeoff", "score", *files, "--format", "csv", "--precision", "single"]
        ours += [word for spelling in MEASURES.values() for word in ("-m", spelling)]
        theirs = [binary, "-c", *(f"-m{name}" for name in MEASURES), *files] if binary else [
            sys.executable, "-c", PEER, *files, " ".join(MEASURES)]  # fmt: skip
        settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        settings["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        timed(ours, settings)  # modules are compiled now, as pip does when it installs
        mine = min((timed(ours, settings) for _ in range(RUNS)), key=lambda run: run.seconds)
        other = min((timed(theirs, settings) for _ in range(RUNS)), key=lambda run: run.seconds)
    for label, run in {"trec_eval" if binary else "pytrec_eval": other, "bakeoff score": mine}.items():
        print(f"{label:<14} {run.seconds:5.2f} s of the processor, {run.wall:5.2f} s on the clock")
    expected = {line.split()[0].replace("_", "."): float(line.split()[2]) for line in other.printed.splitlines()}
    figures = {row.split(",")[1]: float(row.split(",")[3]) for row in mine.printed.splitlines()[1:]}
    worst = max(abs(figures[spelling] - expected[name.replace("_", ".")]) for name, spelling in MEASURES.items())
    share = mine.seconds / other.seconds
    print(f"largest difference {worst:.1e}; {share:.2f} of its processor time, {mine.peak:.0f} MB")
    sys.exit(worst > 1e-4 or share > MOST_OF_THEIRS or mine.peak > MOST_MB)


class Timed(NamedTuple):
    """What a command printed, its processor seconds and those on the clock, and the largest child's peak so far, MB."""

    printed: str
    seconds: float
    wall: float
    peak: float


def timed(command: list[str], settings: dict[str, str]) -> Timed:
    """Ours runs first, so that the peak is ours."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=settings).stdout
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(printed, seconds, wall, after.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
