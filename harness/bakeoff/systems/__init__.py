"""Row types, one module each: fields, requirements, dry-run cost, preparation and querying.

Extensions and other packages can add more. A line-up selects one by `system`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries

if TYPE_CHECKING:
    from bakeoff.systems.base import System

BUILTIN = {
    "dense": "bakeoff.systems.dense:Dense",
    "hybrid": "bakeoff.systems.hybrid:Hybrid",
    "existing": "bakeoff.systems.existing:ExistingRow",
    "lexical": "bakeoff.systems.lexical:Lexical",
    "retriever": "bakeoff.systems.retriever:RetrieverRow",
    "given": "bakeoff.systems.given:GivenRow",
    "reranked": "bakeoff.systems.reranked:RerankedRow",
    "fused": "bakeoff.systems.fused:Fused",
    **collect_entries("SYSTEMS"),
}

SYSTEMS: Registry[System] = Registry("row type", "bakeoff.systems", BUILTIN, given=("label", "name", "unset"))
