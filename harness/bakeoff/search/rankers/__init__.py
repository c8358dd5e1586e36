"""Text → nearest ids with no vectors at all: the baseline that every embedding must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.search.rankers.base import Ranker

RANKERS: Registry[Ranker] = Registry("ranker", "bakeoff.rankers", {"bm25": "bakeoff.search.rankers.bm25:BM25"})
