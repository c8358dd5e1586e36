"""Very many contenders: time and memory of the verdict, each size in a process of its own: python bench/contenders.py

Scores are made up: queries of different hardness, contenders whose true means lie close together. Time is CPU time,
memory the peak beyond what importing takes. Exits 1 where 300 contenders × 1,000 queries take more than 10 s, or where
memory grows faster than the number of contenders (with half as much again for what is fixed).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from own_process import peak_mb, printed

SIZES, QUERIES, SECONDS = (75, 150, 300), 1000, 10.0


def measure(contenders: int, queries: int) -> dict[str, float]:
    """`decide`, as a run does it for the measure that decides."""
    import numpy as np
    from bakeoff.evaluation.measures import Measure
    from bakeoff.results.schema import Row, Value
    from bakeoff.results.verdict import VerdictQuestion, decide
    from bakeoff.statistics.averaging import PerQuery

    rng = np.random.default_rng(42)
    hardness = rng.uniform(0, 0.8, (queries, 1))
    means = np.linspace(0, 0.15, contenders)
    table = np.clip(hardness + rng.normal(0, 0.15, (queries, contenders)) + means, 0, 1)
    scores = {f"contender {at}": np.ascontiguousarray(table[:, at]) for at in range(contenders)}
    ndcg = Measure.parse("ndcg@10")
    rows = [
        Row(label=label, row_type="dense", measures={str(ndcg): Value(mean=float(values.mean()), low=0.0, high=1.0)})
        for label, values in scores.items()
    ]
    two = dict(list(scores.items())[:2])
    question = VerdictQuestion(ndcg, PerQuery(42))
    decide({ndcg: two}, rows[:2], question)  # imports
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak counts from here
    before, start = peak_mb(), time.process_time()
    verdict = decide({ndcg: scores}, rows, question)
    return {
        "seconds": time.process_time() - start,
        "mb": peak_mb() - before,
        "pairs": len(verdict.pairs),
        "set": len(verdict.best_set),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--contenders", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(options.side, options.queries)))
        return 0
    print(f"{options.queries:,} queries; load {os.getloadavg()[0]:.1f}")
    figures = {}
    for size in options.contenders:
        took = printed("contenders.py", "--side", str(size), "--queries", str(options.queries), OMP_NUM_THREADS="1")
        figures[size] = took
        print(
            f"  {size:4d} contenders, {size * (size - 1) // 2:6,d} pairs: verdict {took['seconds']:6.2f} s of CPU, "
            f"{took['mb']:6.1f} MB more; {took['pairs']:,} intervals, {took['set']} may be best"
        )
    small, large = min(figures), max(figures)
    grown, allowed = figures[large]["mb"] / figures[small]["mb"], 1.5 * large / small
    print(f"  memory {small} → {large} contenders: {grown:.1f} × (goal ≤ {allowed:.1f})")
    print(f"  verdict: {figures[large]['seconds']:.1f} s (goal ≤ {SECONDS:g})")
    return int(figures[large]["seconds"] > SECONDS or grown > allowed)


if __name__ == "__main__":
    sys.exit(main())
