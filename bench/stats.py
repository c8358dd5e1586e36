"""The sign-flip test of all pairs against ranx's Fisher test: same data, same process, in turns, targets enforced.

    python bench/stats.py [--contenders 10] [--queries 1000] [--flips 100000] [--rounds 5] [--full]

ranx takes minutes for the whole job, so it is given a share of it (one pair, a tenth of the flips) and its time is
scaled up; `--full` gives it all pairs and all flips once. Needs `pip install -e '.[peers]'`. Exits 1 if the target is
missed or p differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.statistics.compare import compare
from bakeoff.statistics.tests import sign_flip_tests

TARGET = 300


def timed(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contenders", type=int, default=10)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--flips", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="give ranx the whole job")
    options = parser.parse_args()
    try:
        from ranx.statistical_tests.fisher_randomization_test import fisher_randomization_test
    except ImportError as missing:
        parser.exit(2, f"{missing.name} is missing: pip install -e '.[peers]'\n")

    rng = np.random.default_rng(42)
    hardness = rng.uniform(0, 0.8, size=(options.queries, 1))
    noise = rng.normal(0, 0.15, size=(options.queries, options.contenders))
    table = np.clip(hardness + noise + np.linspace(0, 0.03, options.contenders), 0, 1)
    pairs = list(combinations(range(options.contenders), 2))
    share = options.flips if options.full else max(options.flips // 10, 1)

    def ranx(pair: tuple[int, int]) -> float:
        control, treatment = table[:, pair[0]].copy(), table[:, pair[1]].copy()
        return float(fisher_randomization_test(control, treatment, share, 0.05, 42)[0])

    def ours() -> list[float]:
        return list(sign_flip_tests(table, pairs, flips=options.flips))

    print(f"{len(pairs)} pairs of {options.contenders} contenders × {options.queries} queries × {options.flips} flips")
    print(f"  load {os.getloadavg()[0]:.1f}")
    ranx(pairs[0])  # compiles
    mine, theirs, whole = float("inf"), float("inf"), float("inf")
    for turn in range(options.rounds):
        mine = min(mine, timed(ours))
        if not options.full:
            scale = len(pairs) * options.flips / share
            theirs = min(theirs, scale * timed(partial(ranx, pairs[turn % len(pairs)])))
    if options.full:
        theirs = timed(lambda: [ranx(pair) for pair in pairs])
    columns = {f"contender {at}": table[:, at] for at in range(options.contenders)}
    whole = min(timed(lambda: compare(columns)) for _ in range(2))

    checked = pairs[:: max(len(pairs) // 6, 1)]
    p, worst = dict(zip(pairs, ours(), strict=True)), 0.0
    for pair in checked:
        other = ranx(pair)
        error = np.sqrt(max(p[pair] * (1 - p[pair]), 1e-4) * (1 / share + 1 / options.flips))
        worst = max(worst, float(abs(p[pair] - other) / error))

    how = (
        "all of it"
        if options.full
        else f"measured on one pair × {share} flips, × {len(pairs)} × {options.flips // share}"
    )
    print(f"  ranx, Fisher            {theirs:>10.2f} s   ({how})")
    print(f"  bakeoff, sign flips     {mine:>10.3f} s")
    print(f"  bakeoff, whole compare  {whole:>10.3f} s   (guarded intervals and p, t, Wilcoxon, Holm)")
    failed = theirs / mine < TARGET or worst > 5
    print(f"\n  ratio {theirs / mine:.0f}×, target {TARGET}×", "MISSED" * (theirs / mine < TARGET))
    print(
        f"  p of {len(checked)} pairs: at most {worst:.1f} standard errors of sampling apart", "DIFFERS" * (worst > 5)
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
