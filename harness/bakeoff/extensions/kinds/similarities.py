"""Similarities of pairs: drawn from a corpus, or given with the similarity that each should have."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role, Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search.hits import SIMILARITY_DIGITS
from bakeoff.systems.base import CorpusVectors, System
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.tasks.formats.cells import id_of
from bakeoff.tasks.formats.tables import read_table

PAIR_BLOCK = 2048  # pairs whose vectors are held at once


@dataclass(frozen=True, slots=True)
class TargetPairs:
    """Pairs with target similarities: `first` and `second` are places in `names`, which are document ids or texts."""

    names: list[str]
    by_id: bool
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    targets: Values


def read_target_pairs(file: Path, documents: Container[str]) -> TargetPairs:
    """A table whose first three columns are the pair and its target, whatever they are called."""
    table, names, places = read_table(file), dict[str, int](), list[str]()
    pairs: list[tuple[int, int]] = []
    targets: list[float] = []
    for place, row in table.rows:
        columns = list(row)
        if len(columns) < 3 or _number(columns[2]) is not None:
            raise InputError(
                "the columns are not two of a pair and its target" if len(columns) < 3 else "the columns have no names",
                file=file,
                place=place if len(columns) < 3 else "line 1",
                remedy="name three columns, for example a, b, target",
            )
        target = _number(row[columns[2]])
        if target is None:
            raise InputError(f"the target {row[columns[2]]!r} is not a number", file=file, place=place)
        pair = [id_of(row, column, table, place) for column in columns[:2]]
        for name in pair:
            if name not in names:
                names[name] = len(names)
                places.append(place)
        pairs.append((names[pair[0]], names[pair[1]]))
        targets.append(target)
    if len(pairs) < 2:
        raise InputError("has fewer than two pairs", file=file, remedy="a correlation needs at least two")
    unknown = [name for name in names if name not in documents]
    if unknown and len(unknown) < len(names):
        raise InputError(
            f"{unknown[0]!r} is not a document, though others are",
            file=file,
            place=places[names[unknown[0]]],
            remedy="give ids of documents throughout, or texts throughout",
        )
    first, second = np.array(pairs, dtype=np.int64).T
    return TargetPairs(list(names), not unknown, first, second, np.array(targets))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


def sampled_pairs(n: int, pairs: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of different rows: all of them if they are few, else drawn with replacement."""
    if n * (n - 1) // 2 <= pairs:
        first, second = np.triu_indices(n, 1)
        return first.astype(np.int64), second.astype(np.int64)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, size=pairs)
    return first, (first + rng.integers(1, n, size=pairs)) % n


def pair_similarities(vectors: Vectors | VectorRows, first: NDArray[np.int64], second: NDArray[np.int64]) -> Values:
    """The inner products of these rows, a block of pairs at a time: never a matrix of all against all."""
    similarities = np.empty(len(first))
    for start in range(0, len(first), PAIR_BLOCK):
        rows = slice(start, start + PAIR_BLOCK)
        similarities[rows] = np.einsum("ij,ij->i", vectors[first[rows]], vectors[second[rows]])
    return np.round(similarities, SIMILARITY_DIGITS)


def spearman(a: Values, b: Values) -> float | None:
    """Rank correlation with ties at their mean rank; unknown where one side is all ties."""
    from scipy.stats import rankdata

    x, y = rankdata(a), rankdata(b)
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm else None


def correlation(pairs: TargetPairs, contender: System, vectors: CorpusVectors) -> float | str | None:
    """Spearman's ρ, or why there is none."""
    if not isinstance(contender, EmbeddingRow):
        return "has no vectors"
    if not pairs.by_id:
        if PROVIDERS.get(contender.provider).by_id:
            return "its vectors are known by id, and the pairs are texts"
        embedded = vectors.embedder(contender).embed(pairs.names, Role.DOCUMENT)
        return spearman(pair_similarities(embedded, pairs.first, pairs.second), pairs.targets)
    index = vectors.index(contender)
    rows = [index.row_of(name) for name in pairs.names]
    if None in rows:
        return "its documents are cut into chunks, and have no vector of their own"
    places = np.array(rows, dtype=np.int64)
    similarities = pair_similarities(vectors.of(contender).vectors, places[pairs.first], places[pairs.second])
    return spearman(similarities, pairs.targets)
