"""How each type of row is made ready. A new type is one module here and one line below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.running.preparers.base import Preparer

BUILTIN = {
    "dense": "bakeoff.running.preparers.dense:Dense",
    "tokens": "bakeoff.running.preparers.tokens:Tokens",
    "existing": "bakeoff.running.preparers.existing:Existing",
    "lexical": "bakeoff.running.preparers.lexical:Lexical",
    "retriever": "bakeoff.running.preparers.retriever:RetrieverRow",
    "given": "bakeoff.running.preparers.given:FromFiles",
    "reranked": "bakeoff.running.preparers.reranked:RerankedRow",
    "fused": "bakeoff.running.preparers.fused:Fused",
}

PREPARERS: Registry[Preparer] = Registry("type of row", "", BUILTIN)  # no entry point: a line-up can't name others
