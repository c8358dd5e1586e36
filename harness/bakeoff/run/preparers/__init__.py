"""How each type of row is made ready. A new type is one module here and one line below (others: `bakeoff.rows`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.run.preparers.base import Preparer

PREPARERS: Registry[Preparer] = Registry(
    "type of row",
    "bakeoff.rows",
    {
        "dense": "bakeoff.run.preparers.dense:Dense",
        "lexical": "bakeoff.run.preparers.lexical:Lexical",
        "given": "bakeoff.run.preparers.given:FromFiles",
        "fused": "bakeoff.run.preparers.fused:Fused",
    },
)
