"""Several rankings made one: weighted reciprocal rank fusion, and weights that are chosen without looking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.ranking import Ranking, ordered

RRF_DIGITS = 12  # sums of the same terms in another order differ beyond this, and would decide ties by chance
GRID = 10  # weights are tried in tenths
FOLDS = 5

FusionWeights = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Which rankings, how much each counts, how steeply ranks fall, and how deep each is read (None: wholly)."""

    of: tuple[str, ...]
    weights: FusionWeights
    c: float = 60.0
    top_n: int | None = None

    def __post_init__(self) -> None:
        if len(self.of) < 2 or len(set(self.of)) < len(self.of):
            raise InputError("a fusion needs two or more different contenders", place="of")
        if len(self.weights) != len(self.of):
            raise InputError(
                f"{len(self.weights)} weights for {len(self.of)} contenders", place="weights", remedy="give one each"
            )
        if not all(np.isfinite(weight) and weight >= 0 for weight in self.weights) or not any(self.weights):
            raise InputError("weights are 0 or more, and not all 0", place="weights")
        if not (np.isfinite(self.c) and self.c >= 0):
            raise InputError(f"c is {self.c}", place="c", remedy="give 0 or more; 60 is customary")
        if self.top_n is not None and self.top_n < 1:
            raise InputError(f"top_n is {self.top_n}", place="top_n", remedy="give 1 or more, or leave it out")


def weighted_rrf(
    rankings: Sequence[Ranking], weights: Sequence[float], c: float = 60.0, top_n: int | None = None
) -> Ranking:
    """RRF(d) = Σ w / (c + rank of d), ranks from 1. A ranking that lacks d, or has it below top_n, adds 0."""
    scores: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, document in enumerate(ranking.ids[:top_n], start=1):
            scores[document] = scores.get(document, 0.0) + weight / (c + rank)
    return ordered((document, round(score, RRF_DIGITS)) for document, score in scores.items())


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found. Only `out_of_fold` may be quoted: `in_sample` is what the weights were chosen to reach."""

    weights: FusionWeights
    fold_weights: tuple[FusionWeights, ...]
    out_of_fold: NDArray[np.float64]
    in_sample: float


def grid(parts: int, steps: int = GRID) -> Iterator[FusionWeights]:
    """Every way to share 1 among the parts in steps: all corners, edges and the inside of the simplex."""
    for bars in combinations(range(steps + parts - 1), parts - 1):
        edges = (-1, *bars, steps + parts - 1)
        yield tuple((edges[at + 1] - edges[at] - 1) / steps for at in range(parts))


def tune(scores: Mapping[FusionWeights, NDArray[np.float64]], seed: int, folds: int = FOLDS) -> Tuned:
    """Chooses weights by cross-validation over queries: each query is scored with weights chosen without it.

    `scores` has every query's value under each choice. Among equally good choices the most even one is taken.
    """
    choices = sorted(scores, key=lambda weights: (round(sum(weight**2 for weight in weights), 9), weights))
    table = np.stack([scores[weights] for weights in choices])
    n = table.shape[1]
    if n < 2:
        raise InputError("weights can't be tuned on a single query", remedy="give the task more queries")
    fold = np.empty(n, dtype=np.int64)
    fold[np.random.default_rng(seed).permutation(n)] = np.arange(n) % min(folds, n)
    held_out, chosen = np.empty(n), []
    for number in range(min(folds, n)):
        inside = fold == number
        best = _best(table[:, ~inside])
        chosen.append(choices[best])
        held_out[inside] = table[best, inside]
    overall = _best(table)
    return Tuned(choices[overall], tuple(chosen), held_out, float(table[overall].mean()))


def _best(table: NDArray[np.float64]) -> int:
    """The first of the best means; rounding must not choose."""
    return int(np.argmax(np.round(table.mean(axis=1), 12)))
