"""How often 95% intervals cover the mean they are of, on data of known truth: python bench/intervals.py

Prints a table of docs/: Student's interval, the BCa bootstrap, and what Bakeoff prints: for a mean the
exact interval of Learned-Miller and Thomas, for a difference Student's with a guard against rare failures. `w` is the
mean width.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.statistics.guarded import guard_differences
from bakeoff.statistics.intervals import bca_intervals
from bakeoff.statistics.small_samples import mean_intervals
from scipy import stats

Draw = Callable[[np.random.Generator, tuple[int, int]], Values]


def mostly(share: float, common: float, rest: Draw) -> Draw:
    return lambda rng, size: np.where(rng.random(size) < share, common, rest(rng, size))


def even(rng: np.random.Generator, size: tuple[int, int]) -> Values:
    return rng.random(size)


def constant(value: float) -> Draw:
    return lambda _, size: np.full(size, value)


MEANS: dict[str, tuple[Draw, float]] = {
    "80% are 1, rest even": (mostly(0.8, 1.0, even), 0.9),
    "95% are 1, rest 0": (mostly(0.95, 1.0, constant(0.0)), 0.95),
    "90% are 0, rest even": (mostly(0.9, 0.0, even), 0.05),
    "precision@5, mean 0.4": (lambda rng, size: rng.binomial(5, 0.4, size) / 5, 0.4),
    "even over 0 to 1": (even, 0.5),
}
DIFFERENCES: dict[str, tuple[Draw, float]] = {
    "80% tie, rest N(0.1, 0.3)": (mostly(0.8, 0.0, lambda rng, size: rng.normal(0.1, 0.3, size)), 0.02),
    "95% −0.02, 5% +0.38": (mostly(0.95, -0.02, constant(0.38)), 0.0),
    "even minus even": (lambda rng, size: rng.random(size) - rng.random(size), 0.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1000, help="data sets for each line")
    sets = parser.parse_args().sets
    rng = np.random.default_rng(0)
    print("| values | n | Student | BCa | printed |\n|---|---|---|---|---|")
    for name, (draw, truth) in (MEANS | DIFFERENCES).items():
        for n in (10, 20, 40, 100, 300):
            data = draw(rng, (n, sets))
            half = stats.t.ppf(0.975, n - 1) * data.std(axis=0, ddof=1) / n**0.5
            student = data.mean(axis=0) - half, data.mean(axis=0) + half
            bca = bca_intervals(data, resamples=2000)
            cells = [covered(interval, truth) for interval in (student, bca, printed(name, data))]
            print(f"| {name} | {n} | {' | '.join(cells)} |", flush=True)


def printed(name: str, data: Values) -> tuple[Values, Values]:
    """The interval that a result holds."""
    if name in MEANS:
        return mean_intervals(data, resamples=2000)
    sets = data.shape[1]
    table = np.concatenate((data, np.zeros((len(data), 1))), axis=1)
    ends = guard_differences(table, [(at, sets) for at in range(sets)])
    return ends.low, ends.high


def covered(interval: tuple[Values, Values], truth: float) -> str:
    low, high = interval
    share = np.mean((low <= truth + 1e-12) & (high >= truth - 1e-12))
    return f"{share:.3f} (w {np.mean(high - low):.3f})"


if __name__ == "__main__":
    main()
