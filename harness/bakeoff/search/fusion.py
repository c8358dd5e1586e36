"""Several rankings made one, by ranks or by scores, and weights that are chosen without looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest
from numpy.typing import NDArray

from bakeoff.core.ranking import Ranking, ordered

if TYPE_CHECKING:
    from bakeoff.statistics.averaging import Averaging

RRF_DIGITS = 12  # sums of the same terms in another order differ beyond this, and would decide ties by chance
GRID = 10  # weights are tried in tenths
FOLDS = 5

MethodName = Literal["rrf", "min_max", "z_score", "dbsf"]
FusionWeights = tuple[float, ...]
Normalise = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]  # and what an absent document has
Method = Callable[[Sequence[Ranking], Sequence[float], "Fusion"], Ranking]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Which rankings, how much each counts, how steeply ranks fall, and how deep each is read (None: wholly)."""

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
    """RRF(d) = Σ w / (c + rank of d), ranks from 1. A ranking adds 0 that lacks d, filled up with it, or cut it off."""
    scores: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, document in enumerate(ranking.found[:top_n], start=1):
            scores[document] = scores.get(document, 0.0) + weight / (c + rank)
    return ordered((document, round(score, RRF_DIGITS)) for document, score in scores.items())


def fuse(rankings: Sequence[Ranking], fusion: Fusion, weights: Sequence[float] | None = None) -> Ranking:
    """One ranking by the fusion's method; other weights than its own may be tried."""
    return METHODS[fusion.method](rankings, weights or fusion.weights, fusion)


def _by_ranks(rankings: Sequence[Ranking], weights: Sequence[float], fusion: Fusion) -> Ranking:
    return fuse_by_rrf(rankings, weights, fusion.c, fusion.top_n)


def _by_scores(normalise: Normalise) -> Method:
    """A weighted sum of normalised scores; what a ranking was filled up with has none, and moves no scale."""

    def fuse_scores(rankings: Sequence[Ranking], weights: Sequence[float], fusion: Fusion) -> Ranking:
        scores: dict[str, float] = {document: 0.0 for ranking in rankings for document in ranking.found[: fusion.top_n]}
        for ranking, weight in zip(rankings, weights, strict=True):
            ids = ranking.found[: fusion.top_n]
            values, absent = normalise(np.array(ranking.scores[: len(ids)], dtype=np.float64))
            held = dict(zip(ids, values.tolist(), strict=True))
            for document in scores:
                scores[document] += weight * held.get(document, absent)
        return ordered((document, round(score, RRF_DIGITS)) for document, score in scores.items())

    return fuse_scores


def _min_max(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """0 for the lowest, 1 for the highest; where all are equal, 1. What a ranking lacks has 0."""
    if not len(scores) or scores.max() == scores.min():
        return np.ones(len(scores)), 0.0
    return (scores - scores.min()) / (scores.max() - scores.min()), 0.0


def _z_score(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Standard deviations from the mean. What a ranking lacks has its lowest: 0 would put it above half of it."""
    if not len(scores) or scores.max() == scores.min():
        return np.zeros(len(scores)), 0.0
    values = (scores - scores.mean()) / scores.std()
    return values, float(values.min())


def _dbsf(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Distribution-based, as in Qdrant: 0 and 1 are three standard deviations from the mean; one score is 0.5."""
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


def tune(
    scores: Mapping[FusionWeights, NDArray[np.float64]], averaging: Averaging, seed: int, folds: int = FOLDS
) -> Tuned:
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
        best = _best(table, averaging, ~inside)
        chosen.append(choices[best])
        held_out[inside] = table[best, inside]
    overall = _best(table, averaging)
    return Tuned(choices[overall], tuple(chosen), held_out, averaging.mean(table[overall]))


def _best(table: NDArray[np.float64], averaging: Averaging, where: NDArray[np.bool_] | None = None) -> int:
    """The first of the best means; rounding must not choose."""
    return int(np.argmax(np.round([averaging.mean(values, where) for values in table], 12)))
