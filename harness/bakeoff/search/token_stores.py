"""Late interaction: where token vectors are kept and searched by MaxSim. `exact` is here; others are in extensions.

A document's score is the sum, over the query's tokens, of the best that its tokens match each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry
from numpy.typing import NDArray

from bakeoff.core.extensions import collect_entries
from bakeoff.core.filters import Where, conditions, passes
from bakeoff.embedding.token_rows import TokenRows
from bakeoff.search.brute_force import Similarities
from bakeoff.search.hits import Hits


def maxsim(query: Vectors, tokens: Vectors, begins: NDArray[np.integer]) -> Similarities:
    """The scores of documents whose token vectors follow one another, the first of each at `begins`."""
    if not len(begins):
        return np.empty(0, dtype=np.float32)
    best = np.maximum.reduceat(tokens @ query.T, begins, axis=0)
    scores: Similarities = best.sum(axis=1, dtype=np.float32)
    return scores


def maxsim_all(query: Vectors, rows: TokenRows) -> Similarities:
    """The score of every document, a block at a time."""
    return np.concatenate([maxsim(query, tokens, begins) for _, tokens, begins in rows.blocks()])


class TokenStore(Plugin, ABC):
    """Documents of many vectors each."""

    name: ClassVar[str]

    def __init__(self, *, folder: Path) -> None:
        self.folder = folder

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Nothing nearer can have been missed."""

    @abstractmethod
    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Takes all documents at once, and builds its index."""

    @abstractmethod
    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k best of those that pass the filter."""

    @abstractmethod
    def count(self) -> int:
        """How many documents the engine holds, by its own count."""

    @abstractmethod
    def size_bytes(self) -> int:
        """What the vectors and the index take."""

    def close(self) -> None:
        """Releases files."""


TOKEN_STORES: Registry[TokenStore] = Registry(
    "store of token vectors",
    "bakeoff.token_stores",
    {
        "exact": "bakeoff.search.token_stores:Exact",
        **collect_entries("TOKEN_STORES"),
    },
    given=("folder",),
)


class Exact(TokenStore):
    """Holds nothing of its own: the vectors are read where they were written."""

    name: ClassVar[str] = "exact"
    exact = True

    def __init__(self, *, folder: Path) -> None:
        super().__init__(folder=folder)
        self._ids: Sequence[str] = ()
        self._metadata: Sequence[Mapping[str, Any]] = ()
        self._rows: TokenRows | None = None

    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Remembers where they are."""
        self._ids, self._rows, self._metadata = ids, rows, metadata

    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """Compares with everything; a filter leaves out afterwards, and so loses nothing."""
        assert self._rows is not None
        scores = maxsim_all(query, self._rows)
        if where:
            filters = conditions(where)
            out = [row for row, fields in enumerate(self._metadata) if not passes(fields, filters)]
            scores[out] = -np.inf
        order = np.argsort(-scores, kind="stable")[:k]
        order = order[np.isfinite(scores[order])]
        return Hits([self._ids[row] for row in order], scores[order].tolist())

    def count(self) -> int:
        """Those whose vectors it reads."""
        return len(self._ids)

    def size_bytes(self) -> int:
        """Four bytes for each number."""
        assert self._rows is not None
        return 4 * self._rows.count * self._rows.dimensions
