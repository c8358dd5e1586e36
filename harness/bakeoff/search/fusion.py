"""Rank and score fusion, and cross-validated weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest
from numpy.typing import NDArray

from bakeoff.core.ranking import Ranking, make_ranking

if TYPE_CHECKING:
    from bakeoff.statistics.averaging import Averaging

RRF_DIGITS = 12  # float addition is not associative; beyond this, ties would be broken by noise
GRID = 10  # weights are tried in tenths
FOLDS = 5

MethodName = Literal["rrf", "min_max", "z_score", "dbsf"]
FusionWeights = tuple[float, ...]
Normalise = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]  # and what an absent document has
Method = Callable[[Sequence[Ranking], Sequence[float], "Fusion"], Ranking]


@dataclass(frozen=True, slots=True)
class Fusion:
    """The rankings, their weights, the RRF constant `c`, and the depth read of each (None: all of it)."""

    of: tuple[str, ...]
    weights: FusionWeights
    c: float = 60.0
    top_n: int | None = None
    method: str = "rrf"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"there is no fusion by {self.method!r}", place="method", remedy=nearest(self.method, [*METHODS])
            )
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


def fuse_by_rrf(
    rankings: Sequence[Ranking], weights: Sequence[float], c: float = 60.0, top_n: int | None = None
) -> Ranking:
    """RRF(d) = Σ w / (c + rank of d), ranks from 1. Rankings that lack d, or have it only as padding, add 0."""
    scores: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, document in enumerate(ranking.found[:top_n], start=1):
            scores[document] = scores.get(document, 0.0) + weight / (c + rank)
    return make_ranking((document, round(score, RRF_DIGITS)) for document, score in scores.items())


def fuse(rankings: Sequence[Ranking], fusion: Fusion, weights: Sequence[float] | None = None) -> Ranking:
    """Fuse by the fusion's method; `weights` replaces its own."""
    return METHODS[fusion.method](rankings, weights or fusion.weights, fusion)


def _by_ranks(rankings: Sequence[Ranking], weights: Sequence[float], fusion: Fusion) -> Ranking:
    return fuse_by_rrf(rankings, weights, fusion.c, fusion.top_n)


def _by_scores(normalise: Normalise) -> Method:
    """A weighted sum of normalised scores. Padding has no score and does not affect the scale."""

    def fuse_scores(rankings: Sequence[Ranking], weights: Sequence[float], fusion: Fusion) -> Ranking:
        scores: dict[str, float] = {document: 0.0 for ranking in rankings for document in ranking.found[: fusion.top_n]}
        for ranking, weight in zip(rankings, weights, strict=True):
            ids = ranking.found[: fusion.top_n]
            values, absent = normalise(np.array(ranking.scores[: len(ids)], dtype=np.float64))
            held = dict(zip(ids, values.tolist(), strict=True))
            for document in scores:
                scores[document] += weight * held.get(document, absent)
        return make_ranking((document, round(score, RRF_DIGITS)) for document, score in scores.items())

    return fuse_scores


def _min_max(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Min-max scaling; all 1 where scores are equal. Absent documents get 0."""
    if not len(scores) or scores.max() == scores.min():
        return np.ones(len(scores)), 0.0
    return (scores - scores.min()) / (scores.max() - scores.min()), 0.0


def _z_score(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Z-scores. Absent documents get the lowest one, as 0 would rank them above half of the list."""
    if not len(scores) or scores.max() == scores.min():
        return np.zeros(len(scores)), 0.0
    values = (scores - scores.mean()) / scores.std()
    return values, float(values.min())


def _dbsf(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Distribution-based score fusion as in Qdrant: mean ± 3 standard deviations map to 0 and 1."""
    if len(scores) < 2 or scores.max() == scores.min():
        return np.full(len(scores), 0.5), 0.0
    deviation = scores.std(ddof=1)
    return (scores - (scores.mean() - 3 * deviation)) / (6 * deviation), 0.0


METHODS: dict[str, Method] = {
    "rrf": _by_ranks,
    "min_max": _by_scores(_min_max),
    "z_score": _by_scores(_z_score),
    "dbsf": _by_scores(_dbsf),
}


@dataclass(frozen=True, slots=True)
class Tuned:
    """Tuned weights. Quote `out_of_fold` only; `in_sample` is biased, as the weights maximise it."""

    weights: FusionWeights
    fold_weights: tuple[FusionWeights, ...]
    out_of_fold: NDArray[np.float64]
    in_sample: float


def grid(parts: int, steps: int = GRID) -> Iterator[FusionWeights]:
    """Every point of a grid on the simplex of weights, corners and edges included."""
    for bars in combinations(range(steps + parts - 1), parts - 1):
        edges = (-1, *bars, steps + parts - 1)
        yield tuple((edges[at + 1] - edges[at] - 1) / steps for at in range(parts))


def tune(
    scores: Mapping[FusionWeights, NDArray[np.float64]], averaging: Averaging, seed: int, folds: int = FOLDS
) -> Tuned:
    """Choose weights by cross-validation. Each query is scored with weights chosen without it and its cluster.

    `scores` has every query's value under each choice. Ties go to the most even weights.
    """
    choices = sorted(scores, key=lambda weights: (round(sum(weight**2 for weight in weights), 9), weights))
    table = np.stack([scores[weights] for weights in choices])
    units = averaging.number_units(table.shape[1])
    n = int(units.max()) + 1
    if n < 2:
        raise InputError("weights can't be tuned on a single query", remedy="give the task more queries")
    fold = (np.argsort(np.random.default_rng(seed).permutation(n)) % min(folds, n))[units]
    held_out, chosen = np.empty(len(fold)), []
    for number in range(min(folds, n)):
        inside = fold == number
        best = _best(table, averaging, ~inside)
        chosen.append(choices[best])
        held_out[inside] = table[best, inside]
    overall = _best(table, averaging)
    return Tuned(choices[overall], tuple(chosen), held_out, averaging.mean(table[overall]))


def _best(table: NDArray[np.float64], averaging: Averaging, where: NDArray[np.bool_] | None = None) -> int:
    """The first of the best means, compared after rounding."""
    return int(np.argmax(np.round([averaging.mean(values, where) for values in table], 12)))
