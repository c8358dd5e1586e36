"""MaxSim over every document, a block of the cache at a time: what every index is measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.base import Vectors

from bakeoff.core.filters import Where, conditions, passes
from bakeoff.embedding.token_rows import TokenRows
from bakeoff.search.hits import Hits
from bakeoff.search.maxsim import maxsim_all
from bakeoff.search.token_stores.base import TokenStore


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

    def size_bytes(self) -> int:
        """Four bytes for each number."""
        assert self._rows is not None
        return 4 * self._rows.count * self._rows.dimensions
