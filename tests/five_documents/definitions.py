"""The documents' measures of one ranking, in plain lines that share nothing with ours; and ours by the public API."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import bakeoff
import numpy as np

CUTS = (1, 3, 5, 10)


def precision_at_k(ranking: Sequence[str], relevant: set[str], k: int) -> float:
    """Relevant ones among the first k, by k."""
    return sum(item in relevant for item in ranking[:k]) / k


def recall_at_k(ranking: Sequence[str], relevant: set[str], k: int) -> float:
    """Relevant ones among the first k, by all relevant ones."""
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: set[str], k: int) -> float:
    """Of the first relevant one among the first k."""
    return next((1 / rank for rank, item in enumerate(ranking[:k], 1) if item in relevant), 0.0)


def mean_precision_at_hits(ranking: Sequence[str], relevant: set[str], k: int) -> float:
    """The mean over the hits that there are."""
    places = [rank for rank, item in enumerate(ranking[:k], 1) if item in relevant]
    return float(np.mean([hits / rank for hits, rank in enumerate(places, 1)])) if places else 0.0


def ndcg_at_k(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Gains discounted by log2(rank + 1), by those of the best order."""
    best = _dcg(sorted(gains.values(), reverse=True)[:k])
    return _dcg([gains.get(item, 0.0) for item in ranking[:k]]) / best if best else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def cosines(file: Path) -> Any:
    """Of all rows of an array with all."""
    vectors = np.load(file).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def ours(measure: str, ranking: Sequence[str], grades: Mapping[str, int], rel: int = 1) -> float:
    """The figure that `bakeoff.score` gives one ranking."""
    run = {"q": {item: float(-place) for place, item in enumerate(ranking)}}
    scored = bakeoff.score({"q": dict(grades)}, {"model": run}, [measure], rel=rel)
    return scored.mean("model", scored.measures[0])


def random_rankings(seed: int) -> Iterator[tuple[np.random.Generator, list[str], int]]:
    """Thirty orders of twenty items, cut somewhere, each with a k."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        yield rng, [f"d{item}" for item in rng.permutation(20)][: rng.integers(3, 21)], int(rng.integers(1, 12))
